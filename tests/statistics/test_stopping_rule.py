"""The rule by which two systems are called different, held against simulated noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.statistics.estimates import median_interval
from gnnbench.statistics.stopping_rule import MIN_PAIRS, Rule, even_rounds, fitting_rounds

COMPARISONS = 2000
PAIRS = 10
ROUNDS = 6


def lives(kind, size, generator, spread=0.03):
    """Levels of lives, as logarithms: what differs between two processes of one system."""
    if kind == "normal":
        return spread * generator.standard_normal(size)
    if kind == "bimodal":  # a layout of memory that some lives get
        return spread * generator.choice([-1.0, 1.0], size)
    if kind == "heavy":
        return spread / 2 * generator.standard_t(2, size)
    slow = generator.random(size) < 0.1  # spiky: now and then a neighbour
    return np.where(slow, 8 * spread, 0.2 * spread * generator.standard_normal(size))


KINDS = ("normal", "bimodal", "heavy", "spiky")


def pairs(kind, comparisons, generator, effect=0.0, spread=0.03, noise=0.05):
    """Rounds [comparisons, pairs, rounds] of log ratios, with noise of their own."""
    shape = (comparisons, PAIRS)
    levels = lives(kind, shape, generator, spread) - lives(kind, shape, generator, spread)
    rounds = noise * generator.standard_normal((*shape, ROUNDS))
    return levels[..., None] + rounds + math.log1p(effect)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.005, 0.03, 0.1])
def test_equals_are_called_different_in_at_most_one_of_twenty(kind, spread):
    generator = np.random.default_rng(7)
    d = np.median(pairs(kind, COMPARISONS, generator, spread=spread), axis=2)
    assert Rule().rejects_equality(d).mean() <= 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_of_version_1_fails_that(kind):
    """One pair of processes, a percentile bootstrap of the median over its rounds."""
    generator = np.random.default_rng(7)
    found = [median_interval(one) for one in np.exp(pairs(kind, 200, generator)[:, 0])]
    assert np.mean([e.low > 1 or e.high < 1 for e in found]) > 0.1


@pytest.mark.parametrize("kind,effect,power", [
    ("normal", 0.05, 0.9), ("bimodal", 0.05, 0.9), ("heavy", 0.05, 0.8), ("spiky", 0.2, 0.5),
])  # fmt: skip
def test_differences_are_seen(kind, effect, power):
    generator = np.random.default_rng(8)
    d = np.median(pairs(kind, COMPARISONS, generator, effect, spread=0.01, noise=0.02), axis=2)
    assert Rule().rejects_equality(d).mean() >= power


def test_all_rows_at_once_is_the_rule_row_by_row():
    generator = np.random.default_rng(9)
    d = np.median(pairs("heavy", 300, generator, 0.04), axis=2)
    rule = Rule(looks=(5, 7, 10))
    for row, called in zip(d, rule.rejects_equality(d), strict=True):
        n = next(n for n in range(1, PAIRS + 1) if rule.stop(row[:n].tolist()))
        assert (rule.judge(row[:n].tolist()).verdict in ("faster", "slower")) == called


def test_verdicts_by_hand():
    rule = Rule(looks=(5,))
    steady = [0.001, -0.001, 0.0, 0.001, -0.001]
    assert rule.judge(steady).verdict == "same"
    assert rule.judge([d + 0.05 for d in steady]).verdict == "faster"
    assert rule.judge([d - 0.05 for d in steady]).verdict == "slower"
    unclear = rule.judge([0.1, -0.1, 0.05, -0.05, 0.02])
    assert unclear.verdict == "unclear" and 30 < unclear.pairs_needed < 90
    # t at 95 % with 4 degrees of freedom: 2.776; sd 0.001, n = 5
    found = rule.judge(steady)
    assert found.sd_pair == pytest.approx(0.001)
    half = 2.776445 * 0.001 / math.sqrt(5)
    assert found.ratio.high == pytest.approx(math.exp(half), rel=1e-6)
    assert found.noise_floor == pytest.approx(math.expm1(half), rel=1e-6)


def test_too_few_pairs_give_no_verdict():
    clear = [0.5, 0.501, 0.499, 0.5]
    assert Rule(looks=(2,)).judge(clear).verdict == ""
    assert not Rule(looks=(2,)).gives_verdicts
    assert Rule(looks=(5, 10)).judge(clear).verdict == ""
    assert Rule(looks=(6,)).judge([*clear, 0.5]).verdict == ""
    assert Rule().judge([]).verdict == Rule().judge([0.1]).verdict == ""
    assert MIN_PAIRS == 5


def test_a_small_difference_is_called_by_nobody():
    inside = [0.009, 0.0091, 0.0089, 0.009, 0.009]
    assert Rule().judge(inside).verdict == "same"
    assert Rule(margin=0.005).judge(inside).verdict == "faster"


def test_reasons_to_stop():
    rule = Rule(looks=(5, 10))
    steady, wild = [0.0] * 5, [0.5, -0.5] * 5
    assert rule.stop([0.3, 0.31, 0.29, 0.3]) == ""  # clear, but not yet looked at
    assert rule.stop([0.3, 0.31, 0.29, 0.3, 0.3]) == "called"
    assert rule.stop(steady) == "precise"
    assert rule.stop(wild[:5]) == ""
    assert rule.stop(wild[:7]) == ""
    assert rule.stop(wild) == "pairs"
    assert rule.stop(wild[:6], elapsed_s=9, pair_s=2, budget_s=10) == "budget"
    assert rule.stop(wild[:6], elapsed_s=7, pair_s=2, budget_s=10) == ""
    assert rule.stop([], elapsed_s=99, budget_s=10) == ""  # one pair at least
    # Times of a system alone are compared with nothing.
    assert rule.stop([3.0, 3.1, 2.9, 3.0, 3.0], compares=False) == ""
    assert rule.stop([3.0] * 5, compares=False) == "precise"


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_seen_from_the_other_side_it_is_the_same(d):
    rule = Rule()
    here, there = rule.judge(d), rule.judge([-x for x in d])
    other = {"faster": "slower", "slower": "faster"}
    assert there.verdict == other.get(here.verdict, here.verdict)
    assert here.ratio.value * there.ratio.value == pytest.approx(1)
    assert here.ratio.low * there.ratio.high == pytest.approx(1)


@given(st.lists(st.floats(-0.5, 0.5), min_size=5, max_size=5))
def test_more_looks_never_call_sooner(d):
    """The error is shared: at a look that all have, more looks call no more."""
    once, often = Rule(looks=(5,)), Rule(looks=(5, 10, 20))
    if often.judge(d).verdict in ("faster", "slower"):
        assert once.judge(d).verdict == often.judge(d).verdict


@pytest.mark.parametrize("life,one,s_life,s_round,rounds", [
    (4.0, 0.1, 0.026, 0.14, 12),  # sqrt(40) * 5.4 = 34: the most
    (4.0, 1.0, 0.026, 0.039, 4),  # sqrt(4) * 1.5 = 3: to even, 4
    (1.0, 100.0, 0.026, 0.014, 2),
    (4.0, 1.0, 0.0, 0.1, 12),
])  # fmt: skip
def test_rounds_by_cost(life, one, s_life, s_round, rounds):
    assert even_rounds(life, one, s_life, s_round) == rounds


@pytest.mark.parametrize("pairs,budget,life,one,rounds", [
    (5, 300.0, 4.0, 1.0, 12),  # 60 s a pair: more than the most
    (5, 45.0, 3.0, 1.0, 4),  # 9 s a pair less 3 and the verification epoch: 5, to even
    (2, 45.0, 3.0, 1.0, 12),  # 18
    (5, 45.0, 20.0, 1.0, 2),  # not even a life fits
    (5, 0.001, 0.0, 0.0, 12),
    (5, math.inf, 4.0, 1.0, 12),
])  # fmt: skip
def test_rounds_by_which_the_first_look_fits_the_budget(pairs, budget, life, one, rounds):
    assert fitting_rounds(pairs, budget, life, one) == rounds


def test_as_many_pairs_fit_as_were_promised():
    """Whatever the costs, unless not even two rounds fit."""
    generator = np.random.default_rng(0)
    for budget, life, one in generator.uniform([10, 1, 0.01], [300, 10, 5], (500, 3)):
        rounds = fitting_rounds(5, budget, life, one)
        assert rounds % 2 == 0 and 2 <= rounds <= 12
        assert rounds == 2 or 5 * (life + (rounds + 1) * one) <= budget
        assert rounds == 12 or 5 * (life + (rounds + 3) * one) > budget
