"""A producer process on the same GPU: CUDA IPC buffers are never written or read too early."""

import json
import random
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import planted_stages
import pytest
import torch
from compose import counted, make, run, without_times
from two_processes import TWO, without_own

from gnnbench.core.errors import UnsupportedError
from gnnbench.distributed import mps
from gnnbench.kernels.interprocess import DeviceMemory
from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.gpu

TINY = {"batch_size": 2, "fanouts": (3, 2), "device": "cuda"}  # a hundred batches
SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}


def looked_at(system, epoch):
    timeline = Timeline.on("cuda")
    timeline.start()
    report = system.verify(epoch, timeline)
    timeline.stop()
    return report, timeline


@pytest.mark.parametrize(
    "settings",
    [
        {"features": "uva", "features.access": "aligned"},
        {"features": "host"},
        {"features": "match", "order": "greedy", "order.window": 3},
        {"features": "window", "features.window": 3},
        {"features": "cache", "features.policy": "optimal", "features.ratio": 0.2},
    ],
    ids=["uva", "host", "match-greedy", "window", "optimal"],
)
def test_epochs_equal_those_of_one_process(settings, two, small_graph):
    system, serial = two(settings, **SMALL), make(small_graph, settings=settings, **SMALL)
    assert system.check().digest == serial.check().digest
    for epoch in range(3):
        for one in (system, serial):
            if settings.get("features.policy") == "optimal":
                one.foresee((epoch,))
        (ours, timeline), (theirs, _) = (looked_at(one, epoch) for one in (system, serial))
        assert ours.ok and theirs.ok, ours.reason
        assert ours.digest == theirs.digest and ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert without_times(without_own(ours)) == without_times(counted(theirs))
    spans = timeline.spans()
    assert {s.phase for s in spans if s.lane == "producer"} == {"sample", "memory_io"}
    slack = 1e-3  # two event clocks, each aligned by readings of the host clock
    assert all(
        timeline.begin - slack <= s.begin <= s.end + slack <= timeline.end + 2 * slack
        for s in spans
    )
    assert run(system, 9).ok and system.recheck(7) == ""


def test_delays_cause_no_early_read_or_write(planted, two, small_graph):
    """The producer's GPU work is delayed after its message, the consumer's after its reply."""
    system = two(planted("slow", "none", "slow", "none"), **TINY)
    table, step, late = small_graph.features.cuda(), system.trainer.step, random.Random(3)
    seen = []

    def slow(batch, rows):
        if late.random() < 0.2:
            torch.cuda._sleep(int(late.random() * 2e7))
        seen.append((batch.blocks[0].src_nodes, rows.clone(), batch.blocks[0].indices.clone()))
        step(batch, rows)

    system.trainer.step = slow
    for epoch in range(4):
        seen.clear()
        assert run(system, epoch).ok
        assert len(seen) == 100
        for nodes, rows, local in seen:
            assert torch.equal(rows, table[nodes.long()])
            assert local.numel() == 0 or int(local.max()) < nodes.numel()


def test_producer_that_writes_early_is_detected(planted, two, tmp_path, monkeypatch):
    mark = tmp_path / "loaded"
    monkeypatch.setenv(planted_stages.MARK, str(mark))
    system = two(planted("hasty"), until="memory_io", **SMALL)
    right = system.stages.keep

    def keep(batch, rows):
        deadline = time.monotonic() + 20
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)  # the host sets the mark
        right(batch, rows)

    system.stages.keep = keep
    report, _ = looked_at(system, 3)
    assert not report.ok and report.reason.startswith("batch 1: ")


def test_grown_and_closed_buffers_leave_no_memory(two, small_graph):
    system = two({"features": "uva"}, **SMALL)
    run(system, 9)
    few = system.order.batches
    system.order.batches = lambda epoch, device="cpu": [
        torch.cat(few(epoch, device)) for _ in range(1)
    ]
    wide = looked_at(system, 1)[0]
    grown = counted(wide)["schedule", "buffers_grown", ""]
    assert wide.ok, wide.reason
    assert grown == 1 and wide.peak_alloc_bytes > 0
    system.order.batches = few
    assert looked_at(system, 2)[0].ok
    system.close()
    assert system.schedule.client.process.returncode == 0


def test_device_memory_that_does_not_fit():
    free, _ = torch.cuda.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        DeviceMemory(2 * free + (1 << 40), torch.device("cuda:0"))
    assert float((torch.ones(3, device="cuda") + 1).sum()) == 6


def test_automatic_cache_ratio_is_unsupported_for_two_processes(two):
    with pytest.raises(UnsupportedError, match="does not derive a cache"):
        two({"features": "cache", "features.ratio": "auto"}, **SMALL)


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        ({"features": "uva", "features.access": "elementwise-shifted"}, False),
        ({"features": "uva", "features.access": "aligned"}, False),
        ({"features": "uva"}, False),
        ({"features": "host"}, False),
        ({"features": "gpu"}, False),
        ({"features": "match"}, True),
    ],
    ids=["shifted", "aligned", "pages", "host", "gpu", "match"],
)
def test_three_processes_do_the_work_of_one(settings, copies, two, small_graph):
    """The sampler's process is on the CPU; rows are gathered where the consumer reads them."""
    settings = {**settings, "sampler.topology": "cpu"}
    system = two({**settings, "schedule.processes": 3}, **SMALL)
    serial = make(small_graph, settings=settings, **SMALL)
    assert system.check().digest == serial.check().digest
    for epoch in range(3):
        (ours, timeline), (theirs, _) = (looked_at(one, epoch) for one in (system, serial))
        assert ours.ok and theirs.ok, ours.reason
        assert ours.digest == theirs.digest and ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert without_times(without_own(ours)) == without_times(counted(theirs))
        assert (counted(ours)["schedule", "copied_bytes", ""] > 0) == copies
    lanes = {(s.lane, s.phase) for s in timeline.spans()}
    assert {("sampler", "sample"), ("producer", "memory_io"), ("stream", "compute")} <= lanes
    assert run(system, 9).ok and system.recheck(7) == ""


def test_delays_of_three_processes_cause_no_early_read_or_write(planted, two, small_graph):
    topology = {"schedule.processes": 3, "sampler.topology": "cpu"}
    system = two({**planted("slow", "none", "slow"), **topology}, **TINY)
    table, step, late = small_graph.features.cuda(), system.trainer.step, random.Random(3)

    def slow(batch, rows):
        if late.random() < 0.2:
            torch.cuda._sleep(int(late.random() * 2e7))
        assert torch.equal(rows, table[batch.blocks[0].src_nodes.long()])
        step(batch, rows)

    system.trainer.step = slow
    for epoch in range(3):
        assert run(system, epoch).ok


def test_share_of_a_process_that_uses_the_gpu_already_is_refused(two):
    """Its share would have no effect; where no MPS daemon runs that is the reason."""
    with pytest.raises(UnsupportedError, match=r"MPS daemon|trainer_share=50 has no effect"):
        two({"schedule.trainer_share": 50}, **SMALL)


def test_processors_as_a_process_without_a_share_sees_them(monkeypatch):
    monkeypatch.setenv(mps.SHARE, "10")
    count = torch.cuda.get_device_properties(0).multi_processor_count
    assert mps.whole_processors(0) == count


@pytest.fixture
def mps_daemon(tmp_path, monkeypatch):
    """A daemon of the test's own. Fails where it does not start."""
    for name in ("PIPE", "LOG"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setenv(f"CUDA_MPS_{name}_DIRECTORY", str(folder))
    subprocess.run([mps.CONTROL, "-d"], check=True, timeout=60)
    yield
    subprocess.run([mps.CONTROL], input="quit\n", text=True, check=True, timeout=60)


WORKER = """
import json, sys
sys.path[:0] = {path!r}
from gnnbench.core.cell import Cell
from gnnbench.distributed.producer_consumer import start_early
cell = Cell.from_json(json.loads(sys.argv[1]))
start_early(cell)
import conftest, torch
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime.runner import SystemRunner
system = SystemRunner(cell, conftest.small_graph._get_wrapped_function()())
system.setup()
timeline = Timeline.on("cuda")
timeline.start()
report = system.verify(1, timeline)
timeline.stop()
system.close()
processors = torch.cuda.get_device_properties(0).multi_processor_count
print(json.dumps([report.ok, report.reason, processors]))
"""


@pytest.mark.parametrize("processes", [2, 3])
def test_mps_limits_producer_and_trainer(processes, mps_daemon, small_graph):
    """Shares of 10 and 90 % (PyTorch-Direct, section 4.3). The producer refuses a share without
    effect, and so does the worker, which reports its processors. Fails where MPS does not run."""
    shares = {"schedule.share": 10, "schedule.trainer_share": 90}
    settings = {**TWO, **shares, "features": "uva", "sampler.topology": "cpu"}
    settings["schedule.processes"] = processes
    cell = make(small_graph, settings=settings, setup=False, **SMALL).cell
    tests = Path(__file__).parents[1]
    worker = WORKER.format(path=[str(tests), str(tests / "gpu")])
    done = subprocess.run(
        [sys.executable, "-c", worker, json.dumps(asdict(cell))],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    is_right, reason, processors = json.loads(done.stdout.splitlines()[-1])
    assert is_right, reason
    whole = torch.cuda.get_device_properties(0).multi_processor_count
    assert 0.8 * whole <= processors <= 0.9 * whole + mps.GRAIN


def test_kernels_of_both_processes_are_traced(two, tmp_path):
    system = two({"features": "uva", "features.access": "elementwise"}, **SMALL)
    facts = system.diagnostics.trace(7, tmp_path / "trace.json.gz")
    values = {(f["name"], f["where"]): f["value"] for f in facts}
    assert values["kernel_time_s", "producer"] > 0 and values["kernel_time_s", "consumer"] > 0
    assert 0 <= values["kernel_overlap", ""] <= 1
    (overlap,) = (f for f in facts if f["name"] == "kernel_overlap")
    assert overlap["n"] == len(system.seeds(7))
    assert "elementwise_kernel" in (tmp_path / "trace-producer.txt").read_text()
