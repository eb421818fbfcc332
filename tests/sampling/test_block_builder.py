"""``BlockBuilder``: blocks written out, on the graph 0 <- 1, 2; 1 <- 2; 2 <- 0, 3; 3 <- 1."""

import pytest
import torch

import gnnbench
from gnnbench.core.errors import UsageError
from gnnbench.validation.same_work import malformed


def ids(*values):
    return torch.tensor(values, dtype=torch.int32)


def block(found):
    return found.indptr.tolist(), found.indices.tolist(), found.src_nodes.tolist(), found.num_dst


def built(frontier, second, seeds=(2, 0)):
    building = gnnbench.BlockBuilder(ids(*seeds), frontier)
    assert building.destinations.tolist() == [2, 0]
    building.add(ids(1, 2), ids(3, 2, 1), torch.tensor([4, 1, 0]))
    building.add(*second(building.destinations.tolist()))
    return building.batch()


def test_cumulative():
    def second(asked):  # nodes that are new are numbered by their ids
        assert asked == [2, 0, 1, 3]
        return ids(1, 0, 1, 1), ids(0, 2, 1), torch.tensor([3, 2, 5])

    batch = built("cumulative", second)
    outer, inner = batch.blocks
    assert block(inner) == ([0, 1, 3], [3, 0, 2], [2, 0, 1, 3], 2)
    assert block(outer) == ([0, 1, 1, 2, 3], [1, 0, 2], [2, 0, 1, 3], 4)
    assert inner.positions.tolist() == [4, 1, 0] and outer.positions.tolist() == [3, 2, 5]
    assert (batch.sampled_edges, batch.frontier) == (6, "cumulative")
    assert batch.seeds.tolist() == [2, 0] and malformed(batch) is None
    assert inner.src_nodes.dtype == inner.indices.dtype == inner.indptr.dtype == torch.int32


def test_new():
    def second(asked):
        assert asked == [1, 3]
        return ids(1, 1), ids(2, 1), torch.tensor([2, 5])

    batch = built("new", second)
    outer, inner = batch.blocks
    assert block(inner) == ([0, 1, 3], [3, 0, 2], [2, 0, 1, 3], 2)
    assert block(outer) == ([0, 1, 3, 4, 5], [3, 0, 2, 0, 2], [2, 0, 1, 3], 4)
    assert outer.positions.tolist() == [4, 1, 0, 2, 5]
    assert batch.sampled_edges == 5 and malformed(batch, "new") is None


def test_no_neighbour_at_all():
    building = gnnbench.BlockBuilder(ids(3))
    building.add(ids(0), ids())
    assert block(building.batch().blocks[0]) == ([0, 0], [], [3], 1)


@pytest.mark.parametrize(
    "counts,neighbours,positions,words",
    [
        (ids(1), ids(3), None, "1 counts are given for 2 destinations"),
        (ids(1, 1), ids(3), None, "the counts add up to 2 where 1 neighbours are given"),
        (ids(1, 0), ids(3), ids(4, 5), "2 positions are given for 1 neighbours"),
    ],
)
def test_what_does_not_fit(counts, neighbours, positions, words):
    with pytest.raises(UsageError, match=words):
        gnnbench.BlockBuilder(ids(2, 0)).add(counts, neighbours, positions)
