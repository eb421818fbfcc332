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
