"""FastSample's fused sampling on the CPU, with one dense map for all batches."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from hypothesis import given, settings
from ops_batches import BAD, check_bad, options, threads
from ops_graphs import FRONTIERS, INDICES, INDPTR, csc
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import DenseMap, fastsample
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT

_maps: dict[int, DenseMap] = {}


def sample(indptr: Tensor, *args: Any, **how: Any) -> MiniBatch:
    """Samples with a map that is kept across batches, one for each number of nodes."""
    n = indptr.numel() - 1
    dense_map = _maps.setdefault(n, DenseMap.of(n))
    try:
        return fastsample(indptr, *args, **how, dense_map=dense_map)[0]
    finally:
        assert (dense_map.ids == -1).all()


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_all_neighbours_keep_stored_order(pick: str) -> None:
    ops_batches.check_by_hand(sample, pick)


@pytest.mark.parametrize("pick", PICKS)
@settings(max_examples=15)
@given(data=st.data())
def test_same_work_on_random_graphs(pick: str, data: st.DataObject) -> None:
    ops_batches.check_random_graph(sample, pick, data)


@pytest.mark.parametrize(("frontier", "dtype"), [("cumulative", torch.int32), ("new", torch.int64)])
@pytest.mark.parametrize("pick", PICKS)
def test_same_work_for_any_number_of_threads(pick: str, frontier: str, dtype: torch.dtype) -> None:
    ops_batches.check_threads(sample, pick, frontier, dtype)


def test_one_thread_numbers_nodes_by_first_occurrence() -> None:
    ops_batches.check_one_thread(sample)


def test_nodes_inserted_by_several_threads_get_one_id() -> None:
    ops_batches.check_contest(sample)


@pytest.mark.parametrize("pick", [p for p in PICKS if p != "random_walk"])
def test_rows_longer_than_a_chunk(pick: str) -> None:
    ops_batches.check_long_rows(sample, pick)


@pytest.mark.parametrize("frontier", FRONTIERS)
def test_empty_seeds_and_graphs(frontier: str) -> None:
    ops_batches.check_empty(sample, frontier)


def test_reports_the_used_capacities() -> None:
    dense_map = DenseMap.of(6)
    graph = INDPTR, INDICES
    how = options(graph)
    _, took = fastsample(*graph, torch.tensor([2, 0]), [3, 6], **how, dense_map=dense_map)
    assert took == [5, 6, 6, 13]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments_leave_the_map_clear(
    changed: dict[str, Any], error: type[Exception], message: str, n: int
) -> None:
    check_bad(sample, changed, error, message, n)


@pytest.mark.parametrize("at", ["indices", "indptr"])
def test_errors_in_one_of_many_threads_leave_the_map_clear(at: str) -> None:
    indptr, indices = csc([30] * 5000, torch.int32, 3)
    broken = (indptr, indices.clone()) if at == "indices" else (indptr.clone(), indices)
    if at == "indices":
        broken[1][-1000:] = 5000
    else:
        broken[0][4000] = -1
    seeds = torch.arange(0, 4000, 2)
    for n in (1, 2, 4):
        with threads(n):
            with pytest.raises(Exception, match=f"{at} (holds an id|is broken)"):
                sample(*broken, seeds, [10, 10], **options(broken))
            ops_batches.check_same(
                sample, (indptr, indices), seeds, [10, 10], **options((indptr, indices))
            )


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.full((5,), -1, dtype=torch.int32), "dense_map must have one entry per node, 6"),
        (torch.full((6,), -1), "dense_map must be int32, it is int64"),
        (torch.full((6, 1), -1, dtype=torch.int32), "dense_map must have 1 dimension"),
        (torch.full((12,), -1, dtype=torch.int32)[::2], "dense_map must be contiguous"),
    ],
)
def test_bad_maps_are_refused(ids: Tensor, message: str) -> None:
    graph = INDPTR, INDICES
    with pytest.raises(UsageError, match=message):
        fastsample(*graph, torch.tensor([0]), [2], **options(graph), dense_map=DenseMap(ids))


@pytest.mark.real_data
@pytest.mark.parametrize("pick", PICKS)
def test_same_work_on_a_real_graph(real_data: Path, pick: str) -> None:
    graph, train = ops_batches.real_graph(real_data)
    drawn = ops_batches.check_same(sample, graph, train[:1024], [15, 10, 5], **options(graph, pick))
    assert drawn.sampled_edges > 20_000
