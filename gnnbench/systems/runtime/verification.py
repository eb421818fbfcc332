"""A look at every batch of an epoch that runs as any other, and of which no stage knows.

The stages hand every batch and its rows to the same hook in every epoch; in a verification epoch it
looks at them: offsets, destinations, numbers of edges, neighbours, feature rows. What the sampler
says of its batch counts for nothing here: blocks are looked at in the form that layers take.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from functools import cached_property

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, Block
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.merge import SampledHops
from gnnbench.validation import gate
from gnnbench.validation.edges import Edges
from gnnbench.validation.inclusion import Inclusion
from gnnbench.validation.law import WALK, Law

# Destinations of a hop whose edges are held against the graph, drawn anew for every batch (some may
# come twice): who draws wrong edges cannot know for which. Their numbers are looked at for all.
DESTINATIONS = 2048
EDGES = 1 << 20  # looked for in the graph at once


class Verifier:
    """Collects what is wrong with the batches that it is shown; the first fault stands.

    ``inclusion`` looks at the picks of a sampler that draws by random numbers of its own.
    """

    def __init__(
        self,
        graph: Graph,
        law: Law,
        fanouts: tuple[int, ...],
        frontier: str,
        inclusion: Inclusion | None = None,
    ) -> None:
        self._graph, self._law, self._fanouts, self._frontier = graph, law, fanouts, frontier
        self._inclusion = inclusion
        self._random = torch.Generator().manual_seed(secrets.randbits(62))
        self.seen: list[bytes] = []  # a digest a batch
        self._fault = ""
        # Not yet looked for in the graph: where drawn; destinations, neighbours, how often.
        self._drawn: list[tuple[str, Tensor]] = []
        self.batches = 0

    @property
    def fault(self) -> str:
        """The first fault, or ``""``."""
        self._find_edges()
        if not self._fault and self._inclusion is not None:
            self._fault = self._inclusion.fault
        return self._fault

    def look(self, batch: Batch, rows: Tensor | None) -> None:
        """Look at a batch and its feature rows, before either is overwritten."""
        self.batches += 1
        if self._fault:
            return
        self._sha = hashlib.sha256()
        try:
            self._blocks(list(reversed(batch.blocks)), batch)
            if rows is not None:
                gate.check_features(self._graph, batch.input_nodes, rows)
        except gate.Fault as fault:
            self._find_edges()  # of the batches before, which come first
            self._fault = self._fault or f"batch {self.batches}: {fault}"
        self.seen.append(self._sha.digest())
        if sum(edges.shape[1] for _, edges in self._drawn) > EDGES:
            self._find_edges()

    @property
    def digest(self) -> str:
        """SHA-256 of the multisets of (destination, neighbour) of every hop of every batch.

        It does not depend on the order of batches, in which systems of the same work may differ.
        """
        return joined(self.seen)

    def _blocks(self, blocks: list[Block], batch: Batch) -> None:
        """From the seeds outwards, on the device that the nodes are on."""
        if len(blocks) != len(self._fanouts):
            raise gate.Fault(f"{len(blocks)} blocks where {len(self._fanouts)} hops are asked for")
        asked = batch.input_nodes
        wanted, done_dst, done_edges = batch.seeds.to(asked.device).long(), 0, 0
        inner: Block | None = None
        for hop, (block, fanout) in enumerate(zip(blocks, self._fanouts, strict=True), start=1):
            fault = _form_fault(block, wanted, self._graph.num_nodes)
            if inner is not None and not fault:
                fault = _prefix_fault(inner, block)
            if fault:
                raise gate.Fault(f"hop {hop}: {fault}")
            counts = block.indptr.long().diff()
            nodes = block.src_nodes.long()
            src, dst = nodes[block.indices.long()], nodes[: block.num_dst]
            ends = dst.repeat_interleave(counts)
            self._sha.update(_multiset(ends[done_edges:], src[done_edges:]).to_bytes(8, "little"))
            if fault := self._hop_fault(
                hop, dst[done_dst:], counts[done_dst:], src[done_edges:], fanout
            ):
                raise gate.Fault(f"hop {hop}: {fault}")
            wanted = nodes
            if self._frontier == "new":
                done_dst, done_edges, inner = block.num_dst, block.num_edges, block
        if not torch.equal(asked.long(), wanted):
            raise gate.Fault("the rows asked for are not those of all nodes known, in their order")
        if not blocks:  # there are no edges to tell batches apart by
            self._sha.update(_multiset(wanted, wanted).to_bytes(8, "little"))

    def _hop_fault(self, hop: int, dst: Tensor, counts: Tensor, src: Tensor, fanout: int) -> str:
        starts = counts.cumsum(0) - counts
        here, numbers = dst.cpu(), counts.cpu()
        if example := self._law.example(here, numbers, fanout):
            words = self._law.words(fanout)
            return f"a destination has another number of edges than {words}{example}"
        if self._law.name == WALK or not here.numel():
            return ""
        if self._inclusion is not None:
            self._inclusion.add(here, numbers, src.cpu(), hop)
        some = torch.randint(here.numel(), (DESTINATIONS,), generator=self._random)
        if here.numel() <= DESTINATIONS:
            some = torch.arange(here.numel())
        there = some.to(src.device)
        drawn = _ragged(src, starts[there], counts[there]).cpu()
        size = self._graph.num_nodes
        couples = torch.arange(some.numel()).repeat_interleave(numbers[some]) * size + drawn
        couples, times = couples.unique(return_counts=True)
        edges = torch.stack((here[some][couples // size], couples % size, times))
        self._drawn.append((f"batch {self.batches}: hop {hop}", edges))
        return ""

    @cached_property
    def _edges(self) -> Edges:
        """Made once edges are looked at: of random walks none are."""
        return Edges(self._graph, self._law.weighs)

    def _find_edges(self) -> None:
        """Whether edges are the graph's, each as often as it is there; many at once, for a search
        takes as many steps for few as for many."""
        drawn, self._drawn = self._drawn, []
        if not drawn or self._fault:
            return
        dst, src, _ = torch.cat([edges for _, edges in drawn], dim=1)
        there = self._edges.times(dst, src).split([edges.shape[1] for _, edges in drawn])
        for (where, (*_, times)), found in zip(drawn, there, strict=True):
            if bool((found == 0).any()):
                self._fault = f"{where}: an edge is none of the graph's"
            elif not self._law.repeats and bool((times > found).any()):
                self._fault = f"{where}: an edge was drawn twice for one destination"
            if self._fault:
                return


def joined(seen: Iterable[bytes]) -> str:
    """The digest of an epoch, of those of its batches."""
    return hashlib.sha256(b"".join(sorted(seen))).hexdigest()


def digest_of(batches: Iterable[SampledHops]) -> str:
    """What ``Verifier.digest`` says of batches of cumulative hops; ``""`` where there are none.

    Of each hop unique destinations ``[d]``, their numbers of edges ``[d]``, neighbours ``[e]``.
    """
    seen: list[bytes] = []
    for hops in batches:
        sha = hashlib.sha256()
        for dst, counts, src in hops:
            sha.update(_multiset(dst.repeat_interleave(counts), src).to_bytes(8, "little"))
        if not hops:
            return ""
        seen.append(sha.digest())
    return joined(seen) if seen else ""


def _form_fault(block: Block, wanted: Tensor, nodes: int) -> str:
    """Whether a block's offsets and ids mean anything; ``wanted`` are its destinations."""
    offsets, local = block.indptr, block.indices
    if offsets.numel() != block.num_dst + 1 or block.num_dst > block.num_src:
        return (
            f"{offsets.numel()} offsets of {block.num_src} nodes for {block.num_dst} destinations"
        )
    if (
        int(offsets[0]) != 0
        or int(offsets[-1]) != local.numel()
        or bool((offsets.diff() < 0).any())
    ):
        return f"the offsets do not rise from 0 to the {local.numel()} edges"
    if _outside(local, block.num_src):
        return f"a local id lies outside the {block.num_src} nodes"
    if _outside(block.src_nodes, nodes):
        return f"a node lies outside the graph's {nodes}"
    if not torch.equal(block.dst_nodes.long(), wanted):
        return "the destinations are not the nodes known before, in their order"
    ordered = block.src_nodes.sort().values
    if bool((ordered[1:] == ordered[:-1]).any()):
        return "a source node is listed twice"
    return ""


def _prefix_fault(inner: Block, outer: Block) -> str:
    """Whether the rows of the hop before stand first, with all of their edges."""
    rows, edges = inner.num_dst, inner.num_edges
    same = torch.equal(outer.indptr[: rows + 1].long(), inner.indptr.long())
    if same and torch.equal(outer.indices[:edges].long(), inner.indices.long()):
        return ""
    return "the block does not begin with the rows of the hop before"


def _outside(ids: Tensor, end: int) -> bool:
    return bool(ids.numel()) and (int(ids.min()) < 0 or int(ids.max()) >= end)


def _ragged(values: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """``values[starts[i] : starts[i] + lengths[i]]``, one after the other."""
    before = lengths.cumsum(0) - lengths
    at = torch.arange(int(lengths.sum()), device=lengths.device)
    return values[at + (starts - before).repeat_interleave(lengths)].long()


def _multiset(one: Tensor, other: Tensor) -> int:
    """A sum over mixed couples, int64 ``[n]`` each: whatever their order, modulo 2^64."""
    mixed = one * 0x9E3779B97F4A7C1 + other * 0x2545F4914F6CDD1D
    for _ in range(2):
        mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * 0x1B03738712FAD5C9
    return int(mixed.sum()) & (2**64 - 1)
