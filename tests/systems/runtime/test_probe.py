"""Verification epochs and phases by themselves, of whole systems."""

from dataclasses import replace

import pytest
import torch
from compose import SYSTEMS, make, run

from gnnbench.measure.timeline import Timeline
from gnnbench.sampling.native import native

pytestmark = pytest.mark.usefixtures("one_thread")


def verified(system, epoch):
    timeline = Timeline.on(system.cell.device)
    timeline.start()
    return system.verify(epoch, timeline)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
def test_a_verification_epoch_is_an_epoch(small_graph, name, until):
    system, twin = (make(small_graph, name, until=until) for _ in range(2))
    torch.manual_seed(0)
    report, right = verified(system, 7), run(twin, 7)
    assert (report.ok, report.reason) == (True, "")
    assert (report.batches, report.seeds) == (right.batches, right.seeds)
    assert report.digest and not right.digest
    if twin.stages.sampler.native:
        assert report.sampled_edges == right.sampled_edges
        assert report.loss == right.loss and report.param_moved == right.param_moved
        assert verified(twin, 7).digest == report.digest
    assert verified(system, 8).digest != report.digest
    assert run(system, 9).ok


@pytest.mark.parametrize("until,phases", [
    ("sample", ["sample"]),
    ("memory_io", ["sample", "memory_io"]),
    ("compute", ["sample", "memory_io", "compute"]),
])  # fmt: skip
def test_each_phase_has_a_time_and_leaves_nothing_behind(small_graph, until, phases):
    system = make(small_graph, until=until)
    alone, reason = system.probe([3, 4])
    assert (list(alone), reason) == (phases, "")
    whole = 2 * (small_graph.train_idx.numel() // system.cell.batch_size)  # of both epochs
    assert whole and all(len(times) == whole for times in alone.values())
    assert all(0 < seconds < 60 for times in alone.values() for seconds in times)
    report = run(system, 5)
    assert (report.ok, report.reason) == (True, "")
    calls = [
        value
        for stage, measure, _, value in report.counts
        if (stage, measure) == ("features", "calls")
    ]
    assert calls in ([], [report.batches])


def test_a_layer_that_stands_still_has_no_step(small_graph):
    system = make(small_graph)
    before = run(system, 0)
    assert len(before.param_moved) == 3 and all(step > 0 for step in before.param_moved)
    assert before.param_norm > 0
    for p in system.trainer.model.layers[1].parameters():
        p.requires_grad_(False)
    after = run(system, 1)
    assert [step > 0 for step in after.param_moved] == [True, False, True]
    assert after.ok  # whether it should have moved, the reference knows


@pytest.mark.parametrize("name", ["hop-by-hop", "gnnlab", "fused-map", "pgsampler"])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_every_pick_of_ours_is_verified(small_graph, name, frontier):
    picks = native(name).picks_on("cpu")
    if frontier not in native(name).frontiers:
        pytest.skip(f"{name} has no frontier '{frontier}'")
    weights = torch.arange(small_graph.num_edges, dtype=torch.float32) % 3
    graph = replace(small_graph, weights=weights)
    for pick in picks:
        settings = {"sampler": name, "sampler.pick": pick, "sampler.frontier": frontier}
        system = make(graph, settings=settings, until="memory_io")
        assert verified(system, 3).reason == "", pick
