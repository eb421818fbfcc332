"""Ranks with whole batches of their own take the updates of one process that sums gradients."""

import os
import signal
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from compose import counted, make, run, run_alike
from rank_fixtures import assert_a_killed_rank_ends_the_epoch
from rank_groups import SMALL
from two_processes import alive

from gnnbench.core import process_activity
from gnnbench.core.cell import Until
from gnnbench.distributed import rank_monitor
from gnnbench.distributed.process_group import RankGroup
from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.distributed.whole_epoch import WholeBatchEpoch
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime.find import find

pytestmark = pytest.mark.usefixtures("one_thread")

WHOLE = {"schedule.batches": "whole"}
NINE = {**SMALL, "batch_size": 24}  # nine batches of 200 seeds, the last one of 8


def weights_of(system):
    return torch.cat([p.detach().flatten() for p in system.trainer.model.parameters()])


def steps_of(batches, ranks):
    """Return the numbers of the batches of each update."""
    return [range(first, min(first + ranks, batches)) for first in range(0, batches, ranks)]


def in_one_process(plain, ranks, epoch):
    """Train a serial system in updates of ``ranks`` batches; returns all losses."""
    seeds, losses = plain.order.batches(epoch), []
    plain.stages.store.forget()
    for step in steps_of(len(seeds), ranks):
        batches = [plain.stages.sampler.sample(seeds[n], epoch, n) for n in step]
        losses += plain.trainer.learn_in_one((b, plain.stages.store.load(b)) for b in batches)
    return torch.tensor(losses)


def verified(system, epoch=5):
    report = system.verify(epoch, Timeline.on("cpu"))
    assert report.ok, report.reason
    return report


def learns_as_one_process(plain, system, ranks, batches, epochs=2):
    """Compare epochs with those of one process; weights of all ranks are equal bit for bit."""
    for epoch in range(epochs):
        losses, report = in_one_process(plain, ranks, epoch), run(system, epoch)
        assert report.ok, report.reason  # fails if weights differ between ranks
        assert (report.batches, report.seeds) == (batches, 200)
        assert counted(report)["schedule", "updates", ""] == -(-batches // ranks)
        assert report.loss == pytest.approx(float(losses[~losses.isnan()].mean()), rel=1e-5)
        torch.testing.assert_close(weights_of(system), weights_of(plain), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("way", ["flat", "ddp"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_updates_are_those_of_one_process(group, small_graph, ranks, way):
    """The last of four batches has 8 seeds; with three ranks two have none in the last update."""
    plain = make(small_graph, **SMALL)
    system = group(ranks, {**WHOLE, "schedule.gradients": way})
    check = system.check()
    assert check.ok and check.details["batches_an_update"] == ranks
    learns_as_one_process(plain, system, ranks, 4)
    before = system.trainer.kept()
    report, right = verified(system), verified(plain)
    assert report.digest == right.digest != ""
    assert report.sampled_edges == right.sampled_edges
    assert report.unique_nodes == right.unique_nodes
    for own, kept in zip(system.trainer.kept(), before, strict=True):
        assert torch.equal(own, kept)  # the next epoch broadcasts these weights to all ranks
    assert system.recheck(6) == "" and run(system, 7).ok


@pytest.mark.parametrize("way", ["flat", "ddp"])
def test_seeds_without_labels_weigh_nothing(group, small_graph, way):
    """Of three ranks, one has a batch without labels, and another has half of them."""
    first, second = make(small_graph, **SMALL).order.batches(0)[:2]
    labels = small_graph.labels.clone()
    labels[first[:30]], labels[second] = -1, -1
    graph = replace(small_graph, labels=labels)
    plain, system = make(graph, **SMALL), group(3, {**WHOLE, "schedule.gradients": way}, of=graph)
    learns_as_one_process(plain, system, 3, 4, epochs=1)
    verified(system, 0)


def test_fewer_batches_than_ranks_are_valid(group, small_graph):
    plain = make(small_graph, **{**SMALL, "batch_size": 500})
    system = group(3, WHOLE, batch_size=500)
    learns_as_one_process(plain, system, 3, 1)
    verified(system)


CACHED = {"features.ratio": 0.2}
SYSTEMS = [
    ("best", {}), ("fastgl", {}), ("fastgl", {"features": "window", "features.window": 3}),
    ("gnnadvisor", {}), ("gnnlab", CACHED), ("pagraph", CACHED), ("tsota", CACHED),
    ("zero-copy", {}), ("fastsample", {"features": "sharded"}),
    ("baseline", {"features": "sharded", "features.policy": "degree", **CACHED}),
    ("baseline", {"sampler.frontier": "new"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), SYSTEMS)
def test_every_native_system_has_whole_batches(group, small_graph, name, settings):
    alone = {} if settings.get("features") == "sharded" else settings
    plain = make(small_graph, name, {**alone, "schedule": "serial"}, **NINE)
    system = group(2, {**settings, **WHOLE}, system=name, **NINE)
    assert system.check().ok
    report = run(system)
    assert report.ok, report.reason
    assert counted(report)["schedule", "updates", ""] == 5
    assert verified(system).digest == verified(plain).digest != ""
    assert system.recheck(6) == ""


def test_each_rank_reuses_rows_of_its_own_last_batch(group, small_graph):
    settings = {"order": "as-drawn", "features": "match"}
    system = group(2, {**settings, **WHOLE}, system="fastgl", **NINE)
    plain = make(small_graph, "fastgl", {**settings, "schedule": "serial"}, **NINE)
    seeds, reused = plain.order.batches(0), 0
    for rank in range(2):
        own = range(rank, 9, 2)
        nodes = [plain.stages.sampler.sample(seeds[n], 0, n).input_nodes for n in own]
        reused += sum(int(torch.isin(a, b).sum()) for b, a in pairwise(nodes))
    report = run(system)
    counts = counted(report)
    assert counts["features", "feature_bytes", "reused"] == reused * 24 * 4
    assert counts["features", "feature_bytes", "host"] == (report.unique_nodes - reused) * 24 * 4


def test_each_rank_reorders_its_own_batches(group, small_graph):
    """Windows of 8 of a rank's nine batches."""
    sizes = {**SMALL, "batch_size": 12}
    system = group(2, WHOLE, system="fastgl", **sizes)
    plain = make(small_graph, "fastgl", {"schedule": "serial"}, **sizes)
    report = verified(system)
    assert counted(report)["order", "reordered", ""] > 0
    assert report.digest == verified(plain).digest
    steps = [list(step.batches) for step in system.schedule.coordination.steps]
    assert steps != [list(step) for step in steps_of(17, 2)]
    numbers = [number for step in steps for number in step]
    assert sorted(numbers) == list(range(17))
    assert [number % 2 for number in numbers] == [0, 1] * 8 + [0]


@pytest.mark.parametrize("name", ["dgl", "pyg", "pgsampler"])
def test_foreign_samplers_have_whole_batches(group, small_graph, name):
    """Also PyG, whose hops start at new nodes: a batch is sampled by one rank."""
    of, settings = ("baseline", {"sampler": name}) if name == "pgsampler" else (name, {})
    plain = make(small_graph, of, {**settings, "schedule": "serial"}, **SMALL)
    system = group(2, {**settings, **WHOLE}, system=of)
    ours = system.check()
    assert ours.ok, ours.reason
    edges = [0, 0]
    for epoch in range(8):  # of one epoch, they differ by up to 5 %
        report, one = run(system, epoch), run(plain, epoch)
        assert report.ok, report.reason
        edges = [edges[0] + report.sampled_edges, edges[1] + one.sampled_edges]
    assert edges[0] == pytest.approx(edges[1], rel=0.04)  # 5 standard deviations
    verified(system)


def test_workers_of_pyg_sample_ahead_only_the_batches_of_their_rank(small_graph):
    system = make(small_graph, "pyg", {"sampler.workers": 1}, until="sample", **SMALL)
    stage, seeds = system.stages.sampler, system.order.batches(0)
    stage.expect(0, seeds[1::2])
    loader = []
    for number in (1, 3):
        batch = stage.sample(seeds[number], 0, number)
        assert batch.number == number and torch.equal(batch.seeds, seeds[number])
        loader.append(stage._outputs)
    assert loader[0] is loader[1]
    system.close()


@pytest.mark.parametrize("until", ["sample", "memory_io"])
def test_ranks_without_a_model_sample_and_fetch(group, small_graph, until):
    run_alike(group(3, WHOLE, until=until), make(small_graph, until=until, **SMALL), 0)


def skips_a_batch(self, epoch, batches, right=WholeBatchEpoch.run):
    """Take part in the second update without a batch."""
    right(self, epoch, batches[:2])
    self._finish(batches, 1)


def takes_no_step(self, position, batches, batch, rows):
    trainer = self.stages.trainer
    self.group.gradients.begin(lambda: trainer.labels_at(batch.seeds))
    trainer.losses.append(trainer.step_of_nothing())
    return trainer.losses[-1]


def trains_on_anothers(self, position, batches, batch, rows, right=WholeBatchEpoch._train):
    sampler = self.stages.sampler
    other = sampler.sample(batches[1], 5, 1)
    rows = sampler.job.graph.features[other.input_nodes.long()]
    return right(self, position, batches, other, rows)


def samples_anothers(self, epoch, seeds, number, right=WholeBatchEpoch._sample):
    seeds = self.stages.sampler.job.graph.train_idx[: seeds.numel()]
    return right(self, epoch, seeds, number)


def weighs_twice(self, parameters, loss, labelled, right=RankGroup.all_reduce):
    return right(self, parameters, loss, labelled * 2)


@pytest.mark.parametrize(
    ("where", "name", "fault", "reason"),
    [
        (WholeBatchEpoch, "run", skips_a_batch, "1 batches were run where the epoch has 2"),
        (WholeBatchEpoch, "_train", takes_no_step, "has a loss of"),
        (WholeBatchEpoch, "_train", trains_on_anothers, "has a loss of"),
        (WholeBatchEpoch, "_sample", samples_anothers, "drawn for other seeds"),
        (RankGroup, "all_reduce", weighs_twice, "has a loss of"),
    ],
)
def test_a_wrong_rank_is_detected(group, monkeypatch, where, name, fault, reason):
    """Rank 0 is this process."""
    system = group(2, WHOLE)
    monkeypatch.setattr(where, name, fault)
    report = system.verify(5, Timeline.on("cpu"))
    assert not report.ok and reason in report.reason


def test_killed_rank_ends_the_epoch(own_group):
    assert_a_killed_rank_ends_the_epoch(own_group(3, WHOLE))


def test_rank_that_waits_for_a_hanging_one_is_not_blamed(own_group, monkeypatch):
    """Rank 1 has no batch and is stopped; rank 0 waits for it in the only update."""
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    monkeypatch.setattr(rank_monitor, "LOOK_S", 0.2)
    system = own_group(2, WHOLE, batch_size=500)
    assert run(system).ok
    os.kill(system.schedule.pids[0], signal.SIGSTOP)
    with pytest.raises(RankDiedError, match=r"rank 1 .*hangs"):
        run(system, 1)
    assert not alive(system.schedule.pids[0])


def test_unsupported_recipes_are_refused():
    def refused(system="baseline", **settings):
        all_settings = {"schedule": "data-parallel", **WHOLE, **settings}
        return find(system).resolved(all_settings, "cpu", Until.of("compute")).unsupported

    parts = {"schedule.partition": "hybrid", "schedule.method": "random"}
    assert "take partition=none" in refused(**parts)
    assert "take gradients=flat" in refused("fastgl", **{"schedule.gradients": "ddp"})
    assert "step=eager" in refused(**{"schedule.step": "padded"})
