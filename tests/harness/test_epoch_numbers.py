"""Numbers of epochs: when they are drawn, and which workers get them before the epoch runs."""

from types import SimpleNamespace

import pytest

from gnnbench.harness import epoch_numbers
from gnnbench.harness.available import CellFacts
from gnnbench.harness.epoch_numbers import EpochNumbers, Oracles, foresee_epoch
from gnnbench.harness.protocol import EPOCH_NUMBERS

POLICIES = {"presc": 0, "optimal": 1, "optimal#3": 3}


@pytest.fixture
def drawn(monkeypatch):
    """The numbers drawn so far: 100, 101, ..."""
    numbers = []

    def next_number():
        numbers.append(100 + len(numbers))
        return numbers[-1]

    monkeypatch.setattr(epoch_numbers, "random_epoch", next_number)
    monkeypatch.setattr(
        epoch_numbers, "cell_facts", lambda cell: CellFacts(foresees=POLICIES[cell])
    )
    return numbers


class Worker:
    """A worker that notes the epochs it is given."""

    def __init__(self, pid):
        self.pid, self.given = pid, []

    def call(self, command, epochs):
        assert command == "foresee"
        self.given.append(epochs)


CONTEXT = SimpleNamespace(attempt=lambda cell, action: action())


def test_random_numbers_differ():
    numbers = {epoch_numbers.random_epoch() for _ in range(20)}
    assert len(numbers) > 10 and all(0 <= n < EPOCH_NUMBERS for n in numbers)


def test_a_number_is_drawn_when_its_round_begins(drawn):
    numbers = EpochNumbers()
    for nth in range(3):
        assert numbers.of_round(nth) == numbers.of_round(nth) == 100 + nth
        assert len(drawn) == nth + 1


def test_a_block_has_the_numbers_of_its_rounds(drawn):
    numbers = EpochNumbers()
    assert numbers.block(1, 3) == [100, 101, 102] == drawn
    assert [numbers.of_round(nth) for nth in range(3)] == [100, 101, 102] == drawn
    assert numbers.block(3, 3) == numbers.block(5, 3) == [103, 104, 105]
    assert numbers.block(2, 2) == [102, 103] and numbers.block(0, 1) == [100]


def test_only_an_oracle_gets_numbers_and_draws_them_in_advance(drawn):
    numbers = EpochNumbers()
    oracles, worker = Oracles(CONTEXT, numbers), Worker(1)
    for nth in range(3):
        oracles.prepare("presc", worker, numbers.of_round(nth), nth)
    assert worker.given == [] and len(drawn) == 3


def test_an_oracle_of_one_epoch_gets_each_number_before_the_epoch(drawn):
    numbers = EpochNumbers()
    oracles, worker = Oracles(CONTEXT, numbers), Worker(1)
    oracles.prepare("optimal", worker, 7, 0)  # a warm-up
    for nth in range(3):
        oracles.prepare("optimal", worker, numbers.of_round(nth), nth)
        assert len(drawn) == nth + 1
    assert worker.given == [[7], [100], [101], [102]]


def test_an_oracle_of_several_epochs_gets_each_block_once(drawn):
    numbers = EpochNumbers()
    oracles, one, other = Oracles(CONTEXT, numbers), Worker(1), Worker(2)
    oracles.prepare("optimal#3", one, 7, 0)  # a warm-up: filled for the rounds that follow
    assert one.given == [[100, 101, 102]]
    for nth in range(4):
        for worker in (one, other):
            oracles.prepare("optimal#3", worker, numbers.of_round(nth), nth)
    oracles.prepare("optimal#3", one, 8, 4)  # a check between measured rounds
    assert one.given == other.given == [[100, 101, 102], [103, 104, 105]]


def test_an_epoch_that_verifies_every_batch_leaves_a_cache_of_several_epochs(drawn):
    workers = {policy: Worker(nth) for nth, policy in enumerate(POLICIES)}
    for policy, worker in workers.items():
        foresee_epoch(CONTEXT, policy, worker, 9)
    assert {p: w.given for p, w in workers.items()} == {
        "presc": [], "optimal": [[9]], "optimal#3": [],
    }  # fmt: skip
