"""Weights that trainers update asynchronously, of two trainers in one process."""

import threading
from types import SimpleNamespace

import pytest
import torch

from gnnbench.core import process_activity
from gnnbench.core.heartbeat import Pulse
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.bounded_queue import QueueSlots, SlotAccess
from gnnbench.distributed.shared_weights import SharedWeights, begin_epoch, shared_size


@pytest.fixture
def two():
    """Two trainers with the weights [1, 2] and [3]; only those of the first one are shared."""
    sets = [[torch.tensor([[1.0, 2.0]]), torch.tensor([3.0])], [torch.zeros(1, 2), torch.zeros(1)]]
    slots = QueueSlots(1)
    address = slots.allocate(0, shared_size(sets[0]))
    begin_epoch(slots.memory(0), sets[0])
    accesses = [SlotAccess(torch.device("cpu")) for _ in sets]
    made = [
        SharedWeights(access, address, weights, Pulse.alone())
        for access, weights in zip(accesses, sets, strict=True)
    ]
    yield [SimpleNamespace(shared=s, weights=w) for s, w in zip(made, sets, strict=True)]
    for shared, access in zip(made, accesses, strict=True):
        shared.close()
        access.close()
    slots.close()


def values(trainer):
    return torch.cat([w.flatten() for w in trainer.weights]).tolist()


def change(trainer, by):
    for weights in trainer.weights:
        weights += by


def test_changes_of_both_add_up_and_staleness_is_counted(two):
    one, other = two
    assert values(other) == [1, 2, 3]
    change(one, 10)
    change(other, 100)  # from weights without the change of the first
    one.shared.exchange()
    assert values(one) == [11, 12, 13] and values(other) == [101, 102, 103]
    other.shared.exchange()
    assert values(other) == [111, 112, 113]
    for _ in range(2):
        change(other, 1)
        other.shared.exchange()
    change(one, 0.5)
    one.shared.exchange()
    assert values(one) == [113.5, 114.5, 115.5]
    assert one.shared.stale == [0, 3] and other.shared.stale == [1, 0, 0]
    other.shared.read()
    assert values(other) == values(one)


def test_no_change_of_concurrent_trainers_is_lost(two):
    def train(trainer):
        for _ in range(200):
            change(trainer, 1)
            trainer.shared.exchange()

    threads = [threading.Thread(target=train, args=(trainer,)) for trainer in two]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for trainer in two:
        trainer.shared.read()
        assert values(trainer) == [401, 402, 403]


def test_a_rank_that_keeps_the_lock_is_lost(two, monkeypatch):
    monkeypatch.setattr(process_activity, "SILENCE_S", 0.05)
    one, other = two
    with one.shared._locked(), pytest.raises(LostError, match="does not release"):
        other.shared.exchange()
    other.shared.read()
