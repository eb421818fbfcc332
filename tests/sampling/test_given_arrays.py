"""Arrays that other programs give for a graph, seeds and weights: used as they are meant, or
refused by name."""

import numpy as np
import pandas as pd
import pytest
import torch

import gnnbench
from gnnbench.core.errors import UsageError

INDPTR = np.array([0, 2, 3, 3, 5])
INDICES = np.array([1, 3, 0, 2, 2])
GRAPH = (torch.tensor(INDPTR), torch.tensor(INDICES))
EDGES = {(0, 1), (0, 3), (3, 2)}  # of the seeds 0 and 3, which have parallel edges too
WEIGHTED = {"pick": "weighted_prefix"}


def build(graph=GRAPH, **more):
    more.setdefault("fanouts", [-1])
    return gnnbench.build_sampler("fused-map", graph, **more)


def edges(batch):
    block = batch.blocks[-1]
    rows = torch.arange(block.num_dst).repeat_interleave(block.indptr.diff().long())
    ends = block.src_nodes[rows], block.src_nodes[block.indices.long()]
    return set(zip(*(t.tolist() for t in ends), strict=True))


@pytest.mark.parametrize("dtype", [">i8", "<i8", ">i4", "<i4"])
def test_either_byte_order(dtype):
    graph = INDPTR.astype(dtype.replace("4", "8")), INDICES.astype(dtype)
    seeds = np.array([0, 3], dtype)
    assert edges(build(graph).sample(seeds)) == EDGES
    assert build(graph).sample(seeds).seeds.tolist() == [0, 3]


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_weights_of_the_other_byte_order(dtype):
    weights = np.array([1, 0, 1, 1, 1], dtype)
    sampler = build(fanouts=[20], weights=weights, **WEIGHTED)
    assert edges(sampler.sample([0, 3])) == {(0, 1), (3, 2)}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda t: t.to_sparse(), "dense tensor with values, it is a sparse tensor"),
        (lambda t: t.to("meta"), "dense tensor with values, it is a meta tensor"),
        (lambda t: np.ma.masked_array(t.numpy(), mask=t.numpy() == 2), "masked array"),
    ],
)
def test_tensors_without_plain_values(spoil, words):
    for name, given in (("indptr", 0), ("indices", 1)):
        graph = [spoil(t) if at == given else t for at, t in enumerate(GRAPH)]
        with pytest.raises(UsageError, match=f"{name} must.*{words}"):
            build(graph)
    with pytest.raises(UsageError, match=f"seeds must.*{words}"):
        build().sample(spoil(torch.tensor([0, 2])))
    with pytest.raises(UsageError, match=f"weights must.*{words}"):
        build(fanouts=[2], weights=spoil(torch.ones(5)), **WEIGHTED)


def test_objects_of_numpy_are_no_numbers():
    with pytest.raises(UsageError, match="indices must be numbers, they are object"):
        build((INDPTR, INDICES.astype(object)))


def test_ids_beyond_int64_are_named_as_they_are():
    with pytest.raises(UsageError, match=f"the id {2**64 - 1}"):
        build().sample(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("seeds", [pd.Index([0, 3]), pd.Series([0, 3]), range(0, 4, 3)])
def test_seeds_of_pandas_and_ranges(seeds):
    assert edges(build().sample(seeds)) == EDGES


@pytest.mark.parametrize("fanouts", [b"\x02", "2", {2: 2}])
def test_what_is_no_list_of_fanouts(fanouts):
    with pytest.raises(UsageError, match="fanouts must be a list of whole numbers"):
        build(fanouts=fanouts)


def test_a_probability_of_numpy():
    build(fanouts=[2], pick="random_walk", restart=np.float32(0.5))
    with pytest.raises(UsageError, match="restart must be at least 0 and below 1"):
        build(fanouts=[2], pick="random_walk", restart=np.float32("nan"))


def test_abstract_classes():
    class Unfinished(gnnbench.Sampler):
        pass

    for cls in (gnnbench.Sampler, Unfinished):
        with pytest.raises(UsageError, match=f"class {cls.__name__} does not implement draw"):
            gnnbench.build_sampler(cls, GRAPH, [2])
