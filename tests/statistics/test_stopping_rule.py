"""The verdict rule: hand-computed values, properties, and simulated noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.statistics import simulation
from gnnbench.statistics.estimates import median_interval
from gnnbench.statistics.stopping_rule import (
    MIN_PAIRS,
    Rule,
    even_rounds,
    fitting_rounds,
    round_variance,
    spread_of,
)
from gnnbench.statistics.variance_prior import VariancePrior, committed

PRIOR = VariancePrior(degrees=4.0, intercept=math.log(0.01**2), slope=0.0, variances=20)


def pairs_of(*values, noise=0.0):
    """Pairs of two rounds with these values."""
    return [[value - noise, value + noise] for value in values]


@pytest.mark.parametrize("device", simulation.DEVICES)
@pytest.mark.parametrize("kind", sorted(simulation.KINDS.keys() - {"dependent", "correlated"}))
def test_simulated_error_rate_and_coverage(kind, device):
    noise, generator = simulation.DEVICES[device], np.random.default_rng(7)
    rates = simulation.characteristics(
        Rule(), committed()[device], *simulation.draw(kind, noise, 4000, generator)
    )
    assert rates["false"] <= 0.05
    assert rates["coverage"] >= 0.91 and rates["noisiest"] >= 0.91


def test_prior_increases_the_power_of_three_pairs():
    generator = np.random.default_rng(7)
    sample = simulation.draw("normal", simulation.DEVICES["cpu"], 4000, generator)
    student = simulation.characteristics(Rule(analyses=(3,)), None, *sample)
    moderated = simulation.characteristics(Rule(analyses=(3,)), committed()["cpu"], *sample)
    assert moderated["power_10"] > 1.4 * student["power_10"]


def test_dependent_pairs_break_the_rule():
    """The simulation can show a failure."""
    generator = np.random.default_rng(7)
    sample = simulation.draw("dependent", simulation.DEVICES["cuda"], 4000, generator)
    assert simulation.characteristics(Rule(), committed()["cuda"], *sample)["false"] > 0.1


def test_bootstrap_of_one_pair_often_rejects_equality():
    """One pair of processes and a bootstrap over its rounds ignores the noise between processes."""
    generator = np.random.default_rng(7)
    trials = 0.03 * generator.standard_normal((200, 1)) * math.sqrt(2)
    rounds = np.exp(trials + 0.05 * generator.standard_normal((200, 6)))
    estimates = [median_interval(one) for one in rounds]
    assert np.mean([e.low > 1 or e.high < 1 for e in estimates]) > 0.1


@pytest.mark.parametrize("prior", [None, committed()["cuda"]])
def test_vectorised_rule_equals_the_scalar_rule(prior):
    generator = np.random.default_rng(9)
    trials = generator.standard_normal((300, 10, 1)) * 0.03 + 0.04
    trials = trials + 0.02 * generator.standard_normal((300, 10, 4))
    rule = Rule(analyses=(3, 5, 7, 10))
    d = np.median(trials, axis=2)
    rounds = np.array([[round_variance([pair]) for pair in one] for one in trials])
    ends = rule.ends(d, rounds, prior)
    assert 0.05 < ends.rejected.mean() < 0.95
    for nth, one in enumerate(trials.tolist()):
        n = next(n for n in range(1, 11) if rule.stop(one[:n], prior))
        judgement = rule.judge(one[:n], prior)
        assert (judgement.verdict in ("faster", "slower")) == ends.rejected[nth]
        assert n == ends.pairs[nth]
        assert math.log(judgement.ratio.high) == pytest.approx(ends.middle[nth] + ends.half[nth])


def test_verdicts_by_hand():
    rule = Rule(analyses=(5,))
    steady = [0.001, -0.001, 0.0, 0.001, -0.001]
    assert rule.judge(pairs_of(*steady)).verdict == "same"
    assert rule.judge(pairs_of(*(d + 0.05 for d in steady))).verdict == "faster"
    assert rule.judge(pairs_of(*(d - 0.05 for d in steady))).verdict == "slower"
    unclear = rule.judge(pairs_of(0.1, -0.1, 0.05, -0.05, 0.02))
    assert unclear.verdict == "unclear" and 30 < unclear.pairs_needed < 90
    # t at 95 % with 4 degrees of freedom: 2.776; sd 0.001, n = 5
    judgement = rule.judge(pairs_of(*steady))
    assert judgement.sd_pair == pytest.approx(0.001)
    half = 2.776445 * 0.001 / math.sqrt(5)
    assert judgement.ratio.high == pytest.approx(math.exp(half), rel=1e-6)
    assert judgement.noise_floor == pytest.approx(math.expm1(half), rel=1e-6)


def test_moderated_interval_by_hand():
    """The prior expects sd 0.01; the posterior has the same sd, with almost 4 + 1 degrees."""
    trials = pairs_of(0.2 - 0.01 / math.sqrt(2), 0.2 + 0.01 / math.sqrt(2), noise=0.001)
    spread = spread_of(trials, PRIOR)
    tail = 0.3739  # of F(1, 4) above 1; below 0.4, so the prior has 0.3739 / 0.4 of its degrees
    assert spread.degrees == pytest.approx(1 + 4 * tail / 0.4, rel=1e-3)
    assert spread.error == pytest.approx(0.01 / math.sqrt(2))
    assert spread_of(trials).degrees == 1


def test_prior_needs_the_noise_of_rounds():
    single = [[0.1], [0.2], [0.3]]
    assert spread_of(single, PRIOR) == spread_of(single)


def test_p_value_is_below_alpha_exactly_for_a_verdict():
    rule = Rule(analyses=(3,))
    generator = np.random.default_rng(5)
    for effect in generator.uniform(-0.1, 0.1, 200):
        trials = (effect + 0.02 * generator.standard_normal((3, 4))).tolist()
        judgement = rule.judge(trials, PRIOR)
        assert (judgement.p_value <= rule.alpha) == (judgement.verdict in ("faster", "slower"))


def test_too_few_pairs_give_no_verdict():
    clear = pairs_of(0.5, 0.501, 0.499, 0.5)
    assert Rule(analyses=(2,)).judge(clear[:2], PRIOR).verdict == ""
    assert not Rule(analyses=(2,)).gives_verdicts
    assert Rule(analyses=(2,)).stop(clear[:2]) in ("precise", "pairs")
    assert Rule(analyses=(5, 10)).judge(clear).verdict == ""
    assert Rule(analyses=(6,)).judge([*clear, *pairs_of(0.5)]).verdict == ""
    assert Rule().judge([]).verdict == Rule().judge(pairs_of(0.1)).verdict == ""
    assert MIN_PAIRS == 3


def test_difference_within_the_margin_is_same():
    inside = pairs_of(0.009, 0.0091, 0.0089, 0.009, 0.009)
    assert Rule().judge(inside).verdict == "same"
    assert Rule(margin=0.005).judge(inside).verdict == "faster"


def test_reasons_to_stop():
    rule = Rule(analyses=(5, 10))
    steady, wild = pairs_of(*[0.0] * 5), pairs_of(*[0.5, -0.5] * 5)
    clear = pairs_of(0.3, 0.31, 0.29, 0.3, 0.3)
    assert rule.stop(clear[:4]) == ""  # clear, before the first analysis
    assert rule.stop(clear) == "called"
    assert rule.stop(steady) == "precise"
    assert rule.stop(wild[:5]) == ""
    assert rule.stop(wild[:7]) == ""
    assert rule.stop(wild) == "pairs"
    assert rule.stop(wild[:6], elapsed_s=9, pair_s=2, budget_s=10) == "budget"
    assert rule.stop(wild[:6], elapsed_s=7, pair_s=2, budget_s=10) == ""
    assert rule.stop([], elapsed_s=99, budget_s=10) == ""  # one pair at least
    # Times of a system alone have no verdict.
    assert rule.stop(pairs_of(3.0, 3.1, 2.9, 3.0, 3.0), compares=False) == ""
    assert rule.stop(pairs_of(*[3.0] * 5), compares=False) == "precise"


ROUNDS = st.lists(st.floats(-1, 1), min_size=2, max_size=6)


@given(st.lists(ROUNDS, min_size=2, max_size=12), st.sampled_from([None, PRIOR]))
def test_swapped_sides_give_the_opposite_verdict(trials, prior):
    rule = Rule()
    one = rule.judge(trials, prior)
    swapped = rule.judge([[-r for r in trial] for trial in trials], prior)
    opposite = {"faster": "slower", "slower": "faster"}
    assert swapped.verdict == opposite.get(one.verdict, one.verdict)
    assert one.ratio.value * swapped.ratio.value == pytest.approx(1)
    assert one.ratio.low * swapped.ratio.high == pytest.approx(1)


@given(st.lists(st.floats(-0.5, 0.5), min_size=5, max_size=5))
def test_more_analyses_never_decide_sooner(d):
    """Analyses share the error rate, so a rule with more of them rejects no more at the first."""
    once, often = Rule(analyses=(5,)), Rule(analyses=(5, 10, 20))
    if often.judge(pairs_of(*d)).verdict in ("faster", "slower"):
        assert once.judge(pairs_of(*d)).verdict == often.judge(pairs_of(*d)).verdict


@pytest.mark.parametrize("start_s,round_s,s_start,s_round,rounds", [
    (4.0, 0.1, 0.026, 0.14, 12),  # sqrt(40) * 5.4 = 34, more than the maximum of 12
    (4.0, 1.0, 0.026, 0.039, 4),  # sqrt(4) * 1.5 = 3, rounded up to an even number
    (1.0, 100.0, 0.026, 0.014, 2),
    (4.0, 1.0, 0.0, 0.1, 12),
])  # fmt: skip
def test_rounds_balance_start_and_round_costs(start_s, round_s, s_start, s_round, rounds):
    assert even_rounds(start_s, round_s, s_start, s_round) == rounds


@pytest.mark.parametrize("pairs,budget_s,start_s,round_s,rounds", [
    (5, 300.0, 4.0, 1.0, 12),  # 60 s per pair fit more than the maximum
    (5, 45.0, 3.0, 1.0, 6),  # 9 s per pair - 3 s
    (2, 45.0, 3.0, 1.0, 12),  # 22.5 s per pair fit more than the maximum
    (5, 45.0, 20.0, 1.0, 2),  # not even the start fits
    (5, 0.001, 0.0, 0.0, 12),
    (5, math.inf, 4.0, 1.0, 12),
])  # fmt: skip
def test_rounds_let_the_first_analysis_fit_the_budget(pairs, budget_s, start_s, round_s, rounds):
    assert fitting_rounds(pairs, budget_s, start_s, round_s) == rounds


def test_fitting_rounds_are_the_most_that_fit_the_budget():
    """For any costs, unless not even two rounds fit."""
    generator = np.random.default_rng(0)
    for budget_s, start_s, round_s in generator.uniform([10, 1, 0.01], [300, 10, 5], (500, 3)):
        rounds = fitting_rounds(5, budget_s, start_s, round_s)
        assert rounds % 2 == 0 and 2 <= rounds <= 12
        assert rounds == 2 or 5 * (start_s + rounds * round_s) <= budget_s
        assert rounds == 12 or 5 * (start_s + (rounds + 2) * round_s) > budget_s
