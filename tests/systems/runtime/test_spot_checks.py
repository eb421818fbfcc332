"""Copies of batches of timed epochs: which are chosen and copied, and what the audit reports."""

import math
from dataclasses import replace

import pytest
import torch

from gnnbench.core.batch_choice import BatchChoice, copied_batches
from gnnbench.core.cell import Cell
from gnnbench.core.minibatch import Block, MiniBatch, Sizes
from gnnbench.systems.runtime.spot_checks import (
    COPIED_ROWS,
    PLAIN_TYPES,
    CheckedBatch,
    block_types,
    is_plain,
    sizes_fault,
)

BATCH = MiniBatch(
    torch.tensor([4, 2]),
    [Block(torch.tensor([0, 1, 2]), torch.tensor([2, 0]), torch.tensor([4, 2, 7]), 2)],
    2,
    number=5,
)
ROWS = torch.arange(6.0).view(3, 2)


def chosen(key, count, batches):
    choice = BatchChoice(key, count)
    return [position for position in range(batches) if choice.has(position, batches)]


@pytest.mark.parametrize("count,batches", [(8, 4), (8, 3), (2, 1), (2.0, 0)])
def test_all_batches_of_a_short_epoch_are_drawn_and_half_have_the_key(count, batches):
    assert all(BatchChoice("key", count).draws(batches) for _ in range(100))
    keyed = [len(chosen(f"key {n}", count, batches)) for n in range(400)]
    assert sum(keyed) / len(keyed) == pytest.approx(batches / 2, abs=0.25)


def test_no_batch_is_chosen_without_a_key():
    assert chosen("", 4, 100) == []


def test_both_sides_choose_the_same_and_every_epoch_others():
    assert chosen("a", 4, 50) == chosen("a", 4, 50)
    choices = [tuple(chosen(f"key {n}", 4, 50)) for n in range(200)]
    assert len(set(choices)) > 100
    mean = sum(map(len, choices)) / len(choices)
    assert 1.6 < mean < 2.4  # half of four; sd of the mean is 0.1
    assert {position for choice in choices for position in choice} == set(range(50))


def test_half_of_the_batches_are_chosen_by_numbers_drawn_after_they_ran():
    """So that a stage that knows the key cannot know all of them."""
    choice = BatchChoice("key", 4)
    drawn = [sum(choice.draws(50) for _ in range(50)) for _ in range(200)]
    assert len(set(drawn)) > 1 and 1.6 < sum(drawn) / len(drawn) < 2.4
    assert not BatchChoice().draws(1)


def test_copy_is_unchanged_when_the_buffers_are_reused():
    batch, rows = replace(BATCH, blocks=[BATCH.blocks[0].mapped(torch.clone)]), ROWS.clone()
    copy = CheckedBatch.copy_of(batch, rows, batch.number)
    for tensor in (batch.seeds, rows, batch.blocks[0].indices, batch.blocks[0].src_nodes):
        tensor.zero_()
    (block,) = copy.blocks
    assert block.indices.tolist() == [2, 0] and block.src_nodes.tolist() == [4, 2, 7]
    assert copy.input_nodes.tolist() == [4, 2, 7] and copy.number == 5
    assert copy.num_rows == 3 and copy.row_nodes.tolist() == [4, 2, 7]
    assert torch.equal(copy.rows, torch.arange(6.0).view(3, 2))


def test_every_row_of_a_large_batch_may_be_copied():
    nodes = torch.arange(5 * COPIED_ROWS + 3)
    block = Block(torch.zeros(len(nodes) + 1).int(), nodes[:0].int(), nodes, len(nodes))
    batch = MiniBatch(nodes, [block], 0)
    copied = set()
    for _ in range(100):
        copy = CheckedBatch.copy_of(batch, nodes[:, None].float(), 0)
        assert copy.row_nodes.tolist() == copy.rows[:, 0].tolist()
        assert COPIED_ROWS <= len(copy.rows) <= COPIED_ROWS + 1
        copied |= set(copy.row_nodes.tolist())
    assert len(copied) == len(nodes)


@pytest.mark.parametrize("rows", [torch.zeros(0, 2), torch.zeros(2, 2), None])
def test_missing_rows_are_copied_as_they_are(rows):
    copy = CheckedBatch.copy_of(BATCH, rows, 0)
    assert copy.num_rows == (None if rows is None else len(rows))


@pytest.mark.parametrize(
    "layers",
    [
        [],
        [(torch.tensor([4, 2, 7]), 2, 3)],
        [(torch.tensor([4, 2, 7]), 1, 2)],
        [(torch.tensor([4, 3, 7]), 2, 2)],
    ],
)
def test_reported_sizes_are_compared_with_the_blocks(layers):
    copy = CheckedBatch.copy_of(BATCH, None, 0)
    assert sizes_fault(BATCH.sizes(), copy) == ""
    assert sizes_fault(replace(BATCH.sizes(), layers=layers), copy)
    assert sizes_fault(replace(BATCH.sizes(), num_nodes=2), copy)


class Number(int):
    pass


class Own(torch.Tensor):
    pass


class OwnSizes(Sizes):
    pass


@pytest.mark.parametrize(
    "sizes",
    [
        OwnSizes(BATCH.seeds, [], 2),
        replace(BATCH.sizes(), seeds=BATCH.seeds.as_subclass(Own)),
        replace(BATCH.sizes(), layers=tuple(BATCH.sizes().layers)),
        replace(BATCH.sizes(), layers=[(BATCH.seeds.as_subclass(Own), 2, 2)]),
        replace(BATCH.sizes(), layers=[(BATCH.seeds, 2, Number(2))]),
        replace(BATCH.sizes(), num_nodes=Number(3)),
        None,
    ],
)
def test_sizes_that_could_compute_are_not_plain(sizes):
    assert is_plain(BATCH.sizes()) and not is_plain(sizes)


@pytest.mark.parametrize(
    "until,device,epoch_s,elements,expected",
    [
        ("compute", "cpu", 10.0, 1e6, 2.0),
        ("compute", "cpu", 0.1, 450_000, 0.5),
        ("compute", "cpu", 0.01, 0, 0.5),
        ("sample", "cpu", math.inf, 1e6, 1.0),
        ("sample", "cuda", 0.012, 1e6, 0.2),
        ("memory_io", "cuda", 1.0, 1e6, 2.0),
    ],
)
def test_copies_take_a_small_share_of_an_epoch(until, device, epoch_s, elements, expected):
    cell = Cell("e", "baseline", "d", "gcn", until=until, device=device)
    assert copied_batches(cell, epoch_s, elements) == pytest.approx(expected)


class OwnBlock(Block):
    pass


@pytest.mark.parametrize(
    "change",
    [
        lambda block: replace(block, indices=block.indices.as_subclass(Own)),
        lambda block: replace(block, num_dst=Number(2)),
        lambda block: OwnBlock(block.indptr, block.indices, block.src_nodes, block.num_dst),
    ],
)
def test_types_of_what_a_batch_contains(change):
    assert block_types(BATCH) <= PLAIN_TYPES
    assert not block_types(replace(BATCH, blocks=[change(BATCH.blocks[0])])) <= PLAIN_TYPES
    assert not block_types(replace(BATCH, number=Number(5))) <= PLAIN_TYPES
