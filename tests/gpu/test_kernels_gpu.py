"""The kernels that a GPU ran in an epoch, by name."""

import pytest
from compose import make, run

pytestmark = pytest.mark.gpu

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches


@pytest.mark.parametrize("schedule", ["serial", "prefetch", "producer-consumer", "alternate"])
@pytest.mark.parametrize("step", ["eager", "graph"])
def test_kernels_of_a_training_epoch(schedule, step, small_graph, one_thread):
    settings = {"schedule": schedule, "schedule.step": step, "aggregate": "tuned"}
    system = make(small_graph, settings=settings, **SMALL)
    assert system.check().ok
    by_name = {row["kernel"]: row for row in system.diagnostics.kernels(9)}
    if by_name:  # none if the profiling interface is not available
        for kernel in ("row_sums_kernel", "spread_rows_kernel"):  # forward and backward
            assert sum(row["calls"] for name, row in by_name.items() if kernel in name) >= 1
        assert all(row["device_s"] > 0 and row["calls"] > 0 for row in by_name.values())
    assert run(system, 3).ok
    system.close()


@pytest.mark.parametrize("store", ["gpu", "uva", "cache", "match"])
def test_kernels_of_memory_io(store, small_graph):
    system = make(small_graph, settings={"features": store}, until="memory_io", **SMALL)
    assert system.check().ok
    rows = system.diagnostics.kernels(9)
    assert all(row["device_s"] > 0 for row in rows)
    assert run(system, 3).ok
    system.close()
