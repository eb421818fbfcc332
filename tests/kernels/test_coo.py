"""The pipeline that FastSample replaces, on the CPU: COO, hash map, conversion to CSC."""

from functools import partial
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from hypothesis import given, settings
from ops_batches import BAD, KEY, options
from ops_graphs import INDICES, INDPTR, csc, same
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import rng
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT
from gnnbench.kernels.sampler import hop_by_hop

COO = {"id_map": "three-pass-probing", "edges": "coo"}
IDS = (torch.int32, torch.int64)
coo_batch = partial(hop_by_hop, **COO)
probing_batch = partial(hop_by_hop, id_map="three-pass-probing")


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_all_neighbours_keep_stored_order(pick: str) -> None:
    ops_batches.check_cumulative_by_hand(coo_batch, pick)


@pytest.mark.parametrize("pick", [p for p in PICKS if p != "random_walk"])
@settings(max_examples=20)
@given(data=st.data())
def test_same_work_on_random_graphs(pick: str, data: st.DataObject) -> None:
    ops_batches.check_random_graph(coo_batch, pick, data, ("cumulative",))


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("pick", ["floyd", "fisher_yates", "weighted_alias"])
def test_blocks_equal_those_without_coo_for_any_number_of_threads(
    pick: str, dtype: torch.dtype
) -> None:
    """Edges keep their order and local ids are the same, with and without positions."""
    graph = csc((torch.arange(6000) * 7919 % 41).tolist(), dtype, 1)
    seeds = rng.permutation(6000, KEY)[:900]
    for positions in (True, False):
        how = options(graph, pick, with_positions=positions)
        expected = hop_by_hop(*graph, seeds, [8, 6, 4], **how)
        for n in (1, 2, 3, 4):
            with threads(n):
                for sample in (coo_batch, probing_batch):
                    same(sample(*graph, seeds, [8, 6, 4], **how), expected)


def test_nodes_inserted_by_several_threads_get_one_id() -> None:
    ops_batches.check_contention(coo_batch)


def test_probing_with_the_frontier_of_new_nodes() -> None:
    ops_batches.check_threads(probing_batch, "floyd", "new", torch.int32)


def test_empty_seeds_and_graphs_give_empty_blocks() -> None:
    ops_batches.check_empty(coo_batch, "cumulative")


@pytest.mark.parametrize("pick", ["floyd", "fisher_yates", "reservoir"])
def test_rows_longer_than_a_window_of_draws(pick: str) -> None:
    ops_batches.check_long_rows(coo_batch, pick)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments_are_refused(
    changed: dict[str, Any], error: type[Exception], message: str, count: int
) -> None:
    ops_batches.check_bad(coo_batch, changed, error, message, count)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"id_map": "three-pass"}, "edges 'coo' requires id_map 'three-pass-probing', frontier"),
        ({"frontier": "new"}, "edges 'coo' requires id_map 'three-pass-probing', frontier"),
        ({"pick": "random_walk", "with_positions": False}, "edges 'coo' are of picks"),
        ({"edges": "csc"}, "edges must be 'csr' or 'coo', not 'csc'"),
    ],
)
def test_combinations_that_are_refused(how: dict[str, Any], message: str) -> None:
    graph = INDPTR, INDICES
    arguments = COO | options(graph, how.get("pick", "floyd"))
    with pytest.raises(UsageError, match=message):
        hop_by_hop(*graph, torch.tensor([0]), [2], **arguments | how | {"pick": arguments["pick"]})
