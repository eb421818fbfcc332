"""Compositions on small graphs, and an epoch of them as the harness runs it."""

from __future__ import annotations

import threading

import pytest
import torch

from gnnbench.core.cell import Cell, Until
from gnnbench.measure.timeline import Timeline
from gnnbench.models.kinds import MODELS
from gnnbench.pipelines.threads import NAME
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner

SYSTEMS = ["baseline", "dgl", "fastsample", "pgsampler", "pyg", "pyg-native-sampler"]
# Every kind of layers with every model; systems that share them with one model each.
TRAINED = [
    *((name, model) for name in ("baseline", "dgl", "pyg") for model in sorted(MODELS)),
    ("fastsample", "graphsage"), ("pgsampler", "gin"), ("pyg-native-sampler", "gat"),
]  # fmt: skip


def make(graph, system="baseline", settings=None, until="compute", setup=True, **changes):
    """A composed system of a name and its settings by path, on the CPU; skipped if not here."""
    named = find(system)
    goes = Until.of(until)
    resolved = named.resolved(settings or {}, changes.get("device", "cpu"), goes)
    assert not resolved.unsupported, resolved.unsupported
    values = {
        "model": "gcn" if goes is Until.COMPUTE else "",
        "batch_size": 64,
        "fanouts": (4, 3, 2),
        "hidden": 16,
        "seed": 3,
        **changes,
    }
    cell = Cell("test", system, graph.name, until=until, recipe=resolved.recipe, **values)
    composed = named.build(cell, graph)
    assert isinstance(composed, SystemRunner)
    if missing := composed.recipe.missing(cell.device, goes):
        pytest.skip(f"{system}: {missing.reason}")
    if setup:
        composed.setup()
    return composed


def epoch_timeline(system, epoch=0):
    """Run an epoch; its timeline."""
    timeline = Timeline.on(system.cell.device)
    timeline.start()
    system.run_epoch(epoch, timeline)
    timeline.stop()
    return timeline


def timed(system, epoch):
    """Run an epoch under a timeline; what the timeline adds up to."""
    return epoch_timeline(system, epoch).sweep()


def verify_timed(system, epoch=2):
    """Verify an epoch; the report and the timeline."""
    timeline = Timeline.on(system.cell.device)
    timeline.start()
    report = system.verify(epoch, timeline)
    timeline.stop()
    return report, timeline


def run(system, epoch=0):
    """Run and audit an epoch."""
    timed(system, epoch)
    return system.audit(epoch)


def run_alike(system, plain, epoch):
    """An epoch of two systems that are to do the same work: both reports."""
    ours, theirs = run(system, epoch), run(plain, epoch)
    assert ours.ok and theirs.ok, ours.reason
    assert (ours.loss is None) == (theirs.loss is None)
    if ours.loss is not None:  # both train
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
    assert (ours.sampled_edges, ours.unique_nodes) == (theirs.sampled_edges, theirs.unique_nodes)
    return ours, theirs


def run_epochs(system, epochs=3, but=()):
    """Losses of every batch, counts but times and those of some names, and norms by epoch."""
    results = []
    for epoch in range(epochs):
        if system.recipe.features.foresees:
            system.foresee((epoch,))
        timed(system, epoch)
        losses = torch.stack(system.trainer.losses).tolist()
        report = system.audit(epoch)
        assert report.ok, report.reason
        counts = {k: n for k, n in without_times(counted(report)).items() if k[1] not in but}
        results.append((losses, counts, report.param_norm, report.param_moved))
    return results


def assert_no_thread_is_left():
    """Of those that a schedule starts."""
    assert [t for t in threading.enumerate() if t.name == NAME] == []


def without_times(counts):
    """Counts that two runs of the same work have in common."""
    return {key: n for key, n in counts.items() if not key[1].endswith("_s")}


def counted(report):
    """An audit's counts by stage, measure and place."""
    return {(stage, name, where): value for stage, name, where, value in report.counts}
