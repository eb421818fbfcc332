"""Reference generator of synthetic twins: Python integers and sets, the same bits.

Follows ``native/include/gnnbench/twin.h`` step by step; meant for graphs of a few hundred nodes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gnnbench.kernels.reference.rng import philox

if TYPE_CHECKING:
    from gnnbench.kernels.twin import TwinSpec

Int64s = npt.NDArray[np.int64]

_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
_TAG = 0x7457494E
_IDS, _IN_RANK, _OUT_RANK, _TIED, _EDGES = 0, 1, 2, 3, 8
_LABELS, _SPLITS, _FEATURES, _CENTRES = 16, 17, 18, 19
_LEVELS = 3
_PASSES = 4


def _word(key: int, stream: int, vertex: int, i: int) -> int:
    """32-bit draw ``i`` of a stream of a vertex."""
    return philox(key, (i // 4, vertex, stream << 16, _TAG))[i % 4]


def _draw64(key: int, stream: int, vertex: int, i: int) -> int:
    words = philox(key, (i // 2, vertex, stream << 16, _TAG))
    return words[i % 2 * 2 + 1] << 32 | words[i % 2 * 2]


def bijection(key: int, stream: int, n: int) -> list[int]:
    """A keyed permutation of ``range(n)``: a Feistel network, walked back into the range."""
    bits = max(2, (n - 1).bit_length())
    low_bits = bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (bits - low_bits)) - 1
    keys = [_word(key, stream, 0, i) for i in range(6)]

    def mix(x: int, round_key: int) -> int:
        x = (x * 0x9E3779B1 + round_key) & _M32
        x = (x ^ (x >> 15)) * 0x85EBCA77 & _M32
        x = (x ^ (x >> 13)) * 0xC2B2AE3D & _M32
        return x ^ (x >> 16)

    def step(x: int) -> int:
        low, high = x & low_mask, x >> low_bits
        for i in range(0, 6, 2):
            low ^= mix(high, keys[i]) & low_mask
            high ^= mix(low, keys[i + 1]) & high_mask
        return high << low_bits | low

    values = []
    for x in range(n):
        x = step(x)
        while x >= n:
            x = step(x)
        values.append(x)
    return values


def _law_weight(points: list[int], positive: int, rank: int) -> int:
    if rank >= positive:
        return 0
    x, whole = 2 * rank + 1, 2 * positive
    j = 0
    while x << (j + 1) <= whole:
        j += 1
    return points[j] + (points[j + 1] - points[j]) * (whole - (x << j)) // positive


class _Rows:
    """Where the row of each position may draw from, level by level."""

    def __init__(self, spec: TwinSpec) -> None:
        n = spec.num_nodes
        self.spec = spec
        self.communities = spec.community_ptr.tolist()
        self.regions = spec.region_ptr.tolist()
        in_rank = bijection(spec.key, _IN_RANK, n)
        out_rank = bijection(spec.key, _OUT_RANK, n)
        in_law, out_law = spec.in_law.tolist(), spec.out_law.tolist()
        in_weight = [_law_weight(in_law, spec.in_positive, r) for r in in_rank]
        tied = [
            spec.tied >= 65536 or _word(spec.key, _TIED, p, 0) >> 16 < spec.tied for p in range(n)
        ]
        out_weight = [
            _law_weight(out_law, spec.out_positive, in_rank[p] if tied[p] else out_rank[p])
            for p in range(n)
        ]

        self.in_weight = self.by_level(in_weight, spec.in_limit)
        self.out_weight = self.by_level(out_weight, spec.out_limit)

    def by_level(self, weights: list[int], limit: int) -> list[list[int]]:
        """Weights as they count at each level, ``[level][position]``."""
        inside, outside = [], []
        for p, weight in enumerate(weights):
            lo, hi = self.around(p)[1]
            most = limit * (hi - lo) >> 16
            inside.append(min(weight, most))
            outside.append(weight + (max(0, weight - most) * self.spec.boost >> 16))
        return [inside, outside, outside]

    def around(self, p: int) -> list[tuple[int, int]]:
        """The row itself, its community, its region, everything: nested ranges."""
        c = bisect_right(self.communities, p) - 1
        r = bisect_right(self.regions, c) - 1
        at = self.communities
        region = (at[self.regions[r]], at[self.regions[r + 1]])
        return [(p, p + 1), (at[c], at[c + 1]), region, (0, self.spec.num_nodes)]

    def candidates(self, p: int, level: int) -> list[int]:
        """Positions that the row may draw at a level, ascending."""
        bounds = self.around(p)
        (hole_lo, hole_hi), (lo, hi) = bounds[level], bounds[level + 1]
        after = [] if self.spec.symmetric else list(range(hole_hi, hi))
        return list(range(lo, hole_lo)) + after

    def share(self, p: int, level: int) -> int:
        """The row's part of a level's edges, by weight."""
        out_weight = self.out_weight[level]
        weight = sum(out_weight[q] for q in self.candidates(p, level))
        if weight == 0:
            return 0
        if not self.spec.symmetric:
            return self.in_weight[level][p]
        lo, hi = self.around(p)[level + 1]
        return out_weight[p] * ((weight << 16) // sum(out_weight[lo:hi]))


def _share_out(left: int, shares: list[int], rooms: list[int], take: list[int]) -> int:
    shares = [share if room > 0 else 0 for share, room in zip(shares, rooms, strict=True)]
    total, upto, given = sum(shares), 0, 0
    if total == 0:
        return 0
    for i, share in enumerate(shares):
        wanted = (upto + share) * left // total - upto * left // total
        upto += share
        taken = min(wanted, rooms[i])
        take[i] += taken
        given += taken
    return given


def _plan(rows: _Rows) -> list[list[int]]:
    """Edges that each row draws, ``[level][position]``."""
    n = rows.spec.num_nodes
    wanted = [[0] * n for _ in range(_LEVELS)]
    counts = [[len(rows.candidates(p, level)) for p in range(n)] for level in range(_LEVELS)]
    left = 0
    for level in range(_LEVELS):
        left += int(rows.spec.level_edges[level])
        shares = [rows.share(p, level) for p in range(n)]
        for _ in range(_PASSES):
            rooms = [
                max(0, c - c // 2 - w) for c, w in zip(counts[level], wanted[level], strict=True)
            ]
            left -= _share_out(left, shares, rooms, wanted[level])
    for level in range(_LEVELS):
        rooms = [c - w for c, w in zip(counts[level], wanted[level], strict=True)]
        left -= _share_out(left, rooms, rooms, wanted[level])
    return wanted


def _choose(rows: _Rows, p: int, level: int, wanted: int) -> list[int]:
    """The first ``wanted`` distinct positions of the row's draws; past the limit, free ones."""
    candidates = rows.candidates(p, level)
    upto, sums = 0, []
    for q in candidates:
        upto += rows.out_weight[level][q]
        sums.append(upto)
    chosen: set[int] = set()
    stream, i, limit = _EDGES + level, 0, 4 * wanted + 64
    while upto > 0 and i < limit and len(chosen) < wanted:
        y = _draw64(rows.spec.key, stream, p, i) * upto >> 64
        chosen.add(candidates[bisect_right(sums, y)])
        i += 1
    at = _draw64(rows.spec.key, stream, p, limit) * len(candidates) >> 64
    while len(chosen) < wanted:
        chosen.add(candidates[at % len(candidates)])
        at += 1
    return list(chosen)


def graph(spec: TwinSpec) -> tuple[Int64s, npt.NDArray[np.int32] | Int64s]:
    """CSC as :func:`gnnbench.kernels.twin.graph`: indptr int64, indices int32 or int64."""
    rows = _Rows(spec)
    wanted = _plan(rows)
    ids = bijection(spec.key, _IDS, spec.num_nodes)
    neighbors: list[set[int]] = [set() for _ in range(spec.num_nodes)]
    for p in range(spec.num_nodes):
        for level in range(_LEVELS):
            if wanted[level][p] == 0:
                continue
            for q in _choose(rows, p, level, wanted[level][p]):
                neighbors[ids[p]].add(ids[q])
                if spec.symmetric:
                    neighbors[ids[q]].add(ids[p])
    indptr = np.cumsum([0] + [len(row) for row in neighbors], dtype=np.int64)
    flat = [u for row in neighbors for u in sorted(row)]
    indices = np.array(flat, dtype=np.int64)
    return indptr, indices if spec.wide_ids else indices.astype(np.int32)


def _communities(spec: TwinSpec) -> list[int]:
    """Community of each id."""
    starts, communities = spec.community_ptr.tolist(), [0] * spec.num_nodes
    for p, v in enumerate(bijection(spec.key, _IDS, spec.num_nodes)):
        communities[v] = bisect_right(starts, p) - 1
    return communities


def _positions(spec: TwinSpec) -> list[int]:
    """Position of each id."""
    return np.argsort(bijection(spec.key, _IDS, spec.num_nodes)).tolist()


def labels(spec: TwinSpec) -> Int64s:
    """Labels as :func:`gnnbench.kernels.twin.labels`."""
    values = []
    for p, c in zip(_positions(spec), _communities(spec), strict=True):
        anew = _word(spec.key, _LABELS, p, 0) >> 16 < spec.label_noise
        other = _word(spec.key, _LABELS, p, 1) * spec.num_classes >> 32
        values.append(other if anew else c % spec.num_classes)
    return np.array(values, dtype=np.int64)


def splits(spec: TwinSpec) -> tuple[Int64s, Int64s, Int64s]:
    """Splits as :func:`gnnbench.kernels.twin.splits`."""
    rank = bijection(spec.key, _IN_RANK, spec.num_nodes)
    scores = []
    for p, c in zip(_positions(spec), _communities(spec), strict=True):
        place = 65536 - spec.locality if c < spec.home else 65536
        high = 65536 - (rank[p] << 16) // spec.num_nodes
        degree = 65536 - (spec.degree_bias * high >> 16)
        scores.append((_word(spec.key, _SPLITS, p, 0) * place >> 16) * degree >> 16)
    order = np.argsort(np.array(scores), kind="stable")  # equal scores: the smaller id first
    first, second, third = np.cumsum(spec.splits)
    return np.sort(order[:first]), np.sort(order[first:second]), np.sort(order[second:third])


def features(spec: TwinSpec) -> npt.NDArray[np.float32]:
    """The feature table as :func:`gnnbench.kernels.twin.features`, all rows."""
    table = np.empty((spec.num_nodes, spec.feature_dim), np.float32)
    for v, (p, c) in enumerate(zip(_positions(spec), _communities(spec), strict=True)):
        for j in range(spec.feature_dim):
            noise = _word(spec.key, _FEATURES, p, j // 4) >> 8 * (j % 4) & 255
            up = _word(spec.key, _CENTRES, c % spec.num_classes, j // 32) >> j % 32 & 1
            table[v, j] = (2 * noise - 255 + (spec.signal if up else -spec.signal)) / 256
    return table
