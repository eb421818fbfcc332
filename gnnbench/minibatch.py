"""What a sampler returns: a mini-batch of blocks, the input layer first."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Block:
    """One bipartite layer in CSC: for each destination, its sampled in-neighbours.

    ``indptr``   int32 ``[num_dst + 1]``
    ``indices``  int32 ``[num_edges]``, local ids into ``src_nodes``
    ``src_nodes`` global ids ``[num_src]`` (the graph's id dtype); the destinations come first, so
    ``src_nodes[:num_dst]`` are the destinations and local id ``v < num_dst`` is destination ``v``.
    ``positions`` int64 ``[num_edges]`` or None: each edge's offset in the graph's ``indices``.
    ``weights`` float32 ``[num_edges]`` or None: how often random walks visited the neighbour.
    """

    indptr: Tensor
    indices: Tensor
    src_nodes: Tensor
    num_dst: int
    positions: Tensor | None = None
    weights: Tensor | None = None

    @property
    def num_src(self) -> int:
        """Number of source nodes, destinations included."""
        return self.src_nodes.numel()

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return self.indices.numel()

    @property
    def dst_nodes(self) -> Tensor:
        """Global ids of the destinations."""
        return self.src_nodes[: self.num_dst]

    def to(self, device: torch.device | str) -> Block:
        """Copy to a device; to a GPU it does not wait for tensors that are pinned."""
        # Towards the host it must: the copy would be read before it is there.
        waits = torch.device(device).type == "cpu"

        def move(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.to(device, non_blocking=not waits)

        indptr, indices, src = move(self.indptr), move(self.indices), move(self.src_nodes)
        assert indptr is not None and indices is not None and src is not None
        return Block(indptr, indices, src, self.num_dst, move(self.positions), move(self.weights))


@dataclass
class MiniBatch:
    """Blocks of one batch, input layer first, as DGL orders them.

    ``sampled_edges`` counts each drawn edge once (with the ``new`` frontier the blocks are
    prefixes of one another and share edges).
    """

    seeds: Tensor
    blocks: list[Block]
    sampled_edges: int
    extra: dict[str, Tensor] = field(default_factory=dict)

    @property
    def input_nodes(self) -> Tensor:
        """Global ids whose features the batch needs, seeds first."""
        return self.blocks[0].src_nodes if self.blocks else self.seeds

    def to(self, device: torch.device | str) -> MiniBatch:
        """Copy every tensor to a device."""
        return MiniBatch(
            self.seeds.to(device),
            [b.to(device) for b in self.blocks],
            self.sampled_edges,
            {k: v.to(device) for k, v in self.extra.items()},
        )
