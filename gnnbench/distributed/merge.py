"""Merges what all ranks sampled in an epoch into the batches that one rank would have sampled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch

if TYPE_CHECKING:
    from gnnbench.validation.law import Law

# By hop: destinations, numbers of edges, neighbours.
SampledHops = list[tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class BatchShard:
    """What a rank sampled of batch ``number``.

    ``seeds`` is their number; ``inputs`` are global ids ``[n]``; ``hops``, from the seeds outwards,
    are destinations ``[d]`` and offsets of their edges ``[d + 1]``, None if the sampler's law gives
    the numbers of edges; ``edges``, if they were recorded, are the neighbours ``[e]`` of each hop
    in that order.
    """

    number: int
    seeds: int
    inputs: Tensor
    hops: list[tuple[Tensor, Tensor | None]]
    edges: list[Tensor] | None = None

    @classmethod
    def of(cls, batch: Batch, record_edges: bool, exact: bool) -> BatchShard:
        """Build the shard from the batch's own tensors: the clock runs, so nothing is copied.

        ``exact``: every rank samples the same edges of a node, so that comparing them is possible.
        """
        if not exact:
            own: list[tuple[Tensor, Tensor | None]] = [(d, None) for d, _ in batch.sizes().hops]
            return cls(batch.number, batch.seeds.numel(), batch.input_nodes, own)
        blocks = list(reversed(batch.blocks))
        edges = [b.src_nodes.long()[b.indices.long()].cpu() for b in blocks if record_edges]
        return cls(
            batch.number,
            batch.seeds.numel(),
            batch.input_nodes,
            [(b.dst_nodes, b.indptr) for b in blocks],
            edges if record_edges else None,
        )

    def on_host(self, fanouts: Sequence[int], law: Law | None) -> BatchShard:
        """Return a copy in host memory, to be sent; missing offsets follow from the law."""
        hops: list[tuple[Tensor, Tensor | None]] = []
        for (dst, offsets), fanout in zip(self.hops, fanouts, strict=True):
            destinations = dst.cpu().clone()
            if offsets is None:
                assert law is not None
                _, numbers = law.bounds(destinations.long(), fanout)
                offsets = torch.cat([numbers.new_zeros(1), numbers.cumsum(0)])
            hops.append((destinations, offsets.cpu().clone()))
        return BatchShard(self.number, self.seeds, self.inputs.cpu().clone(), hops, self.edges)


@dataclass(frozen=True)
class RankEpoch:
    """What a rank did in an epoch: its shards, the fault, and a digest of its parameters."""

    shards: list[BatchShard]
    reason: str
    weights: str


@dataclass(frozen=True)
class MergedEpoch:
    """An epoch of all ranks.

    ``edges`` counts a destination once that several ranks sampled for, ``nodes`` a row once that
    several fetched; ``again_edges`` and ``again_nodes`` are the repeated ones.

    ``drawn``, if edges were recorded, has for each batch its hops: unique destinations ``[d]``,
    their numbers of edges ``[d]`` and the neighbours ``[e]``, in that order. If each batch belongs
    to one rank, ``seen`` has the digests of the other ranks' batches instead, and ``losses`` are
    those of all batches in their order.
    """

    batches: int
    seeds: int
    edges: int
    nodes: int
    again_edges: int
    again_nodes: int
    reason: str
    drawn: dict[int, SampledHops] = field(default_factory=dict)
    seen: list[bytes] = field(default_factory=list)
    losses: list[float] | None = None


class _MergedHop(NamedTuple):
    """A hop's unique destinations with their edges, the edges of all ranks, and a fault or ""."""

    hop: tuple[Tensor, Tensor, Tensor]
    all_edges: int
    fault: str


def merge_ranks(ranks: Sequence[RankEpoch]) -> MergedEpoch:
    """Merge the ranks' shards of an epoch, and check that they agree."""
    by_batch: dict[int, list[BatchShard]] = defaultdict(list)
    for rank in ranks:
        for shard in rank.shards:
            by_batch[shard.number].append(shard)
    reason = first_fault([rank.reason for rank in ranks])
    if len({r.weights for r in ranks}) > 1:
        reason = reason or "the ranks ended the epoch with different weights"
    edges = nodes = all_edges = all_nodes = 0
    drawn: dict[int, SampledHops] = {}
    for number, shards in sorted(by_batch.items()):
        inputs = torch.cat([s.inputs for s in shards])
        nodes += inputs.unique().numel()
        all_nodes += inputs.numel()
        hops: SampledHops = []
        for hop in range(len(shards[0].hops)):
            merged = _merge_hop(shards, hop)
            hops.append(merged.hop)
            edges += int(merged.hop[1].sum())
            all_edges += merged.all_edges
            if merged.fault:
                reason = reason or f"batch {number + 1}, hop {hop + 1}: {merged.fault}"
        if shards[0].edges is not None:  # nodes identify a batch without hops
            drawn[number] = hops or [(inputs.long(), torch.ones_like(inputs).long(), inputs.long())]
    return MergedEpoch(
        len(by_batch),
        sum(s.seeds for r in ranks for s in r.shards),
        edges, nodes, all_edges - edges, all_nodes - nodes, reason, drawn,
    )  # fmt: skip


def first_fault(faults: Sequence[str]) -> str:
    """Return the first rank's fault with the number of the rank, or ""; ``faults`` by rank."""
    return next((f"rank {rank}: {fault}" for rank, fault in enumerate(faults) if fault), "")


def _merge_hop(shards: Sequence[BatchShard], hop: int) -> _MergedHop:
    dst = torch.cat([s.hops[hop][0].long() for s in shards])
    counts = torch.cat([_offsets(s, hop).long().diff() for s in shards])
    ids, place = dst.unique(return_inverse=True)
    first = torch.full_like(ids, dst.numel()).scatter_reduce(
        0, place, torch.arange(dst.numel()), "amin"
    )
    fault = ""
    if not torch.equal(counts[first][place], counts):
        fault = "ranks drew different numbers of edges for one node"
    neighbours = torch.empty(0, dtype=torch.int64)
    if shards[0].edges is not None and not fault:
        all_neighbours = torch.cat([s.edges[hop] for s in shards if s.edges is not None])
        starts = counts.cumsum(0) - counts
        if not torch.equal(_rows(all_neighbours, starts[first][place], counts), all_neighbours):
            fault = "ranks drew different edges for one node"
        neighbours = _rows(all_neighbours, starts[first], counts[first])
    return _MergedHop((ids, counts[first], neighbours), int(counts.sum()), fault)


def _offsets(shard: BatchShard, hop: int) -> Tensor:
    offsets = shard.hops[hop][1]
    assert offsets is not None
    return offsets


def _rows(values: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """Return ``values[starts[i] : starts[i] + lengths[i]]``, concatenated."""
    before = lengths.cumsum(0) - lengths
    return values[torch.arange(int(lengths.sum())) + (starts - before).repeat_interleave(lengths)]
