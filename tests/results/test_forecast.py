"""The model of more ranks, by numbers that were worked out by hand."""

import math
from dataclasses import replace

import pytest

from gnnbench.results.forecast import Ceilings, Measured, Model, Split


def split(most, mean, sent=0.0):
    """A batch of which the rank with most has ``most`` edges, all on average ``mean``."""
    return Split({"compute": most}, {"compute": mean}, sent)


# Two ranks have 60 edges of a batch's 100, on average 50; a batch of one seed takes a second.
SPLITS = {1: split(100.0, 100.0), 2: split(60.0, 50.0, 4e6), 4: split(40.0, 30.0, 3e6),
          1024: split(2.0, 0.5, 1e5)}  # fmt: skip
ONE = Measured(1, 10.0, 6.0, {"compute": 6.0}, 3.0, 0.0, 1e6, 0.25, 0.5)
TWO = Measured(2, 10.0, 9.0, {"compute": 3.5}, 3.0, 8e6, 1e6, 0.75, 0.75)
CEILINGS = Ceilings(2e6, 8e6, {"compute": 1.0})
MODEL = Model(ONE, TWO, CEILINGS, SPLITS, math.inf)
WAITS = 9.0 - (1 + 60 * 0.05 + 3 * 0.75 + 1.0 + 0.75 + 0.5)  # what 2 ranks took beyond all


def test_a_step_is_floors_work_rounds_sums_and_what_else_two_ranks_took():
    assert MODEL.step_s(2, shared=False) == pytest.approx(9.0)
    # 40 edges at a twentieth of a second; bytes 3/4 of those of two ranks; three more peers in each
    # of three rounds, a quarter of a second each; two doublings of a tree whose first hop adds a
    # quarter; 3/2 of the gradients' bytes.
    four = 1 + 40 * 0.05 + 3 * (0.5 + 3 * 0.25) + 0.75 + (0.25 + 2 * 2 * 0.25) + 0.75
    assert MODEL.step_s(4, shared=False) == pytest.approx(four + WAITS)
    assert MODEL.sent(4) == pytest.approx(6e6)


def test_a_thousand_ranks_take_no_less_than_floors_and_latencies():
    rounds, sums = 3 * (0.5 + 1023 * 0.25), 0.25 + 20 * 0.25
    foretold = MODEL.step_s(1024, shared=False)
    assert foretold > 1 + rounds + sums
    beyond = 2 * 0.05 + 2e5 / 8e6 + 2 * 1023 / 1024 * 0.5 + WAITS
    assert foretold == pytest.approx(1 + rounds + sums + beyond)


def test_ranks_on_one_machine_slow_each_other_as_the_first_two_did():
    alone = replace(ONE, own_s={"compute": 1 + 100 * 0.04})  # 5/4 as fast as one of two
    here, apart = (replace(MODEL, one=alone).step_s(4, shared) for shared in (True, False))
    assert here - apart == pytest.approx((5 / 4 - 1) * (1 + 40 * 0.05))
    # Four of them on two cores have half of one each.
    crowded = replace(MODEL, one=alone, cores=2.0)
    assert crowded.step_s(4, True) - apart == pytest.approx(1 + 40 * 0.05)


def test_without_exchanges_nothing_is_sent_and_nothing_waited_for():
    none = {n: replace(one, sent=0.0) for n, one in SPLITS.items()}
    model = replace(
        MODEL, one=replace(ONE, calls=0.0), two=replace(TWO, calls=0.0, sent=0.0, step_s=6.25),
        splits=none, ceilings=replace(CEILINGS, exchange_rate=0.0),
    )  # fmt: skip
    assert model.sent(4) == 0.0
    own, sums = 1 + 40 * 0.05, 0.25 + 2 * 2 * 0.25 + 0.75
    assert model.step_s(4, False) == pytest.approx(own + sums + 6.25 - (1 + 3 + 0.75 + 0.5))


def test_a_floor_is_no_more_than_what_was_measured():
    """One that was measured while another program ran would make work negative."""
    high = replace(MODEL, ceilings=replace(CEILINGS, floor_s={"compute": 99.0}))
    assert high.step_s(2, False) == pytest.approx(9.0)
    assert high.step_s(4, False) < MODEL.step_s(4, False) + 3.5
