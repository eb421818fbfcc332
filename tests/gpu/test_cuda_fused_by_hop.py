"""Fused-Map as in its paper (a map for each hop) on the GPU: the same edges as on the CPU."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from gpu_graphs import Csc, skewed

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels.picks import PICKS, PickSpec
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]
FRONTIERS = ["cumulative", "new"]
HOW = {"key": 0x0123_4567_89AB_CDEF, "batch": 3, "with_positions": True}

fused = partial(hop_by_hop, id_map="fused")


def spec_of(pick: str, csc: Csc) -> PickSpec:
    if pick.startswith("weighted"):
        weights = torch.arange(csc.indices.numel(), dtype=torch.float32) * 7 % 5
        return PickSpec.weighted(pick, csc.indptr, weights)
    return PickSpec.random_walk(7, 3, 0.3) if pick == "random_walk" else PickSpec.of(pick)


def on_gpu(csc: Csc, seeds: torch.Tensor, fanouts: list[int], spec: PickSpec, frontier: str):
    there = PickSpec(spec.name, tuple(t.cuda() for t in spec.tables), spec.walk)
    graph = csc.indptr.cuda(), csc.indices.cuda()
    return fused(*graph, seeds.cuda(), fanouts, pick=there, frontier=frontier, **HOW)


# Node 0: isolated; 1: a self-loop; 2: parallel edges; 3: as many neighbours as the fanout.
HAND = Csc(torch.tensor([0, 0, 1, 4, 6]), torch.tensor([1, 3, 3, 3, 0, 1], dtype=torch.int32))


@pytest.mark.parametrize("dtype", IDS)
def test_batch_by_hand(dtype):
    csc = Csc(HAND.indptr, HAND.indices.to(dtype))
    seeds = torch.tensor([2, 3, 0], dtype=dtype)
    got = on_gpu(csc, seeds, [2, 2], PickSpec.of("floyd"), "cumulative")
    outer, inner = got.blocks
    assert inner.indptr.tolist() == [0, 2, 4, 4]
    assert inner.indices.tolist() == [1, 1, 2, 3]  # one new node, 1, so its local id is determined
    assert inner.src_nodes.tolist() == [2, 3, 0, 1]
    assert outer.indptr.tolist() == [0, 2, 4, 4, 5]
    assert outer.indices.tolist() == [1, 1, 2, 3, 3]
    assert outer.src_nodes.tolist() == [2, 3, 0, 1]
    assert outer.src_nodes.dtype == dtype


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2]])
def test_batch_equals_cpu(pick, frontier, dtype, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=700)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:300].to(dtype)
    spec = spec_of(pick, csc)
    got = on_gpu(csc, seeds, fanouts, spec, frontier)
    right = hop_by_hop(csc.indptr, csc.indices, seeds, fanouts, pick=spec, frontier=frontier, **HOW)
    assert same_work(right, got, frontier) is None


def test_empty_seeds_and_graphs():
    for frontier in FRONTIERS:
        no_seeds = torch.empty(0, dtype=torch.int32)
        got = on_gpu(HAND, no_seeds, [2, 2], PickSpec.of("floyd"), frontier)
        assert [(b.num_dst, b.num_src, b.num_edges) for b in got.blocks] == [(0, 0, 0)] * 2


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("hops", [1, 2])
def test_errors_of_a_hop_are_reported_by_its_map(dtype, hops):
    fanouts = [2] * hops
    whole = Csc(HAND.indptr, HAND.indices.to(dtype))
    for bad in (4, -1, 2**31 - 1):
        indices = whole.indices.clone()
        indices[5] = bad
        broken = replace(whole, indices=indices)
        with pytest.raises(DataError, match="indices holds an id that is not a node"):
            on_gpu(broken, torch.tensor([3]), fanouts, PickSpec.of("floyd"), "cumulative")
    with pytest.raises(UsageError, match="seeds holds an id twice"):
        on_gpu(whole, torch.tensor([3, 2, 3]), fanouts, PickSpec.of("floyd"), "cumulative")
    with pytest.raises(UsageError, match="seeds holds an id outside the graph"):
        on_gpu(whole, torch.tensor([4]), fanouts, PickSpec.of("floyd"), "cumulative")
