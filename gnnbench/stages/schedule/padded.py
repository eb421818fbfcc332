"""A training step on batches that are padded to one shape, as a CUDA graph wants them.

A batch is copied into memory of its own, in which each layer has room for more rows and edges than
it needs::

    rows of a layer   | the batch's                | padded: what an earlier batch left       |
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.minibatch import Batch, Block
from gnnbench.stages.counts import (
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
from gnnbench.stages.job import Job
from gnnbench.stages.schedule.base import Learner

# What there is room for, over what a batch needs that does not fit. Sizes of batches of as many
# seeds differ by a few percent; what is padded is computed for nothing.
ROOM = 1.125


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

    def over(self, other: Shape) -> Shape:
        """The larger of both in each place."""
        nodes = tuple(map(max, self.nodes, other.nodes))
        return Shape(nodes, tuple(map(max, self.edges, other.edges)), self.weighted)


class PaddedMemory:
    """Blocks, rows and labels of one shape, whatever batch is written there.

    ``rows`` float32 ``[nodes, width]``, ``labels`` int64 ``[seeds]``. At first it holds a sound
    batch that is padding throughout, its rows 0 and its seeds of class 0.
    """

    def __init__(self, shape: Shape, width: int, device: torch.device) -> None:
        self.shape, self._device = shape, device
        self._no_id = self._int32(1)
        self.rows = torch.zeros(shape.nodes[0], width, device=device)
        self.labels = torch.zeros(shape.nodes[-1], dtype=torch.int64, device=device)
        self._indptr = [self._int32(n + 1) for n in shape.nodes[1:]]
        self._indices = [self._int32(n) for n in shape.edges]
        self._weights = [
            torch.ones(n, device=device) if shape.weighted else None for n in shape.edges
        ]
        for indptr, edges in zip(self._indptr, shape.edges, strict=True):
            _spread(indptr, 0, 0, edges)
        for indices, sources in zip(self._indices, shape.nodes, strict=False):
            torch.arange(indices.numel(), out=indices).remainder_(sources)

    def _int32(self, size: int) -> Tensor:
        return torch.zeros(size, dtype=torch.int32, device=self._device)

    def blocks(self) -> list[Block]:
        """The blocks, whose transposes are yet to be made; their nodes have no ids."""
        nodes = self.shape.nodes
        parts = zip(self._indptr, self._indices, self._weights, nodes, nodes[1:], strict=False)
        return [
            Block(indptr, indices, self._no_id.expand(src), dst, weights=weights)
            for indptr, indices, weights, src, dst in parts
        ]

    def write(self, blocks: Sequence[Block], rows: Tensor, labels: Tensor) -> None:
        """Put a batch that the shape holds in the place of the last one; nothing waits."""
        self.rows[: rows.shape[0]].copy_(rows)
        self.labels[: labels.numel()].copy_(labels)
        self.labels[labels.numel() :].fill_(-1)
        parts = zip(blocks, self._indptr, self._indices, self._weights, strict=True)
        for block, indptr, indices, weights in parts:
            indptr[: block.num_dst + 1].copy_(block.indptr)
            _spread(indptr, block.num_dst, block.num_edges, indices.numel())
            indices[: block.num_edges].copy_(block.indices)
            if weights is not None and block.weights is not None:
                weights[: block.num_edges].copy_(block.weights)


def _spread(indptr: Tensor, rows: int, edges: int, room: int) -> None:
    """Offsets of the padded rows: edges ``edges`` to ``room`` evenly from row ``rows`` on."""
    tail = indptr[rows + 1 :]
    each = -(-(room - edges) // tail.numel())
    if each == 0:
        tail.fill_(room)
        return
    first = edges + each
    torch.arange(first, first + each * tail.numel(), each, out=tail)
    tail.clamp_(max=room)


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

    The shape is the largest of the first batches' with room (``ROOM``); a batch that does not fit
    makes another one with as much room, in the epoch that it comes in.
    """

    def __init__(self, job: Job, learner: Learner) -> None:
        self._job, self._learner = job, learner
        self._memory: PaddedMemory | None = None
        self._padding = Padding(job.counts)

    def prepare(self, batches: Iterable[Batch]) -> dict[Measure, float]:
        """Make the shape; the time includes that of drawing the batches."""
        self._wait()
        begin = time.perf_counter()
        need: Shape | None = None
        for batch in batches:
            shape = Shape.of(batch.blocks)
            need = shape if need is None else need.over(shape)
        if need is None:
            return {}
        self._make(need)
        self._wait()
        return {CAPTURE_TIME: time.perf_counter() - begin}

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Forward, backward and update; the loss is kept as a tensor on the device."""
        blocks = batch.blocks
        need = Shape.of(blocks)
        if self._memory is None or not self._memory.shape.holds(need):
            self._wait()
            begin = time.perf_counter()
            self._make(need)
            self._wait()
            self._padding.made_anew(time.perf_counter() - begin)
        assert self._memory is not None
        self._memory.write(blocks, rows, self._learner.labels_of(batch))
        self._learner.losses.append(self._run())
        self._padding.add(need, self._memory.shape)

    def _make(self, need: Shape) -> None:
        """Memory of a shape that holds such a batch, and all that the last one held."""
        room = need.with_room()
        if self._memory is not None:
            room = room.over(self._memory.shape)
        self._memory = None  # its memory is there for the next one
        self._memory = PaddedMemory(room, self._job.graph.feature_dim, self._job.device)

    def _run(self) -> Tensor:
        """One step on the batch that was written; its loss."""
        assert self._memory is not None
        memory = self._memory
        return self._learner.learn(memory.blocks(), memory.rows, memory.labels)

    def _wait(self) -> None:
        if self._job.device.type == "cuda":
            torch.cuda.synchronize(self._job.device)
