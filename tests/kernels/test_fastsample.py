"""The dense map of FastSample's sampler on the CPU."""

from functools import partial

import pytest
import torch
from cpu_samplers import fastsample_batch
from ops_batches import check_same, options
from ops_graphs import INDICES, INDPTR, csc
from ops_threads import threads
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.fused import FASTSAMPLE_KERNELS, DenseMap, fastsample


def test_used_capacities_are_returned() -> None:
    dense_map = DenseMap.of(6)
    graph = INDPTR, INDICES
    how = options(graph)
    for kernel in FASTSAMPLE_KERNELS:
        _, used = fastsample(
            *graph, torch.tensor([2, 0]), [3, 6], **how, dense_map=dense_map, kernel=kernel
        )
        assert used == [5, 6, 6, 13]


@pytest.mark.parametrize("kernel", FASTSAMPLE_KERNELS)
@pytest.mark.parametrize("broken_array", ["indices", "indptr"])
def test_errors_in_one_of_many_threads_leave_the_map_clear(broken_array: str, kernel: str) -> None:
    sample = partial(fastsample_batch, kernel=kernel)
    indptr, indices = csc([30] * 5000, torch.int32, 3)
    broken = (indptr, indices.clone()) if broken_array == "indices" else (indptr.clone(), indices)
    if broken_array == "indices":
        broken[1][-1000:] = 5000
    else:
        broken[0][4000] = -1
    seeds = torch.arange(0, 4000, 2)
    for n in (1, 2, 4):
        with threads(n):
            with pytest.raises(Exception, match=f"{broken_array} (holds an id|is broken)"):
                sample(*broken, seeds, [10, 10], **options(broken))
            graph = indptr, indices
            check_same(sample, graph, seeds, [10, 10], **options(graph))


def test_an_unknown_kernel_is_refused() -> None:
    graph = INDPTR, INDICES
    with pytest.raises(UsageError, match="kernel must be 'vectorized' or 'algorithm-1', not 'fu"):
        fastsample_batch(*graph, torch.tensor([0]), [2], **options(graph), kernel="fused")


@pytest.mark.parametrize("kernel", FASTSAMPLE_KERNELS)
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.full((5,), -1, dtype=torch.int32), "dense_map must have one entry per node, 6"),
        (torch.full((6,), -1), "dense_map must be int32, it is int64"),
        (torch.full((6, 1), -1, dtype=torch.int32), "dense_map must have 1 dimension"),
        (torch.full((12,), -1, dtype=torch.int32)[::2], "dense_map must be contiguous"),
    ],
)
def test_bad_maps_are_refused(ids: Tensor, message: str, kernel: str) -> None:
    graph = INDPTR, INDICES
    how = options(graph) | {"dense_map": DenseMap(ids), "kernel": kernel}
    with pytest.raises(UsageError, match=message):
        fastsample(*graph, torch.tensor([0]), [2], **how)
