"""A training step on batches that are padded to one shape, as a CUDA graph requires.

A batch is copied into buffers that have room for more rows and edges of each layer than it needs.
Feature rows are not copied if the store leaves them in buffers with as much room::

    rows of a layer   | the batch's                | padded: those of an earlier batch, or 0  |
    offsets           | the batch's                | the padded edges, by padded rows alone   |
    edges             | the batch's                | padded: ids of an earlier batch          |
    labels            | the batch's                | -1                                       |

Padded edges belong to padded rows, of which there is at least one. So padding does not reach a row
of the batch. The loss ignores seeds without a label, so gradients of padded rows and of what they
aggregate are 0. Losses and gradients are those of the batch, up to the order in which products add
up rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from gnnbench.core.counters import (
    CAPTURE_TIME,
    EDGE_PADDING,
    PADDED_EDGES,
    PADDED_ROWS,
    RECAPTURE_TIME,
    RECAPTURES,
    ROW_PADDING,
    Counts,
    Metric,
)
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block
from gnnbench.kernels.dropout import Masks
from gnnbench.kernels.padding import pad_blocks
from gnnbench.kernels.symmetric import symmetric_weights
from gnnbench.models.kinds import MODELS
from gnnbench.pipelines.training_step import Learner

# Sizes of batches with equal numbers of seeds differ by about one percent, more with fewer seeds.
# Work on padding is lost. So the room is that of the largest batch seen plus SPREADS times the
# range of those seen; if too few were seen, ROOM times the batch.
ROOM = 1.125
SPREADS = 3
ENOUGH = 4  # batches from which the range is estimated

Reserve = Callable[[int], list[Tensor]]  # FeatureStore.reserve


def no_buffers(rows: int) -> list[Tensor]:
    """Return no buffers: each batch's rows have another address."""
    return []


@dataclass(frozen=True)
class PaddedShape:
    """Sizes of a batch. ``nodes``: source nodes of each block, the input's first, then the seeds.

    ``edges``: those of each block; ``weighted``: whether edges have weights.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    weighted: bool = False

    @classmethod
    def of(cls, blocks: Sequence[Block], weighted: bool = False) -> PaddedShape:
        """Return the shape of a batch without padding; ``weighted`` whatever its blocks have."""
        return cls(
            (*(block.num_src for block in blocks), blocks[-1].num_dst),
            tuple(block.num_edges for block in blocks),
            weighted or blocks[0].weights is not None,
        )

    def fits(self, batch: PaddedShape) -> bool:
        """Whether a batch fits and leaves one row of each layer for the padded edges."""
        return (
            all(n < room for n, room in zip(batch.nodes, self.nodes, strict=True))
            and all(n <= room for n, room in zip(batch.edges, self.edges, strict=True))
            and batch.weighted == self.weighted
        )

    def with_room(self) -> PaddedShape:
        """Return the shape ``ROOM`` times as large, and larger by at least one."""
        nodes, edges = (tuple(int(n * ROOM) + 1 for n in s) for s in (self.nodes, self.edges))
        return PaddedShape(nodes, edges, self.weighted)

    @classmethod
    def for_batches_like(cls, seen: Sequence[PaddedShape]) -> PaddedShape:
        """Return a shape for batches like those seen, at least one."""
        full = [one for one in seen if one.nodes[-1] == max(s.nodes[-1] for s in seen)]
        if len(full) < ENOUGH:
            return reduce(PaddedShape.union, seen).with_room()

        def room(sizes: Sequence[int]) -> int:
            largest = max(sizes)
            return largest + 1 + SPREADS * (largest - min(sizes))

        by_nodes = list(zip(*(one.nodes for one in full), strict=True))
        by_edges = list(zip(*(one.edges for one in full), strict=True))
        nodes, edges = list(map(room, by_nodes)), tuple(map(room, by_edges))
        # So many padded rows that none is longer than the batch's: long rows load warps unevenly.
        for layer, (of_edges, of_rows) in enumerate(zip(by_edges, by_nodes[1:], strict=True)):
            row_length = max(max(of_edges) // max(of_rows), 1)
            padded = -(-(edges[layer] - min(of_edges)) // row_length)
            nodes[layer + 1] = max(nodes[layer + 1], max(of_rows) + padded)
        for layer in reversed(range(len(edges))):  # a block's destinations are sources, too
            nodes[layer] = max(nodes[layer], nodes[layer + 1])
        return PaddedShape(tuple(nodes), edges, seen[0].weighted)

    def union(self, other: PaddedShape) -> PaddedShape:
        """Return the larger size of both in each place."""
        nodes = tuple(map(max, self.nodes, other.nodes))
        return PaddedShape(nodes, tuple(map(max, self.edges, other.edges)), self.weighted)


class PaddedMemory:
    """Blocks, rows and labels of one shape, into which each batch is written.

    ``labels`` int64 ``[seeds]``; rows are float32 ``[nodes, width]``, in one of the store's
    ``buffers`` or in an own buffer, which is allocated at its first use. The initial content is a
    valid batch of padding only, with seeds of class 0. ``masks``: those of dropout with ``p``, over
    the nodes of hidden rows; None where it is 0.
    """

    def __init__(
        self,
        shape: PaddedShape,
        width: int,
        device: torch.device,
        buffers: Sequence[Tensor] = (),
        p: float = 0.0,
    ) -> None:
        self.shape, self._device, self._width = shape, device, width
        self._no_id = self._int32(1)
        self._store_buffers = {
            buffer.data_ptr(): buffer[: shape.nodes[0]]
            for buffer in buffers
            if buffer.dtype == torch.float32 and buffer.shape[0] >= shape.nodes[0]
        }
        self._own_buffer: Tensor | None = None
        self.masks: Masks | None = None
        if p:
            nodes, place = (
                torch.zeros(n, dtype=torch.int64, device=device) for n in (shape.nodes[1], 2)
            )
            self.masks = Masks(nodes, p, place=place)
        self.labels = torch.zeros(shape.nodes[-1], dtype=torch.int64, device=device)
        self._indptr = [self._int32(n + 1) for n in shape.nodes[1:]]
        self._indices = [self._int32(n) for n in shape.edges]
        self._weights = [torch.ones(n, device=device) for n in shape.edges if shape.weighted]
        self._put(  # an empty batch
            [self._int32(1) for _ in shape.edges],
            [self._int32(0) for _ in shape.edges],
            [weights[:0] for weights in self._weights],
            self.labels[:0],
        )
        self.labels.zero_()
        for indices, sources in zip(self._indices, shape.nodes, strict=False):
            torch.arange(indices.numel(), out=indices).remainder_(sources)

    def _int32(self, size: int) -> Tensor:
        return torch.zeros(size, dtype=torch.int32, device=self._device)

    def _put(
        self,
        indptrs: Sequence[Tensor],
        indices: Sequence[Tensor],
        weights: Sequence[Tensor],
        labels: Tensor,
    ) -> None:
        room = self._indptr, self._indices, self._weights, self.labels
        pad_blocks(indptrs, indices, weights, labels, *room)

    def blocks(self) -> list[Block]:
        """Return the blocks, without transposes; all their node ids are 0."""
        nodes = self.shape.nodes
        weighted: Sequence[Tensor | None] = self._weights or [None] * len(self._indices)
        parts = zip(self._indptr, self._indices, weighted, nodes, nodes[1:], strict=False)
        return [
            Block(indptr, indices, self._no_id.expand(src), dst, weights=weights)
            for indptr, indices, weights, src, dst in parts
        ]

    @property
    def row_buffers(self) -> list[Tensor]:
        """Buffers of rows, float32 ``[nodes, width]``: the store's, else the own one."""
        return list(self._store_buffers.values()) or [self._own_rows()]

    def _own_rows(self) -> Tensor:
        if self._own_buffer is None:
            self._own_buffer = torch.zeros(self.shape.nodes[0], self._width, device=self._device)
        return self._own_buffer

    def write_masks(self, masks: Masks, rows: int) -> None:
        """Overwrite the masks with those of a batch, whose first layer returns so many rows."""
        assert self.masks is not None and self.masks.place is not None
        self.masks.nodes[:rows].copy_(masks.nodes[:rows], non_blocking=True)
        key, batch = self.masks.place.split(1)
        key.fill_(masks.key)  # as arguments of kernels: no copy to wait for
        batch.fill_(masks.batch)

    def write(self, blocks: Sequence[Block], rows: Tensor, labels: Tensor) -> Tensor:
        """Overwrite the memory with a batch that fits; does not wait for the GPU.

        Returns the buffer of its rows, float32 ``[nodes, width]``.
        """
        row_buffer = self._store_buffers.get(rows.data_ptr())
        if row_buffer is None:
            row_buffer = self._own_rows()
            row_buffer[: rows.shape[0]].copy_(rows)
        device = self._device  # a batch may be in host memory
        self._put(
            [block.indptr.to(device) for block in blocks],
            [block.indices.to(device) for block in blocks],
            [b.weights.to(device) for b in blocks if b.weights is not None and self._weights],
            labels,
        )
        return row_buffer


class PaddingCounts:
    """Sums of padding, which are added to the counts when these are read."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        counts.settled_by(self._settle)
        self._reset()

    def _reset(self) -> None:
        self._batches, self._recaptures, self._recapture_s = 0, 0, 0.0
        self._rows = self._edges = self._padded_rows = self._padded_edges = 0

    def count_recapture(self, seconds: float) -> None:
        """Count a larger shape that was needed within an epoch."""
        self._recaptures += 1
        self._recapture_s += seconds

    def add(self, batch: PaddedShape, padded: PaddedShape) -> None:
        """Count a batch that was trained on in a padded shape."""
        rows, edges = sum(batch.nodes), sum(batch.edges)
        self._batches += 1
        self._rows += rows
        self._edges += edges
        self._padded_rows += sum(padded.nodes) - rows
        self._padded_edges += sum(padded.edges) - edges

    def _settle(self) -> None:
        if self._batches:
            for measure, value in (
                (RECAPTURES, self._recaptures),
                (RECAPTURE_TIME, self._recapture_s),
                (PADDED_ROWS, self._padded_rows),
                (PADDED_EDGES, self._padded_edges),
                (ROW_PADDING, self._padded_rows / self._rows),
                (EDGE_PADDING, self._padded_edges / max(self._edges, 1)),
            ):
                self._counts.add("schedule", measure, value)
        self._reset()


class PaddedStep:
    """Trains on padded batches, kernel by kernel: shows the cost of padding without a graph.

    The shape has room for batches like the first ones (``PaddedShape.for_batches_like``). A batch
    that does not fit makes a larger one, within its epoch.
    """

    def __init__(self, job: Job, learner: Learner, reserve: Reserve = no_buffers) -> None:
        self._job, self._learner, self._reserve = job, learner, reserve
        # Padded edges begin at any source: degrees are counted before padding.
        self._symmetric = MODELS[job.cell.model].symmetric
        self._memory: PaddedMemory | None = None
        self._padding = PaddingCounts(job.counts)

    def prepare(self, batches: Iterable[Batch]) -> dict[Metric, float]:
        """Choose the shape; the time includes that of sampling the batches."""
        self._wait()
        begin = time.perf_counter()
        seen = [PaddedShape.of(batch.blocks, self._symmetric) for batch in batches]
        if not seen:
            return {}
        self._make(PaddedShape.for_batches_like(seen))
        self._wait()
        return {CAPTURE_TIME: time.perf_counter() - begin}

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Run forward, backward and update; the loss stays a tensor on the device."""
        blocks = batch.blocks
        if self._symmetric:
            blocks = [block.to(self._job.device) for block in blocks]
            blocks = [replace(block, weights=symmetric_weights(block)) for block in blocks]
        shape = PaddedShape.of(blocks)
        if self._memory is None or not self._memory.shape.fits(shape):
            self._wait()
            begin = time.perf_counter()
            self._make(shape.with_room())
            self._wait()
            self._padding.count_recapture(time.perf_counter() - begin)
        assert self._memory is not None
        padded_rows = self._memory.write(blocks, rows, self._learner.labels_of(batch))
        if (masks := self._learner.masks_of(batch)) is not None:
            self._memory.write_masks(masks, shape.nodes[1])
        self._learner.losses.append(self._run(padded_rows))
        self._padding.add(shape, self._memory.shape)

    def _make(self, shape: PaddedShape) -> None:
        """Allocate memory of the shape, with room also for what the previous memory fits."""
        if self._memory is not None:
            shape = shape.union(self._memory.shape)
        self._memory = None  # frees its memory before the next allocation
        graph, buffers = self._job.graph, self._reserve(shape.nodes[0])
        p = self._job.cell.dropout
        self._memory = PaddedMemory(shape, graph.feature_dim, self._job.device, buffers, p)

    def _run(self, rows: Tensor) -> Tensor:
        """Run one step on the batch in memory, with rows in this buffer; returns its loss."""
        assert self._memory is not None
        blocks = self._memory.blocks()
        for block in blocks if self._symmetric else []:
            block.symmetric = block.weights
        return self._learner.learn(blocks, rows, self._memory.labels, self._memory.masks)

    def _wait(self) -> None:
        if self._job.device.type == "cuda":
            torch.cuda.synchronize(self._job.device)
