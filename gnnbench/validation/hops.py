"""Structural checks of sampled hops, and the digest of their edges.

A sampler of another framework draws other random numbers. Its edges must still obey the law of its
sampling method, such as ``min(fanout, degree)`` distinct edges of the graph per destination.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import torch

from gnnbench.core.minibatch import Hop, Ids
from gnnbench.datasets.generators.parallel import compute_ahead
from gnnbench.schema.arrays import Array
from gnnbench.validation.law import WALK, Law


def structural_fault(
    indptr: Ids,
    indices: Array,
    hop: Hop,
    fanout: int,
    law: Law | None = None,
) -> str | None:
    """Return the first rule of the sampling law that ``hop`` violates, as a sentence, or None.

    ``indptr`` and ``indices`` are the graph. ``law`` defaults to sampling without replacement. A
    random walk may end at a node that is no neighbour: for walks only the counts are checked, and
    that no node occurs twice.
    """
    law = law or Law.of("", torch.from_numpy(indptr))
    destinations = torch.from_numpy(hop.dst)
    fault = law.count_fault(destinations, hop.edge_dst.size, fanout)
    order = np.argsort(hop.dst)
    dst = hop.dst[order]
    row = np.searchsorted(dst, hop.edge_dst)
    counts = np.bincount(row, minlength=dst.size)[: dst.size]
    example = law.example(destinations[order], torch.from_numpy(counts), fanout)
    if fault is not None:
        words = f"({law.edge_count_text(fanout)} for each of {hop.dst.size} destinations)"
        return f"{fault} {words}{example}"
    if (row == dst.size).any() or not np.array_equal(dst[row], hop.edge_dst):
        return "an edge ends in a node that is no destination of its hop"
    if hop.positions is not None:
        low, high = indptr[hop.edge_dst], indptr[hop.edge_dst + 1]
        if not ((hop.positions >= low) & (hop.positions < high)).all():
            return "an edge's position lies outside its destination's row"
        if not np.array_equal(indices[hop.positions], hop.edge_src):
            return "an edge's source is not the neighbour stored at its position"
        if law.weighs is not None and not law.weighs.numpy()[hop.positions].all():
            return "an edge without weight was drawn"
    elif law.name != WALK and hop.edge_dst.size:
        return "its edges have no positions by which they could be found in the graph"
    if not law.repeats and _repeats(hop):
        return "an edge was drawn twice for one destination"
    if example:
        expected = law.edge_count_text(fanout)
        return f"a destination has another number of edges than {expected}{example}"
    return None


def _repeats(hop: Hop) -> bool:
    if hop.positions is not None:
        positions = np.sort(hop.positions)
        return bool((positions[1:] == positions[:-1]).any())
    order = np.lexsort((hop.edge_src, hop.edge_dst))
    dst, src = hop.edge_dst[order], hop.edge_src[order]
    return bool(((dst[1:] == dst[:-1]) & (src[1:] == src[:-1])).any())


def distinct(ids: Ids) -> Ids:
    """Return the sorted distinct ids; ten times as fast as ``np.unique`` for millions of ids."""
    ordered = np.sort(ids)
    first = np.ones(ordered.size, dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def frontier_fault(hops: Sequence[Hop], seeds: Ids, frontier: str) -> str | None:
    """Return the first hop whose destinations are not the frontier, as a sentence, or None."""
    known = seeds
    dst = seeds
    for number, hop in enumerate(hops):
        if not np.array_equal(np.sort(hop.dst), np.sort(dst)):
            return f"the destinations of hop {number + 1} are not the '{frontier}' frontier"
        seen = distinct(np.concatenate([known, hop.edge_src]))
        dst = seen
        if frontier == "new":
            dst = seen[~np.isin(seen, known, assume_unique=True, kind="sort")]
        known = seen
    return None


def digest(batches: Iterable[Sequence[Hop]]) -> str:
    """Return the SHA-256 of the (destination, position) multisets, hop by hop.

    It does not depend on local ids. Random walks use (destination, neighbour, visits).
    """
    sha = hashlib.sha256()
    makers = (partial(_ordered, hop) for hops in batches for hop in hops)
    for columns in compute_ahead(makers, torch.get_num_threads()):
        for column in columns:
            sha.update(column.data)
    return sha.hexdigest()


def _ordered(hop: Hop) -> list[Array]:
    """Return the digest's input: the number of edges, then their sorted columns."""
    if hop.positions is not None:  # sorted positions are sorted by destination as well
        neighbours, order = hop.positions, np.argsort(hop.positions)
    else:
        neighbours, order = hop.edge_src, np.lexsort((hop.edge_src, hop.edge_dst))
    columns = [hop.edge_dst[order].astype("<i8"), neighbours[order].astype("<i8")]
    if hop.visits is not None:
        columns.append(hop.visits[order].astype("<f4"))
    return [np.array([order.size], dtype="<i8"), *columns]
