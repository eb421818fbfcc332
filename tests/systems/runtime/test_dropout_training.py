"""Dropout of whole systems: equal masks in all of them, none outside of training."""

import pytest
import torch
from compose import make, run

from gnnbench.kernels.dropout import Masks
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime.trainer import ModelTrainer

pytestmark = pytest.mark.usefixtures("one_thread")

HALF = {"dropout": 0.5, "learning_rate": 0.01}


def losses(system, epochs=3):
    """The loss of each batch, and whether it differs from that without dropout."""
    collected = []
    for epoch in range(epochs):
        system.run_epoch(epoch, Timeline.on("cpu"))
        collected.append(torch.stack(system.trainer.losses).tolist())
        report = system.audit(epoch)
        assert report.ok, report.reason
    return collected


@pytest.fixture
def right(small_graph):
    system = make(small_graph, model="graphsage", **HALF)
    collected = losses(system)
    system.close()
    return collected


def test_dropout_changes_training(right, small_graph):
    plain = losses(make(small_graph, model="graphsage", learning_rate=0.01))
    other = losses(make(small_graph, model="graphsage", learning_rate=0.01, dropout=0.2))
    for one, two, three in zip(right, plain, other, strict=True):
        assert all(abs(a - b) > 1e-4 for a, b in zip(one, two, strict=True))
        assert all(abs(a - b) > 1e-4 for a, b in zip(one, three, strict=True))


# All draw the same edges; they have other orders of nodes, layers, schedules or steps.
EQUAL = [
    ("baseline", {"sampler": "fused-map"}),
    ("baseline", {"sampler": "fastsample"}),
    ("baseline", {"schedule": "prefetch"}),
    ("baseline", {"schedule": "alternate"}),
    ("baseline", {"schedule": "producer-consumer"}),
    ("baseline", {"schedule.step": "padded"}),
    ("baseline", {"schedule": "prefetch", "schedule.step": "padded", "sampler": "fused-map"}),
    ("baseline", {"aggregate": "scatter"}),
    ("baseline", {"aggregate": "dgl"}),
    ("baseline", {"aggregate": "pyg"}),
    ("baseline", {"aggregate.linear": "fewest-bytes"}),
    ("fastgl", {"order": "as-drawn"}),
]


@pytest.mark.parametrize("name,settings", EQUAL)
def test_systems_have_equal_losses(name, settings, right, small_graph):
    system = make(small_graph, name, settings, model="graphsage", **HALF)
    for expected, actual in zip(right, losses(system), strict=True):
        assert sorted(actual) == pytest.approx(sorted(expected), rel=1e-3)
    system.close()


def test_gate_recheck_and_verification_pass(small_graph):
    for step in ("eager", "padded"):
        system = make(small_graph, settings={"schedule.step": step}, model="gcn", **HALF)
        report = system.check()
        assert report.ok, report.reason
        assert run(system, 0).ok
        verified = system.verify(9, Timeline.on("cpu"))
        assert verified.ok, verified.reason
        assert system.recheck(11) == ""
        system.close()


@pytest.mark.parametrize("how", ["sampled", "all"])
def test_evaluation_drops_nothing(how, small_graph):
    """The accuracies of a model with equal weights that trains without dropout."""
    plain, dropping = (
        make(small_graph, model="gcn", evaluate=how, **changes) for changes in ({}, HALF)
    )
    run(dropping, 0)
    with torch.no_grad():
        for own, other in zip(
            plain.trainer.model.parameters(), dropping.trainer.model.parameters(), strict=True
        ):
            own.copy_(other)
    assert dropping.evaluate() == plain.evaluate()


def test_masks_depend_on_the_epoch_and_on_the_batch(small_graph):
    system = make(small_graph, model="gcn", **HALF)
    seeds = system.seeds(0)
    x, masks = torch.ones(64, 16), []
    for epoch, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
        system.trainer.epoch = epoch
        batch = system.stages.sampler.sample(seeds[0], 0, number)
        collected = system.trainer.masks_of(batch)
        assert (collected.p, collected.batch, collected.place) == (0.5, number, None)
        assert torch.equal(collected.nodes, batch.input_nodes)
        masks.append(Masks(torch.arange(64), 0.5, collected.key, collected.batch)(0, x))
    first, *others, again = masks
    assert torch.equal(first, again)
    assert not any(torch.equal(first, other) for other in others)


def test_hidden_rows_alone_are_dropped(small_graph):
    """Two hidden layers are dropped with layers 0 and 1, the seeds' values are not."""
    system = make(small_graph, model="gcn", **HALF)
    trainer, called = system.trainer, []
    assert isinstance(trainer, ModelTrainer)
    batch = system.stages.sampler.sample(system.seeds(0)[0], 0, 0)

    def recorded(layer, x):
        called.append((layer, x.shape[0], x.shape[1], bool((x >= 0).all())))
        return x

    trainer.model.masks = recorded
    trainer.model(trainer.framework.blocks(batch), system.stages.store.load(batch))
    counts = [block.num_dst for block in batch.blocks]
    assert called == [(0, counts[0], 16, True), (1, counts[1], 16, True)]
