"""Fused-Map on the CPU: the hash table assigns ids as keys are inserted."""

import torch
from cpu_samplers import fused_map_batch
from ops_batches import check_same, options
from ops_graphs import INDICES, INDPTR
from ops_threads import threads

from gnnbench.kernels.fused import HighWater, fused_map


def test_capacity_is_125_percent_of_the_largest_use() -> None:
    mark = HighWater()
    assert mark.capacity == []
    for used in ([8, 100], [4, 200], [2, 2]):
        mark.see(used)
    assert mark.capacity == [11, 251]
    mark.see([2**31 - 2, 0])  # at most the size limit of a block
    assert mark.capacity == [2**31 - 1, 251]


def test_used_capacities_are_returned() -> None:
    graph = INDPTR, INDICES
    _, used = fused_map(*graph, torch.tensor([2, 0]), [3, 6], **options(graph))
    assert used == [5, 6, 6, 13]


def test_colliding_keys_get_distinct_ids() -> None:
    # Multiples of a large stride, under a multiplicative hash of few bits, and their successors.
    stride = 1 << 16
    n = 64 * stride
    indptr = torch.zeros(n + 1, dtype=torch.int64)
    neighbors = torch.cat([torch.arange(64) * stride, torch.arange(64) * stride + 1])
    indptr[1:] = neighbors.numel()
    for dtype in (torch.int32, torch.int64):
        graph = indptr, neighbors.to(dtype)
        for workers in (1, 2):
            with threads(workers):
                check_same(fused_map_batch, graph, torch.tensor([0]), [200, 200], **options(graph))
