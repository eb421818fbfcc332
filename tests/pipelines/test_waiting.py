"""Waiting batches of Greedy Reorder in host memory: the same epochs, and what is kept of them."""

import gc
import weakref

import pytest
import torch
from compose import make, run

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.kernels.transpose import transposed
from gnnbench.pipelines.waiting import HostBatches, WaitingBatch
from gnnbench.systems.runtime.find import find


def batch(number):
    ids = torch.arange(number, number + 4, dtype=torch.int32)
    indptr, indices = torch.tensor([0, 2]).int(), torch.tensor([1, 3]).int()
    return MiniBatch(ids[:1], [Block(indptr, indices, ids, 1)], 2, number=number)


def test_batches_wait_and_are_taken_one_by_one():
    host = HostBatches(torch.device("cpu"))
    sampled = [host.put(batch(n)) for n in (5, 6, 7)]
    assert [one.input_nodes.tolist()[0] for one in sampled] == [5, 6, 7]
    assert [one.number for one in sampled] == [5, 6, 7]

    first = host.take(sampled, 0)
    assert sampled[0] is first and first.number == 5
    assert first.blocks[0].indices.tolist() == [1, 3]
    assert sampled[1].batch is not None and sampled[2].batch is None  # only the next is fetched
    with pytest.raises(AssertionError, match="were freed"):
        _ = sampled[2].input_nodes
    freed = weakref.ref(first.blocks[0])
    host.release(sampled, 0)
    del first
    gc.collect()
    assert freed() is None and sampled[0].tensors() == []

    host.take(sampled, 1)
    host.release(sampled, 1)
    host.take(sampled, 2)
    host.release(sampled, 2)
    assert isinstance(sampled[2], WaitingBatch)
    assert sampled[2].input_nodes.tolist() == [7, 8, 9, 10]  # by which a window may be arranged
    assert sampled[2].batch is None


def test_waiting_batches_are_not_counted_before_they_are_taken():
    waiting = HostBatches(torch.device("cpu")).put(batch(1))
    for read in (waiting.sizes, waiting.hops):
        with pytest.raises(UnsupportedError, match="must be taken before"):
            read()


@pytest.mark.parametrize("start", ["first", "carried"])
@pytest.mark.parametrize("features", ["host", "match"])
def test_epochs_are_those_of_batches_that_wait_on_the_device(small_graph, features, start):
    settings = {"order": "greedy", "order.window": 3, "order.start": start, "features": features}
    losses = {}
    for waiting in ("device", "host"):
        system = make(small_graph, settings={**settings, "order.waiting": waiting})
        report = system.check()
        assert report.ok, report.reason
        audits = [run(system, epoch) for epoch in range(2)]
        assert all(audit.ok for audit in audits), audits
        losses[waiting] = [audit.loss for audit in audits]
    assert all(losses["device"]) and losses["device"] == losses["host"]


def test_transposes_are_freed_after_each_step(small_graph):
    made = make(small_graph, settings={"order": "greedy", "order.waiting": "host"})
    drawn = batch(0)
    transposed(drawn.blocks[0])
    made.stages.stepped(drawn)
    assert drawn.blocks[0].transposed is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"schedule": "prefetch"}, "take schedule=serial, or waiting=device"),
        ({"features": "window"}, "take features=match, or waiting=device"),
        ({"sampler": "dgl", "aggregate": "dgl"}, "take one of gnnbench's own samplers"),
    ],
)
def test_recipes_whose_batches_cannot_be_moved_are_refused(settings, reason):
    waits = {"order": "greedy", "order.waiting": "host", **settings}
    assert reason in find("baseline").resolved(waits, "cpu", Until.COMPUTE).unsupported
    stays = waits | {"order.waiting": "device"}
    assert not find("baseline").resolved(stays, "cpu", Until.COMPUTE).unsupported
