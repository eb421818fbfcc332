import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.statistics.estimates import (
    Estimate,
    exponential,
    geometric_interval,
    mean_interval,
    median_interval,
    welch,
)

times = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40)


def test_mean_interval_by_hand():
    # Mean 2, standard deviation 1, n = 3: 4.3027 (95 %, 2 degrees of freedom) / sqrt(3)
    estimate = mean_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (estimate.value, estimate.n) == (2.0, 3)
    assert estimate.high - 2.0 == pytest.approx(half, rel=1e-6)
    assert 2.0 - estimate.low == pytest.approx(half, rel=1e-6)


def test_too_few_samples_have_no_interval():
    for interval in (mean_interval, geometric_interval, median_interval):
        assert interval([]).n == 0 and math.isnan(interval([]).value)
        one = interval([3.0])
        assert (one.value, one.n) == (pytest.approx(3.0), 1)
        assert math.isnan(one.low) and one.relative_half_width == math.inf
    assert welch([], [1.0]).n == 0
    assert math.isnan(welch([1.0], [1.0, 2.0]).low)


@given(times, st.floats(0.01, 100))
def test_geometric_interval_scales_and_inverts(samples, factor):
    estimate = geometric_interval(samples)
    assert min(samples) * (1 - 1e-9) <= estimate.value <= max(samples) * (1 + 1e-9)
    scaled = geometric_interval([factor * s for s in samples])
    assert scaled.value == pytest.approx(factor * estimate.value)
    inverse = geometric_interval([1 / s for s in samples])
    assert inverse.value == pytest.approx(1 / estimate.value)


def test_geometric_interval_of_zero_has_a_mean_only():
    estimate = geometric_interval([0.0, 2.0])
    assert estimate.value == 1.0 and math.isnan(estimate.low)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_coverage_equals_the_level_for_few_samples(n):
    rng = np.random.default_rng(1)
    intervals = [mean_interval(rng.normal(10, 1, n).tolist()) for _ in range(2000)]
    hits = sum(e.low <= 10 <= e.high for e in intervals)
    assert hits == pytest.approx(1900, abs=45)  # four standard errors
    boot = [median_interval(rng.normal(10, 1, n).tolist(), t) for t in range(400)]
    if n == 3:  # the percentile bootstrap of few samples is too narrow
        assert sum(e.low <= 10 <= e.high for e in boot) < 350


def test_welch_interval_by_hand():
    # Means 0 and 1, variances 1 and 4, n = 3 and 4: standard error sqrt(1/3 + 1)
    a, b = [-1.0, 0.0, 1.0], [1 - math.sqrt(6), 1.0, 1.0, 1 + math.sqrt(6)]
    estimate = welch(a, b)
    error = math.sqrt(1 / 3 + 1)
    degrees = error**4 / ((1 / 3) ** 2 / 2 + 1 / 3)
    assert estimate.value == pytest.approx(1.0) and estimate.n == 3
    assert degrees == pytest.approx(4.571, abs=1e-3)
    assert (estimate.high - estimate.value) / error == pytest.approx(2.645, abs=2e-3)
    assert welch([1.0, 1.0], [1.0, 1.0]) == Estimate(0.0, 0.0, 0.0, 2)


def test_exponential_keeps_a_missing_interval():
    assert math.isnan(exponential(mean_interval([0.0])).low)
    assert exponential(mean_interval([0.0])).value == 1.0


@given(times, st.integers(0, 5))
def test_bootstrap_is_reproducible_and_contains_the_median(samples, seed):
    estimate = median_interval(samples, seed)
    assert estimate == median_interval(samples, seed)
    assert min(samples) <= estimate.low <= estimate.value <= estimate.high <= max(samples)
