"""A sampler's answer in neutral form, and the structural law it must obey.

A foreign sampler cannot draw our numbers; what it draws must still be exactly
``min(fanout, degree)`` distinct real edges for every destination.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gnnbench.minibatch import MiniBatch

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hop:
    """Edges drawn at one hop.

    ``dst`` int64 ``[n]`` global ids of the hop's destinations; ``edge_dst`` and ``edge_src`` int64
    ``[e]`` global ids of each edge's ends; ``positions`` int64 ``[e]`` offsets into the graph's
    ``indices``.
    """

    dst: Ids
    edge_dst: Ids
    edge_src: Ids
    positions: Ids


def expected_edges(indptr: Ids, dst: Ids, fanout: int) -> int:
    """Edges that a pick without replacement draws: the sum of min(fanout, degree)."""
    degree = indptr[dst + 1] - indptr[dst]
    return int(np.minimum(degree, fanout).sum())


def structural_fault(
    indptr: Ids, indices: npt.NDArray[np.integer], hop: Hop, fanout: int
) -> str | None:
    """First law of sampling without replacement that ``hop`` breaks, as a sentence, or None."""
    expected = expected_edges(indptr, hop.dst, fanout)
    drawn = hop.edge_dst.size
    if drawn != expected:
        return (
            f"{drawn} edges were drawn where {expected} are right"
            f" (min({fanout}, degree) for each of {hop.dst.size} destinations)"
        )
    dst = np.sort(hop.dst)
    row = np.searchsorted(dst, hop.edge_dst)
    if (row == dst.size).any() or not np.array_equal(dst[row], hop.edge_dst):
        return "an edge ends in a node that is no destination of its hop"
    low, high = indptr[hop.edge_dst], indptr[hop.edge_dst + 1]
    if not ((hop.positions >= low) & (hop.positions < high)).all():
        return "an edge's position lies outside its destination's row"
    if not np.array_equal(indices[hop.positions], hop.edge_src):
        return "an edge's source is not the neighbour stored at its position"
    positions = np.sort(hop.positions)
    if (positions[1:] == positions[:-1]).any():
        return "an edge was drawn twice for one destination"
    wanted = np.minimum(indptr[dst + 1] - indptr[dst], fanout)
    if not np.array_equal(np.bincount(row, minlength=dst.size), wanted):
        return f"a destination has another number of edges than min({fanout}, degree)"
    return None


def frontier_fault(hops: Sequence[Hop], seeds: Ids, frontier: str) -> str | None:
    """First hop whose destinations are not the frontier's, as a sentence, or None."""
    known = seeds
    dst = seeds
    for number, hop in enumerate(hops):
        if not np.array_equal(np.sort(hop.dst), np.sort(dst)):
            return f"the destinations of hop {number + 1} are not the '{frontier}' frontier"
        seen = np.union1d(known, hop.edge_src)
        dst = seen if frontier == "cumulative" else np.setdiff1d(seen, known)
        known = seen
    return None


def digest(batches: Iterable[Sequence[Hop]]) -> str:
    """SHA-256 of the (destination, position) multisets, hop by hop, whatever the local ids."""
    sha = hashlib.sha256()
    for hops in batches:
        for hop in hops:
            order = np.lexsort((hop.positions, hop.edge_dst))
            sha.update(np.int64(order.size).tobytes())
            sha.update(hop.edge_dst[order].astype("<i8").tobytes())
            sha.update(hop.positions[order].astype("<i8").tobytes())
    return sha.hexdigest()


def hops_of(batch: MiniBatch, frontier: str) -> list[Hop]:
    """Hops of one of our mini-batches, from the seeds outwards; it must carry positions."""
    hops: list[Hop] = []
    done_dst = done_edges = 0
    for block in reversed(batch.blocks):
        if block.positions is None:
            raise ValueError("the mini-batch carries no positions; sample it with_positions")
        nodes = block.src_nodes.numpy().astype(np.int64)
        indptr = block.indptr.numpy().astype(np.int64)
        # With the new frontier blocks are prefixes of one CSC: a hop is what its block adds.
        first_dst, first_edge = (done_dst, done_edges) if frontier == "new" else (0, 0)
        rows = np.repeat(
            np.arange(first_dst, block.num_dst), np.diff(indptr[first_dst : block.num_dst + 1])
        )
        hops.append(
            Hop(
                dst=nodes[first_dst : block.num_dst],
                edge_dst=nodes[rows],
                edge_src=nodes[block.indices.numpy()[first_edge:]],
                positions=block.positions.numpy().astype(np.int64)[first_edge:],
            )
        )
        done_dst, done_edges = block.num_dst, block.num_edges
    return hops
