"""What a sampler returns: a mini-batch of blocks, the input layer first.

:class:`Batch` is the interface of all batches; those of DGL, PyG and WholeGraph are in
``gnnbench.sampling``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.errors import UsageError

Ids = npt.NDArray[np.int64]


# The fields of a block: tensors, or slices of a buffer that will contain them.
if TYPE_CHECKING:  # Python has defaults of type variables from 3.13 on
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Tensor)
    U = TypeVar("U", default=Tensor)
else:
    from typing import TypeVar

    T = TypeVar("T")
    U = TypeVar("U")


@dataclass(frozen=True)
class Hop:
    """Edges drawn at one hop.

    ``dst`` int64 ``[n]`` global ids of the hop's destinations; ``edge_dst`` and ``edge_src`` int64
    ``[e]`` global ids of each edge's ends; ``positions`` int64 ``[e]`` offsets into the graph's
    ``indices``, or None of random walks, which have ``visits`` float32 ``[e]`` in their place.
    """

    dst: Ids
    edge_dst: Ids
    edge_src: Ids
    positions: Ids | None
    visits: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Sizes:
    """Sizes for the recount of a batch; contains nodes, but no edges.

    Keeping the batch itself would double its memory and leave the next one cold memory. ``layers``
    has for each hop from the seeds outwards the nodes known up to there, the destinations among
    them, and the edges; ``new``: a hop's row of ``layers`` contains that of the hop before.
    """

    seeds: Tensor
    layers: list[tuple[Tensor, int, int]]
    num_nodes: int
    new: bool = False

    @property
    def hops(self) -> list[tuple[Tensor, int]]:
        """Global ids of each hop's destinations, and its edges, from the seeds outwards."""
        hops: list[tuple[Tensor, int]] = []
        done_dst = done_edges = 0
        for nodes, num_dst, num_edges in self.layers:
            hops.append((nodes[done_dst:num_dst], num_edges - done_edges))
            if self.new:
                done_dst, done_edges = num_dst, num_edges
        return hops

    @property
    def num_edges(self) -> int:
        """Edges drawn, each counted once."""
        if self.new:
            return self.layers[-1][2] if self.layers else 0
        return sum(edges for _, _, edges in self.layers)


class Batch(ABC, Generic[T]):
    """Interface of a batch; ``number`` is its position in the epoch."""

    number: int
    seeds: T
    blocks: list[Block[T]]  # input layer first

    @property
    @abstractmethod
    def input_nodes(self) -> Tensor:
        """Global ids ``[n]`` whose features the batch needs, seeds first."""

    @abstractmethod
    def sizes(self) -> Sizes:
        """Sizes for the recount; called in timed loops, so it must be nearly free."""

    @abstractmethod
    def hops(self) -> list[Hop]:
        """The drawn edges in neutral form on the host, from the seeds outwards."""

    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """The tensors of the blocks; empty if unknown."""


class Transposed(NamedTuple):
    """A block's transpose: for every source its edges in their order, all int32.

    ``indptr`` ``[num_src + 1]``; ``dst`` ``[num_edges]``, each edge's destination; ``edge``
    ``[num_edges]``, its place in the block's ``indices``.
    """

    indptr: Tensor
    dst: Tensor
    edge: Tensor


@dataclass
class Block(Generic[T]):
    """One bipartite layer in CSC: for each destination, its sampled in-neighbours.

    ``indptr``   int32 ``[num_dst + 1]``
    ``indices``  int32 ``[num_edges]``, local ids into ``src_nodes``
    ``src_nodes`` global ids ``[num_src]`` (the graph's id dtype); the destinations come first, so
    ``src_nodes[:num_dst]`` are the destinations and local id ``v < num_dst`` is destination ``v``.
    ``positions`` int64 ``[num_edges]`` or None: each edge's offset in the graph's ``indices``.
    ``weights`` float32 ``[num_edges]`` or None: how often random walks visited the neighbour.
    """

    indptr: T
    indices: T
    src_nodes: T
    num_dst: int
    positions: T | None = None
    weights: T | None = None
    # Made by gnnbench.kernels.transpose on first use; not copied.
    transposed: Transposed | None = field(default=None, init=False, repr=False, compare=False)
    # Likewise made by gnnbench.kernels.symmetric: float32 ``[num_edges]``.
    symmetric: Tensor | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def num_src(self: Block) -> int:
        """Number of source nodes, destinations included."""
        return self.src_nodes.numel()

    @property
    def num_edges(self: Block) -> int:
        """Number of sampled edges."""
        return self.indices.numel()

    @property
    def dst_nodes(self: Block) -> Tensor:
        """Global ids of the destinations."""
        return self.src_nodes[: self.num_dst]

    def mapped(self, change: Callable[[T], U]) -> Block[U]:
        """Return a copy with ``change`` applied to every tensor."""
        return Block(
            change(self.indptr),
            change(self.indices),
            change(self.src_nodes),
            self.num_dst,
            None if self.positions is None else change(self.positions),
            None if self.weights is None else change(self.weights),
        )

    def to(self: Block, device: torch.device | str) -> Block:
        """Copy to a device; to a GPU it does not wait for tensors that are pinned."""
        return self.mapped(_mover(device))


@dataclass
class MiniBatch(Batch[T]):
    """Blocks of one batch, input layer first, as DGL orders them.

    ``sampled_edges`` counts each drawn edge once (with the ``new`` frontier the blocks are
    prefixes of one another and share edges). ``number`` is the batch's place in its epoch.
    """

    seeds: T
    blocks: list[Block[T]]
    sampled_edges: int
    extra: dict[str, T] = field(default_factory=dict)
    frontier: str = "cumulative"
    number: int = 0

    @property
    def input_nodes(self: MiniBatch) -> Tensor:
        """Global ids whose features the batch needs, seeds first."""
        return self.blocks[0].src_nodes if self.blocks else self.seeds

    def sizes(self: MiniBatch) -> Sizes:
        """Nodes and numbers of edges by block."""
        layers = [(b.src_nodes, b.num_dst, b.indices.numel()) for b in reversed(self.blocks)]
        nodes = layers[-1][0].numel() if layers else self.seeds.numel()
        return Sizes(self.seeds, layers, nodes, self.frontier == "new")

    def hops(self: MiniBatch) -> list[Hop]:
        """Edges of every hop.

        With the ``new`` frontier a hop's edges are the rows that its block has beyond the one
        before. Where the blocks carry no positions they carry visits.
        """
        hops = []
        done_dst = done_edges = 0
        for block in reversed(self.to("cpu").blocks):
            if block.positions is None and block.weights is None:
                raise UsageError(
                    "the mini-batch carries no positions; give them where with_positions is true,"
                    " or name the sampler's law if it has random numbers of its own"
                )
            dst_nodes = host_ids(block.dst_nodes)
            rows = np.repeat(np.arange(block.num_dst), np.diff(block.indptr.numpy()))
            new = slice(done_edges, None)
            hops.append(
                Hop(
                    dst=dst_nodes[done_dst:],
                    edge_dst=dst_nodes[rows[new]],
                    edge_src=host_ids(block.src_nodes[block.indices.long()])[new],
                    positions=None if block.positions is None else host_ids(block.positions)[new],
                    visits=None if block.weights is None else block.weights.numpy()[new],
                )
            )
            if self.frontier == "new":
                done_dst, done_edges = block.num_dst, block.num_edges
        return hops

    def tensors(self: MiniBatch) -> list[Tensor]:
        """Offsets, columns and nodes of every block."""
        return [t for b in self.blocks for t in (b.indptr, b.indices, b.src_nodes)]

    def mapped(self, change: Callable[[T], U]) -> MiniBatch[U]:
        """Return a copy with ``change`` applied to every tensor."""
        return MiniBatch(
            change(self.seeds),
            [block.mapped(change) for block in self.blocks],
            self.sampled_edges,
            {key: change(value) for key, value in self.extra.items()},
            self.frontier,
            self.number,
        )

    def to(self: MiniBatch, device: torch.device | str) -> MiniBatch:
        """Copy every tensor to a device."""
        return self.mapped(_mover(device))


def _mover(device: torch.device | str) -> Callable[[Tensor], Tensor]:
    # A copy to the host must wait: it would be read before it is complete.
    waits = torch.device(device).type == "cpu"
    return lambda t: t.to(device, non_blocking=not waits)


def host_ids(t: Tensor) -> Ids:
    """Ids of any integer type on any device, as int64 on the host."""
    return t.cpu().numpy().astype(np.int64)
