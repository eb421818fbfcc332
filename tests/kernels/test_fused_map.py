"""Fused-Map on the CPU: the hash table assigns ids as keys are inserted."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from hypothesis import given, settings
from ops_batches import BAD, check_bad, options, threads
from ops_graphs import FRONTIERS, INDICES, INDPTR

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import HighWater, fused_map
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT


def sample(*args: Any, **how: Any) -> MiniBatch:
    """The batch, without the used capacities."""
    return fused_map(*args, **how)[0]


def test_capacity_is_the_largest_use_and_a_quarter() -> None:
    mark = HighWater()
    assert mark.capacity == []
    for took in ([8, 100], [4, 200], [2, 2]):
        mark.see(took)
    assert mark.capacity == [11, 251]
    mark.see([2**31 - 2, 0])  # at most the size limit of a block
    assert mark.capacity == [2**31 - 1, 251]


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_all_neighbours_keep_stored_order(pick: str) -> None:
    ops_batches.check_by_hand(sample, pick)


@pytest.mark.parametrize("pick", PICKS)
@settings(max_examples=20)
@given(data=st.data())
def test_same_work_on_random_graphs(pick: str, data: st.DataObject) -> None:
    ops_batches.check_random_graph(sample, pick, data)


@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("pick", ["floyd", "weighted_alias", "random_walk"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_same_work_for_any_number_of_threads(pick: str, frontier: str, dtype: torch.dtype) -> None:
    ops_batches.check_threads(sample, pick, frontier, dtype)


def test_one_thread_numbers_nodes_by_first_occurrence() -> None:
    ops_batches.check_one_thread(sample)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_nodes_inserted_by_several_threads_get_one_id(dtype: torch.dtype) -> None:
    ops_batches.check_contest(sample, dtype)


@pytest.mark.parametrize("frontier", FRONTIERS)
def test_empty_seeds_and_graphs(frontier: str) -> None:
    ops_batches.check_empty(sample, frontier)


def test_reports_the_used_capacities() -> None:
    graph = INDPTR, INDICES
    _, took = fused_map(*graph, torch.tensor([2, 0]), [3, 6], **options(graph))
    assert took == [5, 6, 6, 13]


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    check_bad(sample, changed, error, message)


def test_colliding_keys() -> None:
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
                ops_batches.check_same(
                    sample, graph, torch.tensor([0]), [200, 200], **options(graph)
                )


@pytest.mark.real_data
def test_same_work_on_a_real_graph(real_data: Path) -> None:
    graph, train = ops_batches.real_graph(real_data)
    drawn = ops_batches.check_same(sample, graph, train[:1024], [15, 10, 5], **options(graph))
    assert drawn.sampled_edges > 20_000
