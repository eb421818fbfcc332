"""The model of more ranks, by numbers that were worked out by hand."""

from dataclasses import replace

import pytest

from gnnbench.results.forecast import Measured, Model

ONE = Measured(1, 8.5, 8.0, 0.0, 0.0, 100.0, 0.0, 0.0)
# A rank works 5 s and sends for half a second; the epoch takes 1.2 times what that adds up to.
TWO = Measured(2, 6.9, 5.0, 0.5, 0.25, 120.0, 0.5, 6000.0)


def test_a_doubling_does_what_the_first_one_did():
    model = Model(ONE, TWO)
    assert model.epoch_s(2) == pytest.approx(6.9)
    # 36 rows of a rank, 3/4 of them with others, where it was 60 and a half: 27 for 30.
    assert model.sent(4) == pytest.approx(5400.0)
    # Work 5 * 5/8, bytes 0.9 of those of 2 ranks, 3/2 of the gradients' bytes.
    assert model.epoch_s(4) == pytest.approx(1.2 * (3.125 + 0.45 + 0.375))
    # 1,024 ranks are ten doublings.
    assert model.sent(1024) == pytest.approx(
        6000 * (100 * 1.2**10 / 1024) * (1 - 2**-10) / (60 * 0.5)
    )


def test_nodes_dealt_by_lot_are_away_as_often_as_ranks_are_others():
    even = replace(TWO, rows=100.0)  # nothing is fetched twice: a rank's rows halve
    sent = [Model(ONE, even).sent(n) for n in (2, 4, 8)]
    assert sent == pytest.approx([6000.0, 6000.0 * 0.75 / 0.5 / 2, 6000.0 * 0.875 / 0.5 / 4])


def test_without_partitions_nothing_is_sent():
    model = Model(ONE, replace(TWO, exchange_s=0.0, away=0.0, sent=0.0, epoch_s=5.25))
    assert model.sent(4) == 0.0
    assert model.epoch_s(4) == pytest.approx(3.125 + 0.375)
