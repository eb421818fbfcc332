import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.measure.stopping import StoppingRule

series = st.lists(st.lists(st.floats(0.01, 10), max_size=25), min_size=1, max_size=2)


@given(series, st.floats(0, 1000), st.integers(1, 10), st.integers(0, 10))
def test_never_before_the_least_and_always_at_the_most(series, elapsed, least, more):
    rule = StoppingRule(least, least + more, 0.02, 60)
    decision = rule.decide(series, elapsed)
    rounds = min(len(s) for s in series)
    if rounds < least:
        assert not decision.stop
    if rounds >= least + more:
        assert decision.stop
    assert decision.stop == bool(decision.why)


@given(st.lists(st.floats(0.01, 10), min_size=3, max_size=20), st.floats(0, 100))
def test_more_time_spent_never_turns_a_stop_into_going_on(samples, elapsed):
    rule = StoppingRule(3, 30, 0.001, 50)
    if rule.decide([samples], elapsed).stop:
        assert rule.decide([samples], elapsed + 1).stop


def test_reasons():
    rule = StoppingRule(3, 6, 0.02, 10)
    steady, wild = [1.0] * 4, [1.0, 5.0, 1.0, 5.0]
    assert rule.decide([steady, steady], 1).why == "precise"
    assert rule.decide([steady, wild], 0).why == ""
    assert rule.decide([steady, wild], 9).why == "budget"  # the next round would overrun it
    assert rule.decide([steady, wild], 9, round_s=0.5).why == ""
    assert rule.decide([steady, wild], 0, round_s=11.0).why == "budget"
    assert rule.decide([wild * 2], 0).why == "max_rounds"
    assert rule.decide([[1.0, 1.0]], 99).why == ""
    assert rule.decide([], 0).why == ""


def test_both_workers_must_be_precise():
    rule = StoppingRule(2, 9, 0.02, 1e9)
    assert rule.decide([[1.0, 1.0, 1.0], [1.0, 9.0, 4.0]], 0).half_width > 0.02


@pytest.mark.parametrize("least,most", [(0, 3), (4, 3)])
def test_refuses_nonsense(least, most):
    with pytest.raises(ValueError, match="min_rounds"):
        StoppingRule(least, most)
