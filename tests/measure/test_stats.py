import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.measure.stats import Estimate, median_interval, paired_ratio, verdict

times = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40)


def test_small_samples_by_hand():
    assert median_interval([]).n == 0
    assert math.isnan(median_interval([]).median)
    one = median_interval([3.0])
    assert (one.median, one.n) == (3.0, 1)
    assert math.isnan(one.low)
    assert one.relative_half_width == math.inf
    assert median_interval([1.0, 2.0, 9.0]).median == 2.0


@given(times)
def test_interval_holds_the_median_and_lies_within_the_samples(samples):
    found = median_interval(samples)
    assert min(samples) <= found.low <= found.median <= found.high <= max(samples)


@given(times, st.integers(0, 5))
def test_interval_is_reproducible_and_scales(samples, seed):
    found = median_interval(samples, seed)
    assert found == median_interval(samples, seed)
    doubled = median_interval([2 * s for s in samples], seed)
    assert doubled == Estimate(2 * found.median, 2 * found.low, 2 * found.high, found.n)


def test_constant_samples_have_no_width():
    assert median_interval([4.0] * 10).relative_half_width == 0.0


def test_coverage_is_near_the_level():
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        found = median_interval(rng.normal(10, 1, 25).tolist(), trial)
        hits += found.low <= 10 <= found.high
    assert 175 <= hits <= 200


def test_ratio_is_paired_and_above_one_when_the_system_is_faster():
    # Unpaired medians would give 1.0: the machine doubled its speed half-way.
    reference, system = [4.0, 4.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0]
    found = paired_ratio(reference, system)
    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    assert verdict(found) == "faster"
    assert verdict(paired_ratio(system, reference)) == "slower"


def test_verdict_of_ties_and_of_too_little():
    assert verdict(paired_ratio([1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0])) == "tie"
    assert verdict(paired_ratio([1.0], [2.0])) == ""


def test_ratio_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="equal lengths"):
        paired_ratio([1.0], [])
