"""Fused-Map as in its paper: DGL's picks hop by hop, and one hash table of ids per hop."""

from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from hypothesis import given, settings
from ops_batches import BAD, check_bad, options
from ops_graphs import FRONTIERS, INDICES, INDPTR

from gnnbench.core.errors import UsageError
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT
from gnnbench.kernels.sampler import hop_by_hop

sample = partial(hop_by_hop, id_map="fused")


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


@pytest.mark.parametrize("pick", ["floyd", "fisher_yates", "reservoir"])
def test_rows_longer_than_one_window_of_draws(pick: str) -> None:
    ops_batches.check_long_rows(sample, pick)


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    check_bad(sample, changed, error, message)


def test_unknown_id_map_is_refused() -> None:
    graph = INDPTR, INDICES
    with pytest.raises(UsageError, match="id_map must be 'three-pass' or 'fused', not 'dense'"):
        hop_by_hop(*graph, torch.tensor([2]), [3], id_map="dense", **options(graph))


@pytest.mark.real_data
def test_same_work_on_a_real_graph(real_data: Path) -> None:
    graph, train = ops_batches.real_graph(real_data)
    ops_batches.check_same(sample, graph, train[:1024], [15, 10, 5], **options(graph))
