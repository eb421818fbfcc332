"""A trace of an epoch of a built system has the phases of every batch, and counts nothing."""

import gzip
import json

import pytest
from compose import make, run

from gnnbench.measure.kernel_overlap import Kernel
from gnnbench.systems.runtime.diagnostics import _overlap_facts


@pytest.mark.parametrize(
    "settings", [{}, {"schedule": "prefetch"}, {"features": "cache", "features.policy": "optimal"}]
)
def test_trace_has_the_phases_of_every_batch(small_graph, settings, tmp_path):
    system = make(small_graph, settings=settings, batch_size=100, fanouts=(3, 2))
    try:
        path = tmp_path / "trace.json.gz"
        system.diagnostics.trace(7, path)
        batches = len(system.seeds(7))
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        names = {e["name"] for e in events if e.get("cat") == "user_annotation"}
        for phase in ("sample", "memory_io", "compute"):
            assert {f"{phase} {n}" for n in range(batches)} <= names, phase
        assert run(system, 8).batches == batches  # the trace is in no audit
    finally:
        system.close()


def test_producer_writes_a_trace_of_its_own(small_graph, tmp_path):
    system = make(
        small_graph, settings={"schedule": "producer-consumer"}, batch_size=100, fanouts=(3, 2)
    )
    try:
        facts = system.diagnostics.trace(7, tmp_path / "trace.json.gz")
        producer = tmp_path / "trace-producer.json.gz"
        events = json.loads(gzip.decompress(producer.read_bytes()))["traceEvents"]
        calls = {e["name"] for e in events if e.get("cat") == "cpu_op"}
        assert any("gnnbench::" in name for name in calls)
        assert (tmp_path / "trace-producer.txt").read_text().splitlines()[0].endswith(", producer")
        assert facts == []  # there are no kernels on a CPU
        producer.unlink()
        assert run(system, 8).batches == len(system.seeds(8))
        assert not producer.exists()  # later epochs are not traced
    finally:
        system.close()


def test_overlap_is_the_mean_over_gathers():
    producer = [Kernel("gather", 100 * n, 100 * n + 50) for n in range(4)]
    consumer = [Kernel("mm", 100 * n + 25, 100 * n + 75) for n in range(3)]  # not next to the last
    times = _overlap_facts(consumer, producer)
    assert [(f["where"], f["value"]) for f in times[:2]] == [
        ("producer", 2e-7), ("consumer", 1.5e-7),
    ]  # fmt: skip
    share = times[2]
    assert (share["value"], [*share["samples"]]) == (0.375, [0.5, 0.5, 0.5, 0.0])
    assert _overlap_facts(consumer, []) == []
