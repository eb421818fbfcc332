"""An index out of range gives a CUDA error, also in release builds: never a wrong row, and never
an endless wait for sizes."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

# A device assert makes CUDA unusable in its process, so each case has its own process.
SETUP = """
import torch
from gnnbench.kernels.library import load_native
load_native()
ops = torch.ops.gnnbench
def ints(*values): return torch.tensor(values, dtype=torch.int32, device="cuda")
rows = torch.ones(3, 4, device="cuda")
HOW = ([1], "floyd", [], [], "new", 1, 0, False, [])
def of_set(rows, i): return ops.gather_of_set(rows, ops.union_ids([ints(1, 5)], 40, False)[1], i)
def once(i): ops.gather_once(rows.cpu().pin_memory(), [ints(0), i], ints(0).long(), rows[:2], 16, 4)
def over(i, slot):
    known = ints(slot, 0, 0), ints(1, 0, 0)
    pages = 4096, 1, 4
    ops.gather_over(rows.cpu().pin_memory(), rows[:2], *known, 1, False, i, i[:1].long(), *pages)
def over_cache(i, slot):
    none = rows[:0], ints(0, 0, 0), ints(0, 0, 0)
    known = rows[:2], ints(slot, 0, 0), ints(1, 0, 0)
    hits = torch.zeros(2, dtype=torch.int64, device="cuda")
    ops.gather_over_cache(rows.cpu().pin_memory(), *none, 1, True, *known, 1, i, hits, 4096, 1, 4)
def sharded(i, place=0):
    places, counts = ints(place, 0, 0), torch.zeros(3, dtype=torch.int64, device="cuda")
    ops.gather_sharded([rows[:2]], 0, places, None, i, counts, 0, 1, 0, 1)
WARP = ops.aggregate_memory_aware_warp_transposed
def back(offsets, dst, call=ops.aggregate_transposed):
    edges = torch.arange(len(dst), dtype=torch.int32, device="cuda")
    block = ints(0, 0, 0, len(dst))
    return call(block, ints(*offsets), dst, edges, rows, "sum")
def late(call):
    call()  # what a first call loads and locks is there
    torch.cuda._sleep(200_000_000)
    ops.gather(rows, ints(3))
    call()
"""
CALLS = {
    "gather": "ops.gather(rows, ints(0, 3))",
    "gather-negative": "ops.gather(rows, ints(-1))",
    "gather-to": "ops.gather_to(rows, ints(3), ints(0), rows[:1].clone(), 0)",
    "gather-to-place": "ops.gather_to(rows, ints(0), ints(1), rows[:1].clone(), 0)",
    "aggregate": "ops.aggregate(ints(0, 1), ints(3), rows, 1, 'sum')",
    "aggregate-indptr": "ops.aggregate(ints(0, 2), ints(1), rows, 1, 'sum')",
    # The kernels that write the sizes are enqueued but never run.
    "waiting": "late(lambda: ops.id_map(ints(1, 2), ints(3)))",
    "waiting-batch": "late(lambda: ops.fused_map(ints(0, 1).long(), ints(0), ints(0), *HOW))",
    "union": "ops.union_ids([ints(0), ints(40)], 40, False)",
    "union-negative": "ops.union_ids([ints(-1)], 40, True)",
    "no-row-in-the-set": "of_set(rows, ints(2))",
    "beyond-the-set": "of_set(rows, ints(64))",
    "fewer-rows": "of_set(rows[:1], ints(5))",
    "once": "once(ints(3))",
    "sharded": "sharded(ints(3))",
    "sharded-place": "sharded(ints(1, 0), 2)",
    "sharded-nowhere": "sharded(ints(1, 0), -1)",
    "over": "over(ints(3), 0)",
    "over-slot": "over(ints(1, 0), 2)",
    "over-cache": "over_cache(ints(3), 0)",
    "over-cache-slot": "over_cache(ints(1, 0), 2)",
    "elementwise": "ops.gather_elementwise(rows.cpu().pin_memory(), ints(3), False)",
    "transpose": "ops.transpose(ints(0, 1), ints(3), 3)",
    "transpose-indptr": "ops.transpose(ints(0, 1), ints(1, 2), 3)",
    "symmetric": "ops.symmetric_weights(ints(0, 1), ints(3), 3)",
    "symmetric-indptr": "ops.symmetric_weights(ints(0, 1), ints(1, 2), 3)",
    "tuned": "ops.aggregate_tuned(ints(0, 1), ints(3), rows, 1, 'sum')",
    "tuned-indptr": "ops.aggregate_tuned(ints(0, 2), ints(1), rows, 1, 'sum')",
    "transposed": "back([0, 1, 1, 1], ints(3))",
    "transposed-indptr": "back([0, 2, 1, 1], ints(0))",
    "transposed-descending": "back([0, 1, 0, 1], ints(0))",
    "transposed-piece": "back([0, 99, 99, 99], ints(*[0] * 98, 3))",
    "transposed-last-piece": "back([0, 0, 0, 99], ints(*[0] * 98, -1))",
    "memory-aware": "ops.aggregate_memory_aware(ints(0, 1), ints(-1), rows, 1, 'sum', None, 8, 32)",
    "memory-aware-scatter": "ops.aggregate_memory_aware_scattered(ints(0, 1), ints(3), rows[:1], 3,"
    " 'sum', None, 8, 32)",
    "memory-aware-warp": "ops.aggregate_memory_aware_warp(ints(0, 1), ints(3), rows, 1, 'sum')",
    "memory-aware-warp-indptr": "ops.aggregate_memory_aware_warp(ints(0, 2), ints(1), rows, 1,"
    " 'sum')",
    "memory-aware-warp-transposed": "back([0, 1, 1, 1], ints(3), WARP)",
    "memory-aware-warp-transposed-piece": "back([0, 299, 299, 299], ints(*[0] * 298, 3), WARP)",
    "groups": "ops.aggregate_groups(ints(0, 1), ints(0), ints(3), rows, 1, 32)",
    "groups-of-no-row": "ops.aggregate_groups(ints(0, 1), ints(1), ints(0), rows, 1, 32)",
    "edges": "ops.edge_add(ints(0, 1), ints(3), rows, rows[:1])",
}


@pytest.fixture(scope="module")
def processes():
    """All processes start together, because the start takes most of their time."""
    begun = {
        name: subprocess.Popen(
            [sys.executable, "-c", f"{SETUP}\n{call}\ntorch.cuda.synchronize()\nprint('no error')"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name, call in CALLS.items()
    }  # fmt: skip
    yield begun
    for process in begun.values():
        with process:
            process.kill()


@pytest.mark.parametrize("name", CALLS)
def test_index_out_of_range_is_an_error(name, processes):
    stdout, stderr = processes[name].communicate(timeout=120)
    assert "no error" not in stdout
    assert processes[name].returncode != 0
    assert "device-side assert" in stderr
