"""``BlockBuilder``: expected blocks of the graph 0 <- 1, 2; 1 <- 2; 2 <- 0, 3; 3 <- 1."""

import pytest
import torch

import gnnbench
from gnnbench.core.errors import UsageError
from gnnbench.validation.same_work import malformed


def ids(*values):
    return torch.tensor(values, dtype=torch.int32)


def parts(block):
    return block.indptr.tolist(), block.indices.tolist(), block.src_nodes.tolist(), block.num_dst


def built(frontier, second, seeds=(2, 0)):
    building = gnnbench.BlockBuilder(ids(*seeds), frontier)
    assert building.destinations.tolist() == [2, 0]
    building.add(ids(1, 2), ids(3, 2, 1), torch.tensor([4, 1, 0]))
    building.add(*second(building.destinations.tolist()))
    return building.batch()


def test_blocks_with_the_cumulative_frontier():
    def second(destinations):  # new nodes are numbered in ascending order of ids
        assert destinations == [2, 0, 1, 3]
        return ids(1, 0, 1, 1), ids(0, 2, 1), torch.tensor([3, 2, 5])

    batch = built("cumulative", second)
    outer, inner = batch.blocks
    assert parts(inner) == ([0, 1, 3], [3, 0, 2], [2, 0, 1, 3], 2)
    assert parts(outer) == ([0, 1, 1, 2, 3], [1, 0, 2], [2, 0, 1, 3], 4)
    assert inner.positions.tolist() == [4, 1, 0] and outer.positions.tolist() == [3, 2, 5]
    assert (batch.sampled_edges, batch.frontier) == (6, "cumulative")
    assert batch.seeds.tolist() == [2, 0] and malformed(batch) is None
    assert inner.src_nodes.dtype == inner.indices.dtype == inner.indptr.dtype == torch.int32


def test_blocks_with_the_new_frontier():
    def second(destinations):
        assert destinations == [1, 3]
        return ids(1, 1), ids(2, 1), torch.tensor([2, 5])

    batch = built("new", second)
    outer, inner = batch.blocks
    assert parts(inner) == ([0, 1, 3], [3, 0, 2], [2, 0, 1, 3], 2)
    assert parts(outer) == ([0, 1, 3, 4, 5], [3, 0, 2, 0, 2], [2, 0, 1, 3], 4)
    assert outer.positions.tolist() == [4, 1, 0, 2, 5]
    assert batch.sampled_edges == 5 and malformed(batch, "new") is None


def test_block_without_edges():
    building = gnnbench.BlockBuilder(ids(3))
    building.add(ids(0), ids())
    assert parts(building.batch().blocks[0]) == ([0, 0], [], [3], 1)


@pytest.mark.parametrize(
    "counts,neighbours,positions,words",
    [
        (ids(1), ids(3), None, "1 counts are given for 2 destinations"),
        (ids(1, 1), ids(3), None, "the counts add up to 2 where 1 neighbours are given"),
        (ids(1, 0), ids(3), ids(4, 5), "2 positions are given for 1 neighbours"),
    ],
)
def test_inconsistent_counts_are_refused(counts, neighbours, positions, words):
    with pytest.raises(UsageError, match=words):
        gnnbench.BlockBuilder(ids(2, 0)).add(counts, neighbours, positions)
