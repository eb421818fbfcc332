"""Build and compare CSC matrices of in-neighbours in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gnnbench.schema.arrays import Array

EdgeChunks = Callable[[], Iterator[tuple[Array, Array]]]

_EDGES_PER_CHUNK = 1 << 22
# Edges sorted at once. A key takes 8 bytes; sorting and merging take about three times that.
EDGES_PER_PASS = 1 << 27


def index_dtype(num_nodes: int) -> str:
    """dtype of node ids: int32 if it can represent all of them, else int64."""
    return "int32" if num_nodes <= np.iinfo(np.int32).max else "int64"


def csc_edges(indptr: Array, indices: Array) -> EdgeChunks:
    """The edges of a CSC matrix as (source, destination) chunks, in order."""

    def chunks() -> Iterator[tuple[Array, Array]]:
        num_edges, row = len(indices), 0
        for start in range(0, num_edges, _EDGES_PER_CHUNK):
            end = min(start + _EDGES_PER_CHUNK, num_edges)
            row = int(np.searchsorted(indptr, start, side="right")) - 1
            last = int(np.searchsorted(indptr, end, side="left"))
            bounds = np.clip(indptr[row : last + 1], start, end)
            dst = np.repeat(np.arange(row, last, dtype=np.int64), np.diff(bounds))
            yield np.asarray(indices[start:end]), dst

    return chunks


def both_directions(chunks: EdgeChunks) -> EdgeChunks:
    """Every edge and its reverse; a self-loop stays a single edge."""

    def doubled() -> Iterator[tuple[Array, Array]]:
        for src, dst in chunks():
            yield src, dst
            no_loop = src != dst
            yield dst[no_loop], src[no_loop]

    return doubled


def without_self_loops(chunks: EdgeChunks) -> EdgeChunks:
    """The edges between two different nodes."""

    def filtered() -> Iterator[tuple[Array, Array]]:
        for src, dst in chunks():
            keep = src != dst
            yield src[keep], dst[keep]

    return filtered


def build_rows(
    chunks: EdgeChunks,
    num_nodes: int,
    degrees: Array,
    *,
    merge: bool,
    edges_per_pass: int = EDGES_PER_PASS,
) -> Iterator[Array]:
    """Yield ``indices`` of the CSC matrix in order, each row sorted, and fill ``degrees``.

    ``degrees`` int64 ``[num_nodes]`` receives the final in-degrees. ``merge`` merges parallel
    edges. The edges are read once to count them and once per ``edges_per_pass`` edges. Ids must be
    in range.
    """
    degrees[:] = 0
    for _, dst in chunks():
        if len(dst):
            _add_counts(degrees, dst)
    ends = np.cumsum(degrees)
    dtype, first = index_dtype(num_nodes), 0
    while first < num_nodes:
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + edges_per_pass, side="right"))
        last = min(max(last, first + 1), num_nodes)
        keys = np.empty(int(ends[last - 1]) - before, np.int64)
        filled, single_pass = 0, first == 0 and last == num_nodes
        for src, dst in chunks():
            if not single_pass:
                in_pass = (dst >= first) & (dst < last)
                src, dst = src[in_pass], dst[in_pass]
            chunk = keys[filled : filled + len(dst)]
            np.subtract(dst, first, out=chunk, casting="same_kind")
            chunk *= num_nodes
            chunk += src
            filled += len(dst)
        keys.sort()
        if merge and len(keys):
            keep = np.empty(len(keys), bool)
            keep[0] = True
            np.not_equal(keys[1:], keys[:-1], out=keep[1:])
            keys = keys[keep]
            del keep
        if merge:
            degrees[first:last] = np.bincount(keys // num_nodes, minlength=last - first)
        keys %= num_nodes
        yield keys.astype(dtype)
        del keys
        first = last


def _add_counts(degrees: Array, dst: Array) -> None:
    low, high = int(dst.min()), int(dst.max())
    degrees[low : high + 1] += np.bincount(dst - low, minlength=high - low + 1)


def indptr_of(degrees: Array) -> Array:
    """``indptr`` int64 ``[num_nodes + 1]`` of in-degrees."""
    indptr = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    return indptr


def _mix(first: Array, second: Array) -> int:
    """Sum modulo 2^64 of a hash of each pair (splitmix64's finaliser); the order is irrelevant."""
    with np.errstate(over="ignore"):
        x = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
            x ^= x >> np.uint64(30)
            x *= np.uint64(multiplier)
            x += second.astype(np.uint64)
        x ^= x >> np.uint64(31)
        x *= np.uint64(0xD6E8FEB86659FD93)
        x ^= x >> np.uint64(32)
        return int(x.sum(dtype=np.uint64))


def is_symmetric(indptr: Array, indices: Array) -> bool:
    """Whether the multiset of edges equals that of the reversed edges."""
    return edges_are_symmetric(csc_edges(indptr, indices))


def edges_are_symmetric(chunks: EdgeChunks) -> bool:
    """Whether the multiset of edges equals that of the reversed edges.

    Compares 64-bit sums of hashed edges, which takes no memory. Two different multisets agree with
    a probability of about 2^-64.
    """
    forward, backward = 0, 0
    for src, dst in chunks():
        forward += _mix(src, dst)
        backward += _mix(dst, src)
    return (forward - backward) % (1 << 64) == 0
