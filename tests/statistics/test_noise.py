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


def log_ratios(pairs, s_life, s_round, rounds=8, seed=3):
    """Log ratios of A/A pairs, by pair and round."""
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, s_life, pairs) - rng.normal(0, s_life, pairs)
    noise_of = rng.normal(0, math.sqrt(2) * s_round, (pairs, rounds))
    return (levels[:, None] + noise_of).tolist()


@pytest.mark.parametrize("rounds", [2, 12])
@pytest.mark.parametrize("s_life,s_round", [(0.03, 0.01), (0.026, 0.14), (0.0, 0.05)])
def test_spreads_of_trials_and_rounds_are_separated(s_life, s_round, rounds):
    spread = noise.spread(log_ratios(20_000, s_life, s_round, rounds))
    assert spread.s_round == pytest.approx(s_round, rel=0.05)
    assert spread.s_life == pytest.approx(s_life, rel=0.15, abs=0.006)


def test_spread_of_a_pair():
    spread = Spread(s_round=0.1, s_life=0.03)
    d = [np.median(p) for p in log_ratios(4000, 0.03, 0.1, rounds=6)]
    assert spread.of_pair(6) == pytest.approx(np.std(d), rel=0.1)
    assert spread.of_pair(12) < spread.of_pair(2)


def test_verification_of_equal_and_biased_pairs():
    equal = noise.verify(log_ratios(100, 0.02, 0.02), Rule())
    assert (equal.lives, equal.comparisons) == (200, 2000)
    assert equal.rate <= equal.bound <= 0.05
    assert 0.02 <= equal.detectable <= 0.06
    assert equal.one_pair_rate > 0.3  # trials differ, which rounds do not show
    assert equal.bias_ci_low <= 1 <= equal.bias_ci_high
    assert (equal.groups, equal.in_order) == (10, 0)
    # Random signs hide a side that is always slower; the order of pairs shows it.
    slower = [[r + 0.05 for r in pair] for pair in log_ratios(100, 0.02, 0.02)]
    biased = noise.verify(slower, Rule())
    assert biased.bias_ci_low > 1.03 and biased.in_order > 5
    # A rule that tests after every pair without correcting for repeated tests.
    eager = Rule(analyses=(5, 6, 7, 8, 9, 10), margin=0.0, alpha=0.05 * 6)
    assert noise.verify(log_ratios(100, 0.02, 0.02), eager).rate > 0.05
    # A prior that expects far too little noise makes false verdicts; the check shows them.
    naive = VariancePrior(200.0, math.log(1e-8), 0.0, 20)
    assert noise.verify(log_ratios(100, 0.02, 0.02), Rule(margin=0.0), naive).rate > equal.rate


def test_too_few_pairs_cannot_be_verified():
    with pytest.raises(ValueError, match="19 pairs are too few"):
        noise.verify(log_ratios(19, 0.02, 0.02), Rule())


@pytest.fixture
def calibration(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path))
    spreads = {"wall_s": Spread(0.1, 0.02)}
    return Calibration(
        "m", "cpu", 2, "baseline", "d", "compute", "0", 24, 6, 4.0, 0.1, "now", spreads
    )


def test_calibrations_are_stored_by_machine_and_cell(calibration):
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


def test_best_calibration_is_the_nearest_of_equal_device_and_threads(calibration):
    cell = SimpleNamespace(device="cpu", until="sample", dataset="e", system="pyg")
    sampling = replace(calibration, until="sample")
    same_dataset = replace(sampling, dataset="e")
    assert noise.best([calibration, sampling, same_dataset], cell, 2) == same_dataset
    assert noise.best([calibration, sampling], cell, 2) == sampling
    assert noise.best([calibration], cell, 2) == calibration
    assert noise.best([calibration], cell, 4) is None
    assert noise.best([replace(calibration, device="cuda")], cell, 2) is None


def test_prior_uses_the_machines_calibrations_if_there_are_enough(calibration):
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
    """Clipping the spread between processes at 0 would hide most of the variation."""
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
    single = [[r[0]] for r in log_ratios(60, 0.02, 0.02)]
    with_prior = noise.verify(single, Rule(), committed()["cpu"])
    assert with_prior == noise.verify(single, Rule())


def test_exact_calibration_is_of_the_same_cell(calibration):
    cell = SimpleNamespace(device="cpu", until="compute", dataset="d", system="baseline")
    assert noise.exact([calibration], cell, 2) == calibration
    assert noise.exact([calibration], cell, 4) is None
    other = SimpleNamespace(device="cpu", until="compute", dataset="d", system="pyg")
    assert noise.exact([calibration], other, 2) is None


def test_floors_of_version_1_are_ignored(calibration):
    noise.store_path().write_text(json.dumps({"m": {"cpu": {"levels": []}}}))
    assert noise.load("m") == []
    noise.store(calibration)
    assert noise.load("m") == [calibration]


@pytest.mark.parametrize("text", ["{", '{"m": [{}]}', "[]"])
def test_damaged_store_is_an_error(calibration, text):
    noise.store_path().write_text(text)
    with pytest.raises(DataError, match="damaged"):
        noise.load("m")
