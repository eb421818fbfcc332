"""Fanout -1: every neighbour once, by every whole-batch operator and pick without replacement."""

import itertools
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from cpu_samplers import SAMPLERS
from hypothesis import given, settings
from ops_batches import KEY, check_same, options
from ops_graphs import FRONTIERS, INDICES, INDPTR, csc, graphs
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import sampler
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT
from gnnbench.kernels.reference import sampler as reference

WITH_FRONTIERS = [name for name in SAMPLERS if name != "pgsampler"]


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize("name", WITH_FRONTIERS)
def test_batch_by_hand(name: str, pick: str) -> None:
    ops_batches.check_by_hand(SAMPLERS[name], pick, (-1, -1), (-1, -1, -1))
    ops_batches.check_by_hand(SAMPLERS[name], pick, (3, -1), (-1, 3, 9))


def test_reference_by_hand() -> None:
    ops_batches.check_by_hand(reference.sample, "reservoir", (-1, -1), (-1, -1, -1))


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize(
    ("name", "frontier"),
    [*itertools.product(WITH_FRONTIERS, FRONTIERS), ("pgsampler", "cumulative")],
)
@settings(max_examples=10)
@given(graph=graphs(), hops=st.integers(1, 3), data=st.data())
def test_number_of_edges_is_the_degree_up_to_the_fanout(
    name: str, frontier: str, pick: str, graph: Any, hops: int, data: st.DataObject
) -> None:
    """On any graph, alone or mixed with other fanouts, equal to the reference."""
    fanouts = data.draw(st.lists(st.sampled_from([-1, -1, 2]), min_size=hops, max_size=hops))
    n = graph[0].numel() - 1
    seeds = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), max_size=5, unique=True)))
    seeds = seeds.to(graph[1].dtype)
    how = options(graph, pick, frontier=frontier)
    batch = check_same(SAMPLERS[name], graph, seeds, fanouts, reference.sample, **how)
    batch.frontier = frontier
    for fanout, hop in zip(fanouts, batch.hops(), strict=True):
        degrees = graph[0].diff()[torch.from_numpy(hop.dst)]
        expected = degrees if fanout == -1 else degrees.clamp(max=fanout)
        assert hop.edge_dst.size == int(expected.sum())


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
@pytest.mark.parametrize("name", SAMPLERS)
def test_rows_longer_than_all_buffers(name: str, pick: str, count: int) -> None:
    """Rows longer than a thread handles at once equal those of a fanout above every degree."""
    graph = csc([20_000, 0, 5000, 600, 1, *[3] * 3000], torch.int32, 4)
    seeds = torch.tensor([0, 2, 1, 3, 4, 3000])
    with threads(count):
        how = options(graph, pick)
        batch = SAMPLERS[name](*graph, seeds, [-1, 2], **how)
        expected = sampler.hop_by_hop(*graph, seeds, [20_000, 2], **how)
    ops_batches.check_same_work(batch, expected, "cumulative")
    assert batch.blocks[-1].num_edges == 20_000 + 5000 + 600 + 1 + 3


def test_single_hop_has_all_neighbours() -> None:
    dst = torch.tensor([4, 3, 2], dtype=torch.int32)
    for sample_hop in (sampler.sample_hop, reference.sample_hop):
        indptr, neighbors, positions, weights = sample_hop(
            INDPTR, INDICES, dst, -1, pick="reservoir", key=KEY, hop=0, batch=0
        )
        assert indptr.tolist() == [0, 6, 6, 9]
        assert neighbors.tolist() == [0, 1, 2, 3, 4, 5, 2, 4, 4]
        assert positions.tolist() == [7, 8, 9, 10, 11, 12, 4, 5, 6]
        assert weights.numel() == 0


@pytest.mark.parametrize(
    ("name", "pick"),
    [
        (name, pick)
        for name in SAMPLERS
        for pick in PICKS[len(WITHOUT_REPLACEMENT) :]
        if (name, pick) != ("pgsampler", "random_walk")  # unsupported
    ],
)
def test_other_picks_refuse_fanout_minus_one(name: str, pick: str) -> None:
    graph = INDPTR, INDICES
    with pytest.raises(UsageError, match="requires a pick without replacement"):
        SAMPLERS[name](*graph, torch.tensor([0]), [2, -1], **options(graph, pick))
