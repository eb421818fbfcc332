"""A trace of an epoch of a built system has the phases of every batch, and counts nothing."""

import gzip
import json

import pytest
from compose import make, run


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
        # there are no kernels on a CPU
        assert [(f["name"], f["where"], f["value"]) for f in facts] == [
            ("kernel_time_s", "producer", 0), ("kernel_time_s", "consumer", 0),
            ("kernel_overlap_s", "", 0),
        ]  # fmt: skip
        producer.unlink()
        assert run(system, 8).batches == len(system.seeds(8))
        assert not producer.exists()  # later epochs are not traced
    finally:
        system.close()
