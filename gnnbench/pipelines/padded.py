"""A training step on batches that are padded to one shape, as a CUDA graph wants them.

A batch is copied into memory of its own, in which each layer has room for more rows and edges than
it needs. Feature rows are no copies where the store leaves them in buffers with as much room::

    rows of a layer   | the batch's                | padded: what an earlier batch left, or 0 |
    offsets           | the batch's                | the padded edges, by padded rows alone   |
    edges             | the batch's                | padded: ids that an earlier batch left   |
    labels            | the batch's                | -1                                       |

Padded edges are of padded rows, of which there is one at least. So no row of the batch gets
anything from padding, and since the loss does not count seeds without a label, gradients of padded
rows are 0, and what those hand back along their edges is 0, too: losses and gradients are those of
the batch, but for the order in which products add up rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
    Measure,
)
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block
from gnnbench.kernels.padding import pad_blocks
from gnnbench.pipelines.schedule import Learner

# Batches of as many seeds differ in size by a percent or so, the more the fewer seeds they have;
# what is padded is computed for nothing. Room is for the largest batch seen and SPREADS times what
# those seen differ by; where that is not known, for ROOM times the batch.
ROOM = 1.125
SPREADS = 3
ENOUGH = 4  # batches that tell by how much they differ

Reserve = Callable[[int], list[Tensor]]  # FeatureStore.reserve


def nowhere(rows: int) -> list[Tensor]:
    """Rows lie elsewhere each time."""
    return []


@dataclass(frozen=True)
class Shape:
    """``nodes``: the sources of each block, the input's first, then the seeds; ``edges`` of each
    block; ``weighted``: whether edges have weights."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    weighted: bool = False

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Shape:
        """A batch's."""
        return cls(
            (*(block.num_src for block in blocks), blocks[-1].num_dst),
            tuple(block.num_edges for block in blocks),
            blocks[0].weights is not None,
        )

    def holds(self, need: Shape) -> bool:
        """Whether such a batch fits, and leaves one row of each layer to have the padded edges."""
        return (
            all(n < room for n, room in zip(need.nodes, self.nodes, strict=True))
            and all(n <= room for n, room in zip(need.edges, self.edges, strict=True))
            and need.weighted == self.weighted
        )

    def with_room(self) -> Shape:
        """``ROOM`` times as large, and larger by one at least."""
        nodes, edges = (tuple(int(n * ROOM) + 1 for n in s) for s in (self.nodes, self.edges))
        return Shape(nodes, edges, self.weighted)

    @classmethod
    def for_batches_like(cls, seen: Sequence[Shape]) -> Shape:
        """What holds batches like those seen, of which there is one at least."""
        full = [one for one in seen if one.nodes[-1] == max(s.nodes[-1] for s in seen)]
        if len(full) < ENOUGH:
            return reduce(Shape.over, seen).with_room()

        def room(sizes: Sequence[int]) -> int:
            most = max(sizes)
            return most + 1 + SPREADS * (most - min(sizes))

        by_nodes = list(zip(*(one.nodes for one in full), strict=True))
        by_edges = list(zip(*(one.edges for one in full), strict=True))
        nodes, edges = list(map(room, by_nodes)), tuple(map(room, by_edges))
        # As many padded rows as leave them no longer than the batch's: lanes share long rows badly.
        for layer, (of_edges, of_rows) in enumerate(zip(by_edges, by_nodes[1:], strict=True)):
            each = max(max(of_edges) // max(of_rows), 1)
            padded = -(-(edges[layer] - min(of_edges)) // each)
            nodes[layer + 1] = max(nodes[layer + 1], max(of_rows) + padded)
        for layer in reversed(range(len(edges))):  # a block's destinations are sources, too
            nodes[layer] = max(nodes[layer], nodes[layer + 1])
        return Shape(tuple(nodes), edges, seen[0].weighted)

    def over(self, other: Shape) -> Shape:
        """The larger of both in each place."""
        nodes = tuple(map(max, self.nodes, other.nodes))
        return Shape(nodes, tuple(map(max, self.edges, other.edges)), self.weighted)


class PaddedMemory:
    """Blocks, rows and labels of one shape, whatever batch is written there.

    ``labels`` int64 ``[seeds]``; rows are float32 ``[nodes, width]``, in one of the store's
    ``buffers`` or in memory of its own, which is taken when it is first needed. At first it holds
    a sound batch that is padding throughout, its seeds of class 0.
    """

    def __init__(
        self, shape: Shape, width: int, device: torch.device, buffers: Sequence[Tensor] = ()
    ) -> None:
        self.shape, self._device, self._width = shape, device, width
        self._no_id = self._int32(1)
        self._homes = {
            buffer.data_ptr(): buffer[: shape.nodes[0]]
            for buffer in buffers
            if buffer.dtype == torch.float32 and buffer.shape[0] >= shape.nodes[0]
        }
        self._own: Tensor | None = None
        self.labels = torch.zeros(shape.nodes[-1], dtype=torch.int64, device=device)
        self._indptr = [self._int32(n + 1) for n in shape.nodes[1:]]
        self._indices = [self._int32(n) for n in shape.edges]
        self._weights = [torch.ones(n, device=device) for n in shape.edges if shape.weighted]
        self._put(  # a batch of nothing
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
        """The blocks, whose transposes are yet to be made; their nodes have no ids."""
        nodes = self.shape.nodes
        weighted: Sequence[Tensor | None] = self._weights or [None] * len(self._indices)
        parts = zip(self._indptr, self._indices, weighted, nodes, nodes[1:], strict=False)
        return [
            Block(indptr, indices, self._no_id.expand(src), dst, weights=weights)
            for indptr, indices, weights, src, dst in parts
        ]

    @property
    def homes(self) -> list[Tensor]:
        """Where rows may lie, float32 ``[nodes, width]``: in the store's buffers, else here."""
        return list(self._homes.values()) or [self._rows_here()]

    def _rows_here(self) -> Tensor:
        if self._own is None:
            self._own = torch.zeros(self.shape.nodes[0], self._width, device=self._device)
        return self._own

    def write(self, blocks: Sequence[Block], rows: Tensor, labels: Tensor) -> Tensor:
        """Put a batch that the shape holds in the place of the last one; nothing waits.

        Returns its rows and those behind them, float32 ``[nodes, width]``.
        """
        home = self._homes.get(rows.data_ptr())
        if home is None:
            home = self._rows_here()
            home[: rows.shape[0]].copy_(rows)
        device = self._device  # a batch may be the host's
        self._put(
            [block.indptr.to(device) for block in blocks],
            [block.indices.to(device) for block in blocks],
            [b.weights.to(device) for b in blocks if b.weights is not None and self._weights],
            labels,
        )
        return home


class Padding:
    """Sums of what batches were padded with, told when counts are read."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        counts.settled_by(self._tell)
        self._begin()

    def _begin(self) -> None:
        self._batches, self._times, self._seconds = 0, 0, 0.0
        self._rows = self._edges = self._padded_rows = self._padded_edges = 0

    def made_anew(self, seconds: float) -> None:
        """A larger shape was made within an epoch."""
        self._times += 1
        self._seconds += seconds

    def add(self, need: Shape, room: Shape) -> None:
        """A batch of one shape was trained on in another."""
        rows, edges = sum(need.nodes), sum(need.edges)
        self._batches += 1
        self._rows += rows
        self._edges += edges
        self._padded_rows += sum(room.nodes) - rows
        self._padded_edges += sum(room.edges) - edges

    def _tell(self) -> None:
        if self._batches:
            for what, value in (
                (RECAPTURES, self._times),
                (RECAPTURE_TIME, self._seconds),
                (PADDED_ROWS, self._padded_rows),
                (PADDED_EDGES, self._padded_edges),
                (ROW_PADDING, self._padded_rows / self._rows),
                (EDGE_PADDING, self._padded_edges / max(self._edges, 1)),
            ):
                self._counts.add("schedule", what, value)
        self._begin()


class PaddedStep:
    """Trains on padded batches, kernel by kernel: what padding costs without a graph.

    The shape is that of the first batches, with room (``Shape.for_batches_like``); a batch that
    does not fit makes another one, in the epoch that it comes in.
    """

    def __init__(self, job: Job, learner: Learner, reserve: Reserve = nowhere) -> None:
        self._job, self._learner, self._reserve = job, learner, reserve
        self._memory: PaddedMemory | None = None
        self._padding = Padding(job.counts)

    def prepare(self, batches: Iterable[Batch]) -> dict[Measure, float]:
        """Make the shape; the time includes that of drawing the batches."""
        self._wait()
        begin = time.perf_counter()
        seen = [Shape.of(batch.blocks) for batch in batches]
        if not seen:
            return {}
        self._make(Shape.for_batches_like(seen))
        self._wait()
        return {CAPTURE_TIME: time.perf_counter() - begin}

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Forward, backward and update; the loss is kept as a tensor on the device."""
        blocks = batch.blocks
        need = Shape.of(blocks)
        if self._memory is None or not self._memory.shape.holds(need):
            self._wait()
            begin = time.perf_counter()
            self._make(need.with_room())
            self._wait()
            self._padding.made_anew(time.perf_counter() - begin)
        assert self._memory is not None
        there = self._memory.write(blocks, rows, self._learner.labels_of(batch))
        self._learner.losses.append(self._run(there))
        self._padding.add(need, self._memory.shape)

    def _make(self, room: Shape) -> None:
        """Memory of the shape, and for all that the last one held."""
        if self._memory is not None:
            room = room.over(self._memory.shape)
        self._memory = None  # its memory is there for the next one
        graph, buffers = self._job.graph, self._reserve(room.nodes[0])
        self._memory = PaddedMemory(room, graph.feature_dim, self._job.device, buffers)

    def _run(self, rows: Tensor) -> Tensor:
        """One step on the batch that was written, whose rows are there; its loss."""
        assert self._memory is not None
        return self._learner.learn(self._memory.blocks(), rows, self._memory.labels)

    def _wait(self) -> None:
        if self._job.device.type == "cuda":
            torch.cuda.synchronize(self._job.device)
