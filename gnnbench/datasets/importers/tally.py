"""Remarks on an edge list: stored, merged and kept edges."""

from __future__ import annotations

import numpy as np

from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.store.csc import csc_edges
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.schema.arrays import Array

LOOKED_AT = 1 << 20  # edges whose reverse is looked for, evenly spread over all


def tally(lines: int, indptr: Array, indices: Array, options: ImportOptions) -> list[str]:
    """Sentences on ``lines`` edges that were listed and the CSC (rows sorted) made of them: what
    was stored, merged, kept, and whether the list looks like an undirected graph listed once."""
    loops, repeats = _loops_and_repeats(indptr, indices)
    stored = len(indices)
    sentences = [f"edges listed: {lines:,}; stored: {stored:,}, of {len(indptr) - 1:,} nodes"]
    if options.add_reverse and options.merge:
        merged = lines - (stored - loops) // 2 - loops
        sentences[0] += ", each in both directions"
        sentences.append(f"edges that repeat another or its reverse: {merged:,}, merged")
    elif repeats and not options.merge:
        sentences.append(
            f"edges that repeat another: {repeats:,}, kept as parallel edges (--symmetric merges)"
        )
    if loops:
        sentences.append(f"edges from a node to itself: {loops:,}, kept")
    if options.source is None and stored > loops and (looked := _one_way(indptr, indices)):
        which = "no edge has" if looked == stored else f"of {looked:,} edges looked at none has"
        sentences.append(
            f"{which} its reverse: if the graph is undirected and lists each edge once, import it"
            " again with --symmetric --replace"
        )
    return sentences


def _loops_and_repeats(indptr: Array, indices: Array) -> tuple[int, int]:
    """Edges from a node to itself, and edges that equal the one before them in their row."""
    loops, repeats, last = 0, 0, (-1, -1)
    for src, dst in csc_edges(indptr, indices)():
        loops += int((src == dst).sum())
        repeats += int(((src[1:] == src[:-1]) & (dst[1:] == dst[:-1])).sum())
        repeats += (int(src[0]), int(dst[0])) == last
        last = int(src[-1]), int(dst[-1])
    return loops, repeats


def _one_way(indptr: Array, indices: Array) -> int:
    """How many edges were looked at where none has its reverse, self-loops apart; else 0."""
    at = np.arange(0, len(indices), max(1, len(indices) // LOOKED_AT))
    src = np.asarray(indices[at]).astype(np.int64)
    dst = np.searchsorted(indptr, at, side="right") - 1
    return 0 if bool((_listed(indptr, indices, dst, src) & (src != dst)).any()) else len(at)


def _listed(indptr: Array, indices: Array, src: Array, dst: Array) -> Array:
    """Whether each edge src -> dst is there, bool ``[n]``: all rows are halved at once."""
    low, end = indptr[dst].astype(np.int64), indptr[dst + 1].astype(np.int64)
    high = end.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = open_ & (np.asarray(indices[np.where(open_, middle, 0)]) < src)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    there = low < end
    return there & (np.asarray(indices[np.where(there, low, 0)]) == src)


def counts_lines(edges: Array) -> bool:
    """Whether the sources are 0, 1, 2, ... or 1, 2, 3, ..., as an index of rows is.

    ``edges`` is int64 ``[edges, 2]``; fewer than three edges say nothing.
    """
    first, start = int(edges[0, 0]), 0
    for piece in row_chunks(edges):
        if (piece[:, 0] != np.arange(first + start, first + start + len(piece))).any():
            return False
        start += len(piece)
    return first in (0, 1) and len(edges) > 2
