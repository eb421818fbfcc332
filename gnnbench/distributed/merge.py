"""The shares of all ranks put together: the batches that one rank would have drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch

if TYPE_CHECKING:
    from gnnbench.validation.law import Law

Drawn = list[tuple[Tensor, Tensor, Tensor]]  # by hop: destinations, numbers of edges, neighbours


@dataclass(frozen=True)
class Share:
    """What a rank drew of batch ``number``.

    ``seeds`` their number; ``inputs`` global ids ``[n]``; ``hops`` from the seeds outwards:
    destinations ``[d]`` and offsets of their edges ``[d + 1]``, None where their numbers follow
    from the sampler's law; ``edges`` where they were looked at: of each hop the neighbours ``[e]``
    in that order.
    """

    number: int
    seeds: int
    inputs: Tensor
    hops: list[tuple[Tensor, Tensor | None]]
    edges: list[Tensor] | None = None

    @classmethod
    def of(cls, batch: Batch, looks: bool, exact: bool) -> Share:
        """Ids and offsets are the batch's own tensors: nothing is copied while a clock runs.

        ``exact``: every rank draws the same edges of a node, so that they are worth a look.
        """
        if not exact:
            own: list[tuple[Tensor, Tensor | None]] = [(d, None) for d, _ in batch.sizes().hops]
            return cls(batch.number, batch.seeds.numel(), batch.input_nodes, own)
        blocks = list(reversed(batch.blocks))
        return cls(
            batch.number,
            batch.seeds.numel(),
            batch.input_nodes,
            [(b.dst_nodes, b.indptr) for b in blocks],
            [b.src_nodes.long()[b.indices.long()].cpu() for b in blocks] if looks else None,
        )

    def on_host(self, fanouts: Sequence[int], law: Law | None) -> Share:
        """The same on the host, in memory of its own, to be sent; offsets by the law (of the host)
        where there are none."""
        hops: list[tuple[Tensor, Tensor | None]] = []
        for (dst, offsets), fanout in zip(self.hops, fanouts, strict=True):
            there = dst.cpu().clone()
            if offsets is None:
                assert law is not None
                _, numbers = law.bounds(there.long(), fanout)
                offsets = torch.cat([numbers.new_zeros(1), numbers.cumsum(0)])
            hops.append((there, offsets.cpu().clone()))
        return Share(self.number, self.seeds, self.inputs.cpu().clone(), hops, self.edges)


@dataclass(frozen=True)
class Audited:
    """What a rank did in an epoch: its shares, what is wrong, and a digest of its parameters."""

    shares: list[Share]
    reason: str
    weights: str


@dataclass(frozen=True)
class United:
    """An epoch of a group. A destination that several ranks drew for counts once in ``edges``, a
    row that several fetched once in ``nodes``; ``again_edges`` and ``again_nodes`` are the rest.

    ``drawn`` has where edges were looked at each batch's hops: unique destinations ``[d]``, their
    numbers of edges ``[d]`` and the neighbours ``[e]``, in that order. Where each batch is one
    rank's alone ``seen`` has in its place the digests of the other ranks' batches, and ``losses``
    are those of all batches, in their order.
    """

    batches: int
    seeds: int
    edges: int
    nodes: int
    again_edges: int
    again_nodes: int
    reason: str
    drawn: dict[int, Drawn] = field(default_factory=dict)
    seen: list[bytes] = field(default_factory=list)
    losses: list[float] | None = None


def unite(ranks: Sequence[Audited]) -> United:
    """Put the ranks' shares of an epoch together, and look whether they agree."""
    by_batch: dict[int, list[Share]] = defaultdict(list)
    for rank in ranks:
        for share in rank.shares:
            by_batch[share.number].append(share)
    reason = next((f"rank {n}: {r.reason}" for n, r in enumerate(ranks) if r.reason), "")
    if len({r.weights for r in ranks}) > 1:
        reason = reason or "the ranks ended the epoch with different weights"
    edges = nodes = all_edges = all_nodes = 0
    drawn: dict[int, Drawn] = {}
    for number, shares in sorted(by_batch.items()):
        asked = torch.cat([s.inputs for s in shares])
        nodes += asked.unique().numel()
        all_nodes += sum(s.inputs.numel() for s in shares)
        hops: Drawn = []
        for hop in range(len(shares[0].hops)):
            one, every, fault = _hop(shares, hop)
            hops.append(one)
            edges += int(one[1].sum())
            all_edges += every
            if fault:
                reason = reason or f"batch {number + 1}, hop {hop + 1}: {fault}"
        if shares[0].edges is not None:  # batches of no hops are told apart by their nodes
            drawn[number] = hops or [(asked.long(), torch.ones_like(asked).long(), asked.long())]
    return United(
        len(by_batch),
        sum(s.seeds for r in ranks for s in r.shares),
        edges, nodes, all_edges - edges, all_nodes - nodes, reason, drawn,
    )  # fmt: skip


def _hop(shares: Sequence[Share], hop: int) -> tuple[tuple[Tensor, Tensor, Tensor], int, str]:
    """One hop's unique destinations, in order, with their edges; edges of all ranks; a fault."""
    dst = torch.cat([s.hops[hop][0].long() for s in shares])
    counts = torch.cat([_offsets(s, hop).long().diff() for s in shares])
    ids, place = dst.unique(return_inverse=True)
    first = torch.full_like(ids, dst.numel()).scatter_reduce(
        0, place, torch.arange(dst.numel()), "amin"
    )
    fault = ""
    if not torch.equal(counts[first][place], counts):
        fault = "ranks drew different numbers of edges for one node"
    neighbours = torch.empty(0, dtype=torch.int64)
    if shares[0].edges is not None and not fault:
        all_of = torch.cat([s.edges[hop] for s in shares if s.edges is not None])
        starts = counts.cumsum(0) - counts
        if not torch.equal(_rows(all_of, starts[first][place], counts), all_of):
            fault = "ranks drew different edges for one node"
        neighbours = _rows(all_of, starts[first], counts[first])
    return (ids, counts[first], neighbours), int(counts.sum()), fault


def _offsets(share: Share, hop: int) -> Tensor:
    offsets = share.hops[hop][1]
    assert offsets is not None
    return offsets


def _rows(values: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """``values[starts[i] : starts[i] + lengths[i]]``, one after the other."""
    before = lengths.cumsum(0) - lengths
    return values[torch.arange(int(lengths.sum())) + (starts - before).repeat_interleave(lengths)]
