"""Samplers with a fused id map: the same work as the reference, and refused arguments.

``fused_by_hop`` is Fused-Map as in its paper: picks hop by hop, and one hash table of ids per hop.
"""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from cpu_samplers import FUSED
from hypothesis import given, settings
from ops_batches import BAD, options
from ops_graphs import FRONTIERS, INDICES, INDPTR

from gnnbench.core.errors import UsageError
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT
from gnnbench.kernels.sampler import hop_by_hop

IDS = (torch.int32, torch.int64)
WITHOUT_WALKS = [pick for pick in PICKS if pick != "random_walk"]


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize("name", FUSED)
def test_all_neighbours_keep_stored_order(name: str, pick: str) -> None:
    ops_batches.check_by_hand(FUSED[name], pick)


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("name", FUSED)
@settings(max_examples=20)
@given(data=st.data())
def test_same_work_on_random_graphs(name: str, pick: str, data: st.DataObject) -> None:
    ops_batches.check_random_graph(FUSED[name], pick, data)


DENSE = ("fastsample", "algorithm_1")
THREADED = {
    "fused_by_hop": ("floyd", "weighted_alias", "random_walk"),
    "fused_map": ("floyd", "weighted_alias", "random_walk"),
    "gnnlab": ("fisher_yates", "weighted_prefix", "random_walk"),
}


@pytest.mark.parametrize(
    ("name", "pick", "frontier", "dtype"),
    [(n, p, f, d) for n, picks in THREADED.items() for p in picks for f in FRONTIERS for d in IDS]
    + [(n, p, f, d) for n in DENSE for p in PICKS for f, d in zip(FRONTIERS, IDS, strict=True)],
)
def test_same_work_for_any_number_of_threads(
    name: str, pick: str, frontier: str, dtype: torch.dtype
) -> None:
    ops_batches.check_threads(FUSED[name], pick, frontier, dtype)


@pytest.mark.parametrize("name", FUSED)
def test_one_thread_numbers_nodes_by_first_occurrence(name: str) -> None:
    ops_batches.check_one_thread(FUSED[name])


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("dtype", IDS)
def test_nodes_inserted_by_several_threads_get_one_id(name: str, dtype: torch.dtype) -> None:
    ops_batches.check_contention(FUSED[name], dtype)


@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("name", FUSED)
def test_empty_seeds_and_graphs_give_empty_blocks(name: str, frontier: str) -> None:
    ops_batches.check_empty(FUSED[name], frontier)


@pytest.mark.parametrize(
    ("name", "pick"),
    [("fused_by_hop", p) for p in ("floyd", "fisher_yates", "reservoir")]
    + [(name, p) for name in DENSE for p in WITHOUT_WALKS],
)
def test_rows_longer_than_a_chunk_and_a_window_of_draws(name: str, pick: str) -> None:
    ops_batches.check_long_rows(FUSED[name], pick)


@pytest.mark.parametrize(
    ("name", "threads"), [*((name, 1) for name in FUSED), *((name, 2) for name in DENSE)]
)
@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments_are_refused(
    name: str, threads: int, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    ops_batches.check_bad(FUSED[name], changed, error, message, threads)


def test_unknown_id_map_is_refused() -> None:
    graph = INDPTR, INDICES
    with pytest.raises(UsageError, match=r"id_map must be .*'fused', not 'dense'"):
        hop_by_hop(*graph, torch.tensor([2]), [3], id_map="dense", **options(graph))


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "pick", "batches"),
    [("fused_by_hop", "floyd", 1), ("fused_map", "floyd", 1), ("gnnlab", "fisher_yates", 3)]
    + [(name, pick, 1) for name in DENSE for pick in PICKS],
)
def test_same_work_on_a_real_graph(real_data: Path, name: str, pick: str, batches: int) -> None:
    graph, train = ops_batches.real_graph(real_data)
    for batch in range(batches):
        seeds, how = train[batch * 1024 :][:1024], options(graph, pick, batch=batch)
        drawn = ops_batches.check_same(FUSED[name], graph, seeds, [15, 10, 5], **how)
        assert drawn.sampled_edges > 20_000
