import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gnnbench.core.errors import DataError
from gnnbench.statistics import noise
from gnnbench.statistics.noise import Calibration, Spread
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.statistics.variance_prior import SHARE_OF_DEGREES, VariancePrior, committed


def lives(pairs, s_life, s_round, rounds=8, seed=3):
    """Log ratios of A/A pairs: two lives and their rounds."""
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, s_life, pairs) - rng.normal(0, s_life, pairs)
    noise_of = rng.normal(0, math.sqrt(2) * s_round, (pairs, rounds))
    return (levels[:, None] + noise_of).tolist()


@pytest.mark.parametrize("rounds", [2, 6, 12])
@pytest.mark.parametrize("s_life,s_round", [(0.03, 0.01), (0.026, 0.14), (0.0, 0.05)])
def test_the_two_spreads_are_told_apart(s_life, s_round, rounds):
    found = noise.spread(lives(20_000, s_life, s_round, rounds))
    assert found.s_round == pytest.approx(s_round, rel=0.05)
    assert found.s_life == pytest.approx(s_life, rel=0.15, abs=0.006)


def test_the_spread_of_a_pair_is_seen():
    spread = Spread(s_round=0.1, s_life=0.03)
    d = [np.median(p) for p in lives(4000, 0.03, 0.1, rounds=6)]
    assert spread.of_pair(6) == pytest.approx(np.std(d), rel=0.1)
    assert spread.of_pair(12) < spread.of_pair(2)


def test_equals_verify_and_what_is_no_equal_does_not():
    quiet = noise.verify(lives(100, 0.02, 0.02), Rule())
    assert (quiet.lives, quiet.comparisons) == (200, 2000)
    assert quiet.rate <= quiet.bound <= 0.05
    assert 0.02 <= quiet.detectable <= 0.06
    assert quiet.one_pair_rate > 0.3  # lives differ; rounds do not show it
    assert quiet.bias_ci_low <= 1 <= quiet.bias_ci_high
    assert (quiet.groups, quiet.in_order) == (10, 0)
    # Random signs hide a side that is always the slower; in order it is seen.
    slower = [[r + 0.05 for r in pair] for pair in lives(100, 0.02, 0.02)]
    found = noise.verify(slower, Rule())
    assert found.bias_ci_low > 1.03 and found.in_order > 5
    # A rule that looks after every pair from the second on, without sharing the error.
    eager = Rule(looks=(5, 6, 7, 8, 9, 10), margin=0.0, alpha=0.05 * 6)
    assert noise.verify(lives(100, 0.02, 0.02), eager).rate > 0.05
    # A prior that expects far too little noise makes false verdicts; the check shows them.
    naive = VariancePrior(200.0, math.log(1e-8), 0.0, 20)
    assert noise.verify(lives(100, 0.02, 0.02), Rule(margin=0.0), naive).rate > quiet.rate


def test_too_few_lives_verify_nothing():
    with pytest.raises(ValueError, match="19 pairs are too few"):
        noise.verify(lives(19, 0.02, 0.02), Rule())


@pytest.fixture
def calibration(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path))
    spreads = {"wall_s": Spread(0.1, 0.02)}
    return Calibration(
        "m", "cpu", 2, "baseline", "d", "compute", "0", 24, 6, 4.0, 0.1, "now", spreads
    )


def test_calibrations_are_kept_by_machine_and_cell(calibration):
    assert noise.load("m") == []
    noise.store(calibration)
    noise.store(replace(calibration, device="cuda"))
    noise.store(replace(calibration, machine_id="n"))
    noise.store(replace(calibration, at="later"))
    assert noise.load("m") == [
        replace(calibration, device="cuda"),
        replace(calibration, at="later"),
    ]
    assert noise.load("n") == [replace(calibration, machine_id="n")]


def test_a_cell_takes_the_nearest_of_its_device_and_threads(calibration):
    cell = SimpleNamespace(device="cpu", until="sample", dataset="e", system="pyg")
    sampling = replace(calibration, until="sample")
    alike = replace(sampling, dataset="e")
    assert noise.best([calibration, sampling, alike], cell, 2) == alike
    assert noise.best([calibration, sampling], cell, 2) == sampling
    assert noise.best([calibration], cell, 2) == calibration
    assert noise.best([calibration], cell, 4) is None
    assert noise.best([replace(calibration, device="cuda")], cell, 2) is None


def test_prior_is_of_the_machine_once_it_has_enough_calibrations(calibration):
    assert noise.prior([calibration] * 9, "cpu") == committed()["cpu"]
    varied = [
        replace(
            calibration,
            dataset=str(n),
            spreads={"wall_s": Spread(0.01 * n, 0.0, 0.01 * (n % 3 + 1))},
        )
        for n in range(1, 13)
    ]
    own = noise.prior(varied, "cpu")
    assert own.variances == 12 and own.source == "calibrations of this machine"
    assert noise.prior(varied, "cuda") == committed()["cuda"]
    assert noise.prior(varied, "tpu") is None
    unstored = [replace(c, spreads={"wall_s": Spread(0.01, 0.01)}) for c in varied]
    assert noise.prior(unstored, "cpu") == committed()["cpu"]


def test_prior_of_calibrations_has_the_degrees_of_their_pairs(calibration):
    """Clipping the spread between processes at 0 would hide most of how much variances differ."""
    rng = np.random.default_rng(0)
    variances = 0.01 * 6 / rng.chisquare(6, 400)  # six degrees of freedom
    spreads = [noise.spread([r + rng.normal(0, 0.005, 6) for r in rng.normal(0, v**0.5, (8, 1))])
               for v in variances]  # fmt: skip
    known = [
        replace(calibration, dataset=str(n), lives=16, spreads={"wall_s": s})
        for n, s in enumerate(spreads)
    ]
    assert noise.prior(known, "cpu").degrees == pytest.approx(6 * SHARE_OF_DEGREES, rel=0.25)


def test_pairs_of_one_round_are_verified_without_a_prior():
    single = [[r[0]] for r in lives(60, 0.02, 0.02)]
    with_prior = noise.verify(single, Rule(), committed()["cpu"])
    assert with_prior == noise.verify(single, Rule())


def test_a_floor_is_of_the_very_cell(calibration):
    cell = SimpleNamespace(device="cpu", until="compute", dataset="d", system="baseline")
    assert noise.exact([calibration], cell, 2) == calibration
    assert noise.exact([calibration], cell, 4) is None
    other = SimpleNamespace(device="cpu", until="compute", dataset="d", system="pyg")
    assert noise.exact([calibration], other, 2) is None


def test_floors_of_version_1_are_no_calibration(calibration):
    noise.store_path().write_text(json.dumps({"m": {"cpu": {"levels": []}}}))
    assert noise.load("m") == []
    noise.store(calibration)
    assert noise.load("m") == [calibration]


@pytest.mark.parametrize("text", ["{", '{"m": [{}]}', "[]"])
def test_a_damaged_store_is_told(calibration, text):
    noise.store_path().write_text(text)
    with pytest.raises(DataError, match="damaged"):
        noise.load("m")
