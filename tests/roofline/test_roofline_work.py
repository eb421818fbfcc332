"""Operations and bytes of kernels on hand-written blocks."""

import pytest
import torch
from int_tensors import ints

from gnnbench.core.minibatch import Block, Sizes
from gnnbench.roofline.work import (
    Work,
    aggregate_backward_work,
    aggregate_work,
    attend_backward_work,
    attend_work,
    gather_work,
    sample_work,
)

# Destinations 0, 1, 2 have the neighbours (3, 4), none, (3, 3, 0): 5 edges, 6 sources, of which
# 1, 2 and 5 have no edge.
BLOCK = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), torch.arange(10, 16), 3)
# Offsets 4 x 4 bytes, local ids 5 x 4.
STRUCTURE = 16 + 20


@pytest.mark.parametrize(
    ("mode", "flops", "bytes", "requested"),
    [
        # Width 8, rows of 32 bytes. Five rows are added; rows 0, 3, 4 are read, three written.
        ("sum", 5 * 8, 3 * 32 + 3 * 32, 5 * 32 + 3 * 32),
        # Two destinations have neighbours: their sums are divided.
        ("mean", 5 * 8 + 2 * 8, 3 * 32 + 3 * 32, 5 * 32 + 3 * 32),
        # Own rows 0, 1, 2 are added as well, and all three sums are divided: rows 0 to 4 are read.
        ("gcn", 5 * 8 + 3 * 8 + 3 * 8, 5 * 32 + 3 * 32, 8 * 32 + 3 * 32),
    ],
)
def test_work_of_an_aggregation(mode, flops, bytes, requested):
    assert aggregate_work(BLOCK, 8, mode) == Work(flops, bytes + STRUCTURE, requested + STRUCTURE)


@pytest.mark.parametrize(
    ("mode", "flops", "bytes", "requested"),
    [
        # Gradients of destinations 0 and 2 are read, of six sources written.
        ("sum", 40, 2 * 32 + 6 * 32, 5 * 32 + 6 * 32),
        ("mean", 56, 2 * 32 + 6 * 32, 5 * 32 + 6 * 32),
        ("gcn", 88, 3 * 32 + 6 * 32, 8 * 32 + 6 * 32),
    ],
)
def test_work_of_an_aggregation_gradient(mode, flops, bytes, requested):
    work = aggregate_backward_work(BLOCK, 8, mode)
    assert work == Work(flops, bytes + STRUCTURE, requested + STRUCTURE)
    assert work.flops == aggregate_work(BLOCK, 8, mode).flops


def test_work_with_edge_weights():
    assert aggregate_work(BLOCK, 1, "sum", weights=1) == Work(
        10, 3 * 4 + 3 * 4 + STRUCTURE + 20, 5 * 4 + 3 * 4 + STRUCTURE + 20
    )
    assert aggregate_backward_work(BLOCK, 1, "mean", weights=1) == Work(
        12, 2 * 4 + 6 * 4 + STRUCTURE + 20, 5 * 4 + 6 * 4 + STRUCTURE + 20
    )


def test_work_with_one_weight_per_head():
    """Two heads of four elements: a product per element, two weights per edge."""
    work = aggregate_work(BLOCK, 8, "sum", weights=2)
    assert (work.flops, work.bytes) == (2 * 5 * 8, 3 * 32 + 3 * 32 + STRUCTURE + 2 * 20)


def test_work_of_an_empty_block():
    empty = Block(ints(0, 0), ints(), torch.arange(1), 1)
    assert aggregate_work(empty, 8, "sum") == Work(0, 8 + 32, 8 + 32)
    assert aggregate_work(empty, 8, "gcn") == Work(16, 8 + 32 + 32, 8 + 32 + 32)
    with pytest.raises(ValueError, match="mode must be one of sum, mean, gcn"):
        aggregate_work(empty, 8, "max")


def test_work_of_attention():
    """Two heads of four elements, rows of 32 bytes, scores of 8; sources 0, 3, 4 have edges,
    destinations 0 and 2."""
    assert attend_work(BLOCK, 2, 8) == Work(
        5 * (2 * 5 + 8 * 2),
        3 * (32 + 8) + 2 * 8 + 3 * 32 + STRUCTURE,
        5 * (32 + 8) + 2 * 8 + 3 * 32 + STRUCTURE,
    )
    # Six gradients of rows and of their scores, three of destinations' scores.
    assert attend_backward_work(BLOCK, 2, 8) == Work(
        5 * (2 * 7 + 8 * 4),
        (3 + 2) * (32 + 8) + 6 * (32 + 8) + 3 * 8 + STRUCTURE,
        5 * 2 * (32 + 8) + 6 * (32 + 8) + 3 * 8 + STRUCTURE,
    )


def test_work_of_a_gather():
    """Four rows of 12 bytes, two of them equal; ids of 8 bytes."""
    ids = torch.tensor([7, 1, 7, 0])
    assert gather_work(ids, 12) == Work(0, 4 * 8 + 3 * 12 + 4 * 12, 4 * 8 + 4 * 12 + 4 * 12)
    assert gather_work(ids.int(), 12).bytes == 4 * 4 + 3 * 12 + 4 * 12


def test_work_of_samples():
    """Hop 1: 2 seeds, 3 edges; hop 2: those and 3 more as destinations, 6 edges."""
    first, second = torch.arange(5), torch.arange(9)
    sizes = Sizes(torch.arange(2), [(first, 2, 3), (second, 5, 6)], 9)
    assert sample_work(sizes, 4, 100) == Work(0, 7 * 16 + 9 * 4 + 100, 7 * 16 + 9 * 4 + 100, 7 + 9)
