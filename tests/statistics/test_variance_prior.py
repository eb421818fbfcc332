"""The prior of variances between pairs."""

import math

import numpy as np
import pandas as pd
import pytest

from gnnbench.statistics.variance_prior import (
    MIN_VARIANCES,
    SHARE_OF_DEGREES,
    PairVariance,
    VariancePrior,
    committed,
    committed_variances,
    fit,
    fit_runs,
)


def drawn(comparisons, degrees, slope, seed=1, pairs=4, groups=20):
    """Variances of comparisons drawn from a prior with center 1e-4 where rounds explain 1e-4."""
    generator = np.random.default_rng(seed)
    rounds = 10 ** generator.uniform(-6, -2, comparisons)
    center = 1e-4 * (rounds / 1e-4) ** slope
    true = center * degrees / generator.chisquare(degrees, comparisons)
    between = true * generator.chisquare(pairs - 1, comparisons) / (pairs - 1)
    return [
        PairVariance(b, pairs - 1, r, str(nth % groups))
        for nth, (b, r) in enumerate(zip(between, rounds, strict=True))
    ]


@pytest.mark.parametrize("degrees,slope", [(3.0, 0.8), (8.0, 0.0), (4.0, 1.0)])
def test_fit_recovers_the_prior(degrees, slope):
    prior = fit(drawn(4000, degrees, slope))
    assert prior.degrees / SHARE_OF_DEGREES == pytest.approx(degrees, rel=0.2)
    assert prior.slope == pytest.approx(slope, abs=0.05)
    assert prior.center(np.array(1e-4)) == pytest.approx(1e-4, rel=0.1)
    assert prior.variances == 4000


def test_one_run_cannot_make_the_prior_stronger():
    """One run has many equal variances; the other runs vary."""
    varied = drawn(30, 2.0, 1.0)
    equal = [PairVariance(1e-4, 9, 1e-4, "equal")] * 100
    assert fit([*varied, *equal]).degrees <= fit(varied).degrees * 1.3


def test_few_variances_are_no_prior():
    with pytest.raises(ValueError, match="9 variances do not determine a prior"):
        fit(drawn(MIN_VARIANCES - 1, 4, 1))


def test_moderation_by_hand():
    prior = VariancePrior(4.0, math.log(1e-4), 0.0, 20)
    variance, degrees = prior.moderate(np.array([0.0, 1e-4, 1.0]), 2, np.array([1e-4] * 3))
    assert degrees[:2] == pytest.approx([6, 6])  # F(2, 4) above 1: 0.44, more than the tail
    assert variance[:2] == pytest.approx([4e-4 / 6, 1e-4])
    # The prior has no weight on a variance that it rules out.
    assert degrees[2] == pytest.approx(2, abs=0.01) and variance[2] == pytest.approx(1, rel=0.01)


def test_variances_come_from_tables_of_runs(tmp_path):
    rows = {
        "device": ["cpu"] * 4, "pairs": [3, 2, 3, 2], "rounds": [18, 12, 3, 12],
        "sd_pair": [0.01, 0.02, 0.01, None], "sd_round": [0.1, 0.1, 0.1, 0.1],
    }  # fmt: skip
    (first, second) = committed_variances(pd.DataFrame(rows), "run")
    assert first.between == pytest.approx(1e-4) and first.degrees == 2
    assert first.rounds == pytest.approx(0.01 * 1.288 / 6)
    assert second.degrees == 1
    pd.DataFrame(rows).to_csv(tmp_path / "cells.csv")
    assert fit_runs([tmp_path], "one run") == {}


def test_committed_priors_are_plausible():
    assert set(committed()) == {"cpu", "cuda"}
    for prior in committed().values():
        assert prior.variances >= 100 and 1 < prior.degrees < 10 and 0 < prior.slope <= 1
