"""Verification epochs and separately timed phases on a GPU."""

from dataclasses import replace

import pytest
from compose import make, run, timed

from gnnbench.core.cell import PHASES
from gnnbench.harness.probing import probe_fault
from gnnbench.measure.timeline import Timeline
from gnnbench.schema.samples import EpochSample

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
@pytest.mark.parametrize("topology", ["gpu", "uva", "cpu"])
def test_correct_epoch_is_verified(small_graph, topology, until):
    settings = {"sampler.topology": topology}
    system = make(small_graph, settings=settings, device="cuda", until=until)
    timeline = Timeline.on("cuda")
    timeline.start()
    report = system.verify(7, timeline)
    assert (report.ok, report.reason) == (True, "")
    assert report.digest and run(system, 8).ok


@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
def test_separate_phases_take_no_longer_than_reported(small_graph, until):
    system = make(small_graph, device="cuda", until=until)
    samples = []
    for epoch in range(4):
        sweep, report = timed(system, epoch), system.audit(epoch)
        times = {f"{phase}_time_s": sweep.busy.get(phase) for phase in PHASES}
        row = EpochSample(wall_s=sweep.wall, idle_s=sweep.idle, batches=report.batches)
        samples.append(replace(row, **times))
    alone, reason = system.probe([11, 12, 13])
    assert reason == ""
    assert all(0 < seconds < 1 for times in alone.values() for seconds in times)
    least = {phase: min(times) for phase, times in alone.items()}
    assert probe_fault(samples[1:], least) == ""
    assert run(system, 5).ok
