"""Kernel rows from the events of a trace, and cells whose kernels are recorded."""

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.pairing import runs_kernels
from gnnbench.measure.kernels import kernel_rows
from gnnbench.schema.cell_internals import KERNELS
from gnnbench.schema.column import column_names


def event(name, dur, cat="kernel", **args):
    return {"cat": cat, "name": name, "dur": dur, "args": args}


def test_kernel_rows_sum_events_by_name():
    known = {
        "grid": [264, 1, 1], "block": [256, 1, 1], "registers per thread": 40,
        "shared memory": 1024, "est. achieved occupancy %": 62,
    }  # fmt: skip
    rows = kernel_rows(
        [
            event("short", 1.0),
            *(event("long", 10.0, **known) for _ in range(4)),
            event("Memcpy HtoD", 5.0, "gpu_memcpy", bytes=8),
            event("cudaLaunchKernel", 99.0, "cuda_runtime"),
            {"name": "process_name"},
        ],
        batches=2,
    )
    long, copy, short = rows
    assert (long["kernel"], long["calls"], long["occupancy"]) == ("long", 2.0, 0.62)
    assert long["device_s"] == pytest.approx(20e-6)
    assert (long["grid"], long["block"]) == ("264x1x1", "256x1x1")
    assert (long["registers"], long["shared_bytes"]) == (40, 1024)
    assert (copy["kernel"], copy["calls"], copy["grid"]) == ("Memcpy HtoD", 0.5, "")
    assert (short["registers"], short["occupancy"], short["grid"]) == (None, None, "")
    assert set(long) | {"id", "cell"} == set(column_names(KERNELS))


@pytest.mark.parametrize(("until", "device", "composed", "expected"), [
    ("compute", "cuda", True, True),
    ("memory_io", "cuda", True, True),
    ("sample", "cuda", True, False),  # recorded with the sampler's profile
    ("compute", "cpu", True, False),
    ("compute", "cuda", False, False),
])  # fmt: skip
def test_kernels_are_recorded_for_cells_beyond_sampling(until, device, composed, expected):
    cell = Cell("e", "s", "d", "m", until=until, device=device, composed=composed)
    assert runs_kernels(cell) is expected
