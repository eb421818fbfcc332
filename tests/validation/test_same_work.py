"""Equality up to renaming, on one batch written out by hand and on renamed random ones.

In-neighbours:  0 <- 1, 2, 3    1 <- 0    2 <- (none)    3 <- 3, 0, 0  (self-loop, parallel edge)
positions:           0  1  2         3                        4  5  6
Seed 0. Hop 1 draws 0<-1 and 0<-3; hop 2 draws 1<-0 and 3<-3, and 0<-2 where it is cumulative.
"""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.kernels.reference.sampler import sample
from gnnbench.validation.same_work import malformed, same_work


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def outer() -> Block:
    return Block(i32(0, 2), i32(1, 2), torch.tensor([0, 1, 3]), 1, torch.tensor([0, 2]))


def cumulative() -> MiniBatch:
    nodes = torch.tensor([0, 1, 3, 2])
    block = Block(i32(0, 1, 2, 3), i32(3, 0, 2), nodes, 3, torch.tensor([1, 3, 4]))
    return MiniBatch(torch.tensor([0]), [block, outer()], 5)


def new() -> MiniBatch:
    nodes = torch.tensor([0, 1, 3])
    block = Block(i32(0, 2, 3, 4), i32(1, 2, 0, 2), nodes, 3, torch.tensor([0, 2, 3, 4]))
    return MiniBatch(torch.tensor([0]), [block, outer()], 4)


def changed(batch: MiniBatch, at: int, **values: object) -> MiniBatch:
    """``batch`` with other values in block ``at``."""
    blocks = list(batch.blocks)
    blocks[at] = replace(blocks[at], **values)
    return replace(batch, blocks=blocks)


def test_hand_made_batches_are_well_formed_and_equal_to_themselves():
    assert malformed(cumulative()) is None
    assert malformed(new(), "new") is None
    assert same_work(cumulative(), cumulative()) is None
    assert same_work(new(), new(), "new") is None


def test_other_local_ids_and_another_order_of_edges_are_the_same_work():
    # 0 -> 0, 3 -> 1, 1 -> 2, 2 -> 3; the row of 0 is stored the other way round.
    first = Block(i32(0, 2), i32(1, 2), torch.tensor([0, 3, 1]), 1, torch.tensor([2, 0]))
    nodes = torch.tensor([0, 3, 1, 2])
    second = Block(i32(0, 1, 2, 3), i32(3, 1, 0), nodes, 3, torch.tensor([1, 4, 3]))
    renamed = MiniBatch(torch.tensor([0], dtype=torch.int32), [second, first], 5)
    assert same_work(cumulative(), renamed) is None


@pytest.mark.parametrize(
    ("at", "values", "words"),
    [
        (1, {"indptr": i32(0, 1)}, "hop 1: indptr does not rise"),
        (0, {"indptr": i32(0, 2, 1, 3)}, "hop 2: indptr does not rise"),
        (0, {"indptr": i32(0, 3)}, "indptr has 2 entries for 3"),
        (0, {"indices": i32(4, 0, 2)}, "outside the 4 source nodes"),
        (0, {"indices": i32(3, -1, 2)}, "outside the 4 source nodes"),
        (0, {"src_nodes": torch.tensor([0, 1, 3, 1])}, "listed twice"),
        (0, {"src_nodes": torch.tensor([0, 3, 1, 2])}, "not the nodes known before"),
        (1, {"src_nodes": torch.tensor([2, 1, 3])}, "not the seeds"),
        (0, {"src_nodes": torch.tensor([0, 1, 3, 2, 9])}, "source node 9 is neither"),
        (0, {"positions": torch.tensor([1, 3])}, "2 positions for 3 edges"),
        (0, {"weights": torch.ones(4)}, "4 weights for 3 edges"),
    ],
)
def test_every_broken_rule_of_the_form_is_named(at, values, words):
    fault = malformed(changed(cumulative(), at, **values))
    assert fault is not None and words in fault
    assert "second mini-batch is malformed" in str(
        same_work(cumulative(), changed(cumulative(), at, **values))
    )


def test_blocks_of_the_new_frontier_are_prefixes_and_count_edges_once():
    fault = malformed(changed(new(), 0, indices=i32(2, 1, 0, 2)), "new")
    assert fault is not None and "does not begin with the rows" in fault
    assert "sampled_edges is 6" in str(malformed(replace(new(), sampled_edges=6), "new"))
    assert "sampled_edges is 3" in str(malformed(replace(cumulative(), sampled_edges=3)))


@pytest.mark.parametrize(
    ("at", "values", "words"),
    [
        # The parallel edge 5 in place of 4: another edge though the row is as long.
        (0, {"positions": torch.tensor([1, 3, 5])}, "(3, 4, 3) in the first and (3, 5, 3)"),
        (0, {"indices": i32(3, 0, 0)}, "(3, 4, 3) in the first and (3, 4, 0)"),
        (0, {"indptr": i32(0, 2, 2, 3)}, "hop 2: the edges differ"),
        (0, {"positions": None}, "only one of the two mini-batches carries positions"),
        (1, {"weights": torch.ones(2)}, "only one of the two mini-batches carries weights"),
    ],
)
def test_every_difference_in_work_is_named(at, values, words):
    fault = same_work(cumulative(), changed(cumulative(), at, **values))
    assert fault is not None and words in fault


def test_another_number_of_edges_or_blocks_and_other_seeds_are_named():
    fewer = changed(
        cumulative(),
        0,
        indptr=i32(0, 1, 2, 2),
        indices=i32(3, 0),
        positions=torch.tensor([1, 3]),
    )
    fault = same_work(cumulative(), replace(fewer, sampled_edges=4))
    assert fault == "hop 2: 3 and 2 edges were drawn"
    one = MiniBatch(torch.tensor([0]), [outer()], 2)
    assert "there are 2 blocks" in str(same_work(cumulative(), one))
    empty = MiniBatch(torch.tensor([0]), [], 0)
    assert "seeds differ" in str(same_work(empty, replace(empty, seeds=torch.tensor([1]))))


def test_without_positions_neighbours_and_weights_decide():
    def walked(*weights: float) -> MiniBatch:
        block = replace(outer(), positions=None, weights=torch.tensor(weights))
        return MiniBatch(torch.tensor([0]), [block], 2)

    assert same_work(walked(2, 1), walked(2, 1)) is None
    assert "bits of the weight" in str(same_work(walked(2, 1), walked(1, 2)))
    swapped = changed(walked(1, 2), 0, indices=i32(2, 1))
    assert same_work(walked(2, 1), swapped) is None


@given(st.integers(0, 2**32 - 1), st.sampled_from(["cumulative", "new"]))
def test_any_renaming_of_a_random_batch_is_the_same_work(seed, frontier):
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, 9, 30)
    indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degrees)]))
    indices = torch.from_numpy(rng.integers(0, 30, int(indptr[-1])))
    seeds = torch.from_numpy(rng.permutation(30)[: rng.integers(0, 6)])
    batch = sample(
        indptr,
        indices,
        seeds,
        [3, 2, 2],
        pick="floyd",
        frontier=frontier,
        key=seed,
        batch=0,
        with_positions=True,
    )
    renamed = _renamed(batch, rng)
    assert same_work(batch, renamed, frontier) is None
    whole = renamed.blocks[0]
    if whole.num_edges:
        moved = whole.positions.clone()
        moved[rng.integers(whole.num_edges)] += 1000
        assert same_work(batch, changed(renamed, 0, positions=moved), frontier) is not None


def _renamed(batch: MiniBatch, rng: np.random.Generator) -> MiniBatch:
    """The nodes first met at each hop in another order; rows move with their destinations."""
    order = np.arange(batch.seeds.numel())
    blocks = []
    for block in reversed(batch.blocks):
        dst, fresh = order, np.arange(block.num_dst, block.num_src)
        order = np.concatenate([order, rng.permutation(fresh)])
        place = np.argsort(order)
        indptr, indices = block.indptr.numpy(), block.indices.numpy()
        rows = [np.arange(indptr[v], indptr[v + 1]) for v in dst]
        edges = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
        lengths = np.cumsum([0] + [len(row) for row in rows])
        blocks.append(
            Block(
                torch.from_numpy(lengths.astype(np.int32)),
                torch.from_numpy(place[indices[edges]].astype(np.int32)),
                block.src_nodes[torch.from_numpy(order)],
                block.num_dst,
                block.positions[torch.from_numpy(edges)],
            )
        )
    blocks.reverse()
    return replace(batch, blocks=blocks)
