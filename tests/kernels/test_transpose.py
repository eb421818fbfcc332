"""The transpose of a block: by hand, equal to the reference, cached by its block, bad blocks."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from ops_blocks import block_of, random_block
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import aggregate
from gnnbench.kernels.reference import aggregate as reference
from gnnbench.kernels.transpose import edge_dst, transposed


def test_transpose_by_hand():
    # destination 0 <- 2 3, 1 isolated, 2 <- 2 (itself) 0 0 (parallel)
    block = block_of([[2, 3], [], [2, 0, 0]], 5)
    back = transposed(block)
    assert back.indptr.tolist() == [0, 2, 2, 4, 5, 5]
    assert back.dst.tolist() == [2, 2, 0, 2, 0]
    assert back.edge.tolist() == [3, 4, 0, 2, 1]
    assert {t.dtype for t in back} == {torch.int32}
    assert edge_dst(block).tolist() == [0, 0, 2, 2, 2]


@given(
    num_dst=st.integers(0, 40),
    more=st.integers(0, 40),
    edges=st.integers(0, 300),
    seed=st.integers(0, 2**31),
    count=st.integers(1, 9),
)
def test_random_blocks_equal_the_reference(num_dst, more, edges, seed, count):
    block = random_block(num_dst, num_dst + max(more, 1), edges, seed)
    with threads(count):
        back = transposed(block)
    assert tuple(t.tolist() for t in back) == reference.transpose(block)


def test_transpose_is_cached_per_block_and_not_copied():
    block = random_block(20, 40, 100, 1)
    assert block.transposed is None
    x = torch.randn(40, 4, requires_grad=True)
    out = aggregate(block, x, "sum")
    assert block.transposed is None  # the forward pass does not need it
    out.sum().backward()
    transpose = block.transposed
    assert transpose is not None and transposed(block) is transpose
    aggregate(block, x, "mean").sum().backward()
    assert block.transposed is transpose
    assert block.to("cpu").transposed is None


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Block(torch.tensor([0, 2, 1]).int(), torch.zeros(1).int(), torch.arange(3), 2), "indptr"),
        (block_of([[3]], 3), "indices holds 3 at position 0"),
        (Block(torch.tensor([0, 1]), torch.zeros(1).int(), torch.arange(3), 1), "must be int32"),
        (block_of([[0], [0]], 1), "needs at least as many sources"),
    ],
)
def test_broken_blocks_are_refused(block, message):
    with pytest.raises(UsageError, match=message):
        transposed(block)
