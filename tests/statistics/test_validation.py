"""A/A pairs regrouped into comparisons."""

import json
import math

import numpy as np
import pytest

from gnnbench.statistics import validation
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.statistics.variance_prior import committed


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(validation, "RESAMPLES", 20)


def pairs_of(count: int, s_pair: float, s_round: float = 0.05, rounds: int = 4):
    draws = np.random.default_rng(5)
    levels = draws.normal(0, s_pair, (count, 1))
    return (levels + draws.normal(0, s_round, (count, rounds))).tolist()


def test_regrouped_pairs_keep_their_size_and_are_not_repeated():
    d, rounds = np.arange(1.0, 31.0), np.arange(101.0, 131.0)
    drawn, explained = validation.regrouped(d, rounds, 50, np.random.default_rng(0))
    assert drawn.shape == explained.shape == (50, 10)
    assert (np.abs(drawn) + 100 == explained).all()
    assert all(len(set(row)) == 10 for row in explained)
    assert 0.4 < (drawn > 0).mean() < 0.6


def test_too_few_pairs_are_refused():
    with pytest.raises(ValueError, match="19 pairs are too few"):
        validation.regrouped(np.zeros(19), np.zeros(19), 5, np.random.default_rng(0))


def test_rates_of_normal_pairs():
    rates = validation.validate(pairs_of(60, 0.02), Rule(), committed()["cuda"])
    assert rates["false"] <= rates["false_bound"] <= 0.05
    assert rates["coverage"] >= rates["coverage_bound"] >= 0.93
    assert rates["power_5"] < rates["power_10"]
    assert rates["power_10"] > 0.9


def test_a_rule_without_a_margin_at_a_low_level_fails():
    """The validation can show a failure."""
    rule = Rule(analyses=(3,), alpha=0.5, margin=0.0)
    rates = validation.validate(pairs_of(60, 0.02), rule, None)
    assert rates["false"] > 0.3
    assert rates["coverage"] < 0.7


def test_pairs_without_noise_are_all_equal():
    rates = validation.validate([[0.0] * 4] * 20, Rule(), None)
    assert rates["false"] == 0 and rates["coverage"] == 1
    assert rates["power_5"] == 1 and rates["pairs"] == 3


def test_the_table_of_files(tmp_path, capsys):
    file = tmp_path / "calibrate.json"
    pairs = pairs_of(30, 0.02)
    document = {
        "calibration": {"until": "compute", "device": "cpu"},
        "log_ratios": {"wall_s": pairs},
    }
    file.write_text(json.dumps(document))
    assert validation.main([str(file)]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith("file,device,measured_pairs,rule,false,power_5,power_10,coverage")
    assert [row.split(",")[3] for row in rows[:2]] == ["student 5/10", "moderated 3/5/10"]
    assert all(row.split(",")[2] == "30" for row in rows)
    assert not any(math.isnan(float(value)) for value in rows[0].split(",")[4:])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "Expecting value"),
        ("[]", "list indices"),
        ('{"calibration": {"until": "compute", "device": "cpu"}}', "log_ratios"),
        (
            '{"calibration": {"until": "compute", "device": "tpu"}, "log_ratios": {"wall_s": []}}',
            "tpu",
        ),
        (
            '{"calibration": {"until": "compute", "device": "cpu"}, "log_ratios": {"wall_s": []}}',
            "0 pairs are too few",
        ),
    ],
)
def test_other_files_are_named(content, why, tmp_path, capsys):
    file = tmp_path / "other.json"
    file.write_text(content)
    assert validation.main([str(file)]) == 6
    error = capsys.readouterr().err
    assert str(file) in error and why in error


@pytest.mark.parametrize("bad", [[0.1], [], [0.1, math.nan]], ids=["one round", "empty", "nan"])
def test_pairs_that_say_nothing_of_their_rounds_are_refused(bad):
    with pytest.raises(ValueError, match="fewer than two rounds, or a value"):
        validation.validate([*pairs_of(30, 0.02), bad], Rule(), None)
