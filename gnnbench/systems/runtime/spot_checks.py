"""Copies of randomly chosen batches of a timed epoch, checked once the clock has stopped.

The hook that records every batch copies some of them aside: all offsets, local ids and nodes, and
about ``COPIED_ROWS`` feature rows. Whether it does is decided after the phases of a batch have run
(``BatchChoice``), so a stage that computes something else in timed epochs is detected.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from gnnbench.core.minibatch import Batch, Block, Sizes

COPIED_ROWS = 256  # at least, where a batch has as many
WORDS = {torch.int32: 1, torch.int64: 2}  # of 4 bytes
PLAIN_TYPES = frozenset((int, Tensor, Block))


@dataclass(frozen=True)
class CheckedBatch:
    """A batch in plain tensors: ``blocks`` with the input layer first, and some feature rows.

    ``row_nodes`` are the nodes of ``rows``; both are None where the epoch loads no features.
    ``num_rows`` is the number of rows that the batch had.
    """

    number: int
    seeds: Tensor
    blocks: list[Block]
    input_nodes: Tensor
    row_nodes: Tensor | None = None
    rows: Tensor | None = None
    num_rows: int | None = None

    @classmethod
    def whole(cls, batch: Batch, rows: Tensor | None, number: int) -> CheckedBatch:
        """Take a batch as it is, with all of its rows."""
        nodes = batch.input_nodes
        num_rows = None if rows is None else rows.shape[0]
        row_nodes = None if rows is None else nodes
        return cls(number, batch.seeds, batch.blocks, nodes, row_nodes, rows, num_rows)

    @classmethod
    def copy_of(cls, batch: Batch, rows: Tensor | None, number: int) -> CheckedBatch:
        """Copy a batch on its device, without a wait of the host; of its rows every n-th.

        The first of these rows is drawn at random.
        """
        with _without_modes():
            return cls._copy_of(batch, rows, number)

    @classmethod
    def _copy_of(cls, batch: Batch, rows: Tensor | None, number: int) -> CheckedBatch:
        nodes, blocks = batch.input_nodes, batch.blocks
        tensors = [t for b in blocks for t in (b.indptr, b.indices, b.src_nodes)]
        seeds, copied_nodes, *copies = _copied([batch.seeds, nodes, *tensors])
        parts = iter(copies)
        copied = [Block(next(parts), next(parts), next(parts), b.num_dst) for b in blocks]
        if rows is None:
            return cls(number, seeds, copied, copied_nodes)
        step = max(min(nodes.numel(), rows.shape[0]) // COPIED_ROWS, 1)
        some = slice(secrets.randbelow(step), min(nodes.numel(), rows.shape[0]), step)
        return cls(
            number, seeds, copied, copied_nodes, nodes[some].clone(), rows.detach()[some].clone(),
            rows.shape[0],
        )  # fmt: skip


@contextmanager
def _without_modes() -> Iterator[None]:
    """Call no function or dispatch mode of torch: a stage's could compute rows as they are read."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def _copied(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy tensors of integers; those of a GPU by as few kernels as possible."""
    if not all(t.is_cuda and t.dim() == 1 and t.dtype in WORDS for t in tensors):
        return [t.clone() for t in tensors]
    tensors = [t.contiguous() for t in tensors]
    sizes = [t.numel() * WORDS[t.dtype] for t in tensors]
    aligned = [-(-size // 4) * 4 for size in sizes]  # 16 bytes, for wide loads and 64-bit views
    buffer = torch.empty(sum(aligned), dtype=torch.int32, device=tensors[0].device)
    parts = [part[:size] for part, size in zip(buffer.split(aligned), sizes, strict=True)]
    torch._foreach_copy_(parts, [t.detach().view(torch.int32) for t in tensors])
    return [part.view(t.dtype) for part, t in zip(parts, tensors, strict=True)]


def sizes_fault(sizes: Sizes, batch: CheckedBatch) -> str:
    """Compare the sizes that a batch reported for the recount with its copied blocks.

    Of the nodes of a hop the recount reads the destinations.
    """
    layers = [(b.dst_nodes, b.num_dst, b.num_edges) for b in reversed(batch.blocks)]
    agree = (
        len(layers) == len(sizes.layers)
        and sizes.num_nodes == batch.input_nodes.numel()
        and all(
            own[1:] == reported[1:]
            and torch.equal(own[0].long(), reported[0][: reported[1]].long())
            for own, reported in zip(layers, sizes.layers, strict=True)
        )
    )
    return "" if agree else "the reported sizes are not those of the blocks"


def block_types(batch: Batch) -> set[type]:
    """Return the types of a batch's number and of what its blocks contain; this reads the blocks.

    A batch without a fault has ``PLAIN_TYPES`` alone.
    """
    types = {type(batch.number), type(batch.seeds), type(batch.input_nodes)}
    for block in batch.blocks:
        types |= {type(block), type(block.num_dst)}
        types |= {type(block.indptr), type(block.indices), type(block.src_nodes)}
    return types


def is_plain(sizes: Sizes) -> bool:
    """Whether sizes contain nothing that computes when it is read.

    Only types are read, and no method of the objects is called.
    """
    if type(sizes) is not Sizes or type(sizes.layers) is not list:
        return False
    values = [
        *((sizes.seeds, Tensor), (sizes.num_nodes, int), (sizes.new, bool)),
        *((layer, tuple) for layer in sizes.layers),
    ]
    if not all(type(value) is kind for value, kind in values):
        return False
    return all(tuple(map(type, layer)) == (Tensor, int, int) for layer in sizes.layers)
