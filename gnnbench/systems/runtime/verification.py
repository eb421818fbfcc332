"""Checks batches: offsets, destinations, numbers of edges, neighbours, feature rows.

What the sampler reports about its batch is ignored: blocks are checked in the form that layers
take. Of timed epochs the copied batches are checked (``spot_checks``), of verification epochs all.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from functools import cached_property

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.merge import SampledHops
from gnnbench.systems.runtime.spot_checks import CheckedBatch
from gnnbench.validation import gate
from gnnbench.validation.edges import Edges
from gnnbench.validation.inclusion import Inclusion
from gnnbench.validation.law import WALK, Law

# Destinations of a hop whose edges are looked up in the graph, chosen anew for every batch with
# replacement: a sampler cannot know which. The number of edges is checked for all destinations.
DESTINATIONS = 512
EDGES = 1 << 20  # looked up in the graph at once


class Verifier:
    """Checks batches one after the other and reports the first fault.

    ``inclusion`` tests the picks of a sampler with custom random numbers. ``digests`` has one per
    batch.
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
        self._law_on_device: Law | None = None
        self._random = torch.Generator().manual_seed(secrets.randbits(62))
        self.digests: list[bytes] = []
        self._fault = ""
        # Edges to look up: batch and hop; int64 [3, n]: destinations, neighbours, multiplicities.
        self._pending: list[tuple[str, Tensor]] = []
        self._batch_number = 0

    @property
    def fault(self) -> str:
        """The first fault, or ""."""
        self._look_up_edges()
        if not self._fault and self._inclusion is not None:
            self._fault = self._inclusion.fault
        return self._fault

    def check(self, batch: CheckedBatch) -> None:
        """Check a batch and its feature rows."""
        if self._fault:
            return
        self._batch_number = batch.number + 1
        self._sha = hashlib.sha256()
        try:
            self._check_blocks(list(reversed(batch.blocks)), batch)
            if batch.rows is not None and batch.row_nodes is not None:
                if batch.num_rows != batch.input_nodes.numel():
                    raise gate.Fault(
                        f"{batch.num_rows} feature rows for {batch.input_nodes.numel()} nodes"
                    )
                gate.check_features(self._graph, batch.row_nodes, batch.rows)
        except gate.Fault as fault:
            self._look_up_edges()  # of earlier batches, whose fault comes first
            self._fault = self._fault or f"batch {self._batch_number}: {fault}"
        self.digests.append(self._sha.digest())
        if sum(edges.shape[1] for _, edges in self._pending) > EDGES:
            self._look_up_edges()

    def take_digests(self) -> list[bytes]:
        """Return the digests of the batches since the last call."""
        digests, self.digests = self.digests, []
        return digests

    @property
    def digest(self) -> str:
        """SHA-256 of the multisets of (destination, neighbour) of every hop of every batch.

        Independent of the order of batches, in which systems with the same work may differ.
        """
        return joined(self.digests)

    def _check_blocks(self, blocks: list[Block], batch: CheckedBatch) -> None:
        """Check blocks from the seeds outwards, on the device of the nodes. Raises ``Fault``."""
        if len(blocks) != len(self._fanouts):
            raise gate.Fault(f"{len(blocks)} blocks where {len(self._fanouts)} hops are asked for")
        input_nodes = batch.input_nodes
        known = batch.seeds.to(input_nodes.device).long()
        checked_dst = checked_edges = 0  # of the block before, whose rows are the first of this one
        inner: Block | None = None
        for hop, (block, fanout) in enumerate(zip(blocks, self._fanouts, strict=True), start=1):
            fault = _form_fault(block, known, self._graph.num_nodes)
            if inner is not None and not fault:
                fault = _prefix_fault(inner, block)
            if fault:
                raise gate.Fault(f"hop {hop}: {fault}")
            counts = block.indptr.long().diff()
            nodes = block.src_nodes.long()
            src, dst = nodes[block.indices.long()], nodes[: block.num_dst]
            edge_dst = dst.repeat_interleave(counts)
            edges = _multiset(edge_dst[checked_edges:], src[checked_edges:])
            self._sha.update(edges.to_bytes(8, "little"))
            if fault := self._hop_fault(
                hop, dst[checked_dst:], counts[checked_dst:], src[checked_edges:], fanout
            ):
                raise gate.Fault(f"hop {hop}: {fault}")
            known = nodes
            if self._frontier == "new":
                checked_dst, checked_edges, inner = block.num_dst, block.num_edges, block
        if not torch.equal(input_nodes.long(), known):
            raise gate.Fault("the rows asked for are not those of all nodes known, in their order")
        if not blocks:  # without edges, batches differ by their nodes only
            self._sha.update(_multiset(known, known).to_bytes(8, "little"))

    def _hop_fault(self, hop: int, dst: Tensor, counts: Tensor, src: Tensor, fanout: int) -> str:
        """Check numbers of edges, and store some edges for a look-up in the graph."""
        starts = counts.cumsum(0) - counts
        if example := self._law_on(dst.device).example(dst, counts, fanout):
            expected = self._law.edge_count_text(fanout)
            return f"a destination has another number of edges than {expected}{example}"
        if self._law.name == WALK or not dst.numel():
            return ""
        if self._inclusion is not None:
            self._inclusion.add(dst.cpu(), counts.cpu(), src.cpu(), hop)
        some = torch.randint(dst.numel(), (DESTINATIONS,), generator=self._random)
        if dst.numel() <= DESTINATIONS:
            some = torch.arange(dst.numel())
        some = some.to(dst.device)
        chosen, lengths = dst[some].cpu(), counts[some]
        neighbours = _ragged(src, starts[some], lengths).cpu()
        size = self._graph.num_nodes
        row = torch.arange(chosen.numel()).repeat_interleave(lengths.cpu())
        pairs, multiplicity = (row * size + neighbours).unique(return_counts=True)
        edges = torch.stack((chosen[pairs // size], pairs % size, multiplicity))
        self._pending.append((f"batch {self._batch_number}: hop {hop}", edges))
        return ""

    def _law_on(self, device: torch.device) -> Law:
        """The law with its degrees on a device; they are copied once."""
        if self._law_on_device is None or self._law_on_device.degree.device != device:
            self._law_on_device = self._law.on(device)
        return self._law_on_device

    @cached_property
    def _edges(self) -> Edges:
        """The graph's edges, prepared at the first look-up; random walks need none."""
        return Edges(self._graph, self._law.weighs)

    def _look_up_edges(self) -> None:
        """Check that pending edges are the graph's, each at most as often as it is there.

        Many at once: a search takes as many steps for few edges as for many.
        """
        pending, self._pending = self._pending, []
        if not pending or self._fault:
            return
        dst, src, _ = torch.cat([edges for _, edges in pending], dim=1)
        sizes = [edges.shape[1] for _, edges in pending]
        in_graph = self._edges.times(dst, src).split(sizes)
        for (where, (*_, sampled)), stored in zip(pending, in_graph, strict=True):
            if bool((stored == 0).any()):
                self._fault = f"{where}: an edge is none of the graph's"
            elif not self._law.repeats and bool((sampled > stored).any()):
                self._fault = f"{where}: an edge was drawn twice for one destination"
            if self._fault:
                return


def joined(digests: Iterable[bytes]) -> str:
    """Return the digest of an epoch from those of its batches, in any order."""
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def digest_of(batches: Iterable[SampledHops]) -> str:
    """Return what ``Verifier.digest`` gives for batches of cumulative hops; "" without hops.

    Of each hop unique destinations ``[d]``, their numbers of edges ``[d]``, neighbours ``[e]``.
    """
    digests: list[bytes] = []
    for hops in batches:
        sha = hashlib.sha256()
        for dst, counts, src in hops:
            sha.update(_multiset(dst.repeat_interleave(counts), src).to_bytes(8, "little"))
        if not hops:
            return ""
        digests.append(sha.digest())
    return joined(digests) if digests else ""


def _form_fault(block: Block, expected_dst: Tensor, num_nodes: int) -> str:
    """Check a block's offsets, ids and destinations."""
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
    if _outside(block.src_nodes, num_nodes):
        return f"a node lies outside the graph's {num_nodes}"
    if not torch.equal(block.dst_nodes.long(), expected_dst):
        return "the destinations are not the nodes known before, in their order"
    ordered = block.src_nodes.sort().values
    if bool((ordered[1:] == ordered[:-1]).any()):
        return "a source node is listed twice"
    return ""


def _prefix_fault(inner: Block, outer: Block) -> str:
    """Check that a block begins with the rows of the previous hop and all of their edges."""
    rows, edges = inner.num_dst, inner.num_edges
    same = torch.equal(outer.indptr[: rows + 1].long(), inner.indptr.long())
    if same and torch.equal(outer.indices[:edges].long(), inner.indices.long()):
        return ""
    return "the block does not begin with the rows of the hop before"


def _outside(ids: Tensor, end: int) -> bool:
    return bool(ids.numel()) and (int(ids.min()) < 0 or int(ids.max()) >= end)


def _ragged(values: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """Concatenate ``values[starts[i] : starts[i] + lengths[i]]``, int64."""
    before = lengths.cumsum(0) - lengths
    index = torch.arange(int(lengths.sum()), device=lengths.device)
    return values[index + (starts - before).repeat_interleave(lengths)].long()


def _multiset(one: Tensor, other: Tensor) -> int:
    """Hash a multiset of pairs, int64 ``[n]`` each: the sum of mixed pairs modulo 2^64."""
    mixed = one * 0x9E3779B97F4A7C1 + other * 0x2545F4914F6CDD1D
    for _ in range(2):
        mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * 0x1B03738712FAD5C9
    return int(mixed.sum()) & (2**64 - 1)
