"""Copies of randomly chosen batches of a timed epoch, checked once the clock has stopped.

The hook that records every batch copies some of them aside: all offsets, local ids and nodes, and
``COPIED_ROWS`` random feature rows. Whether a batch is copied is decided after its phases have run,
by a key that the harness draws for the epoch and gives to both sides of a pair. So both check the
same batches, and a stage that computes something else in timed epochs is found out.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, Block, Sizes

# Batches of an epoch that are copied, on average; all batches of a shorter epoch. A copy costs 0.1
# to 0.5 ms, so that it lengthens an epoch that trains by less than 1 %, one that only samples by
# less than 0.5 %.
COPIED_BATCHES = 4.0
COPIED_BATCHES_OF_SAMPLING = 2.0
COPIED_ROWS = 256


@dataclass(frozen=True)
class BatchSelection:
    """Chooses batches of an epoch of ``batches``, ``count`` on average, by a secret ``key``."""

    key: str
    count: float
    batches: int

    def has(self, position: int) -> bool:
        """Whether the batch at a position of the epoch is chosen."""
        if not self.key:
            return False
        word = hashlib.blake2b(b"%d" % position, key=self.key.encode(), digest_size=8).digest()
        return int.from_bytes(word, "little") * self.batches < self.count * 2**64


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
        """Copy a batch on its device, without a wait of the host."""
        nodes = batch.input_nodes
        blocks = [_copied(block) for block in batch.blocks]
        if rows is None:
            return cls(number, batch.seeds.clone(), blocks, nodes.clone())
        places = torch.empty(0, dtype=torch.int64)
        if rest := min(nodes.numel(), rows.shape[0]):
            random = secrets.token_bytes(8 * COPIED_ROWS)
            places = torch.frombuffer(bytearray(random), dtype=torch.int64) % rest
        return cls(
            number, batch.seeds.clone(), blocks, nodes.clone(),
            nodes[places.to(nodes.device, non_blocking=True)],
            rows.detach()[places.to(rows.device, non_blocking=True)],
            rows.shape[0],
        )  # fmt: skip


def _copied(block: Block) -> Block:
    return Block(
        block.indptr.clone(), block.indices.clone(), block.src_nodes.clone(), block.num_dst
    )


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
