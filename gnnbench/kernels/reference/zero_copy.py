"""Host requests of gathers, by models of their addresses: PyTorch-Direct's Listing 2, and ours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WARP = 32
LINE_BYTES = 128
ELEMENT_BYTES = 4


def requests(ids: npt.ArrayLike, features: int, aligned: bool = False) -> int:
    """Requests for lines of 128 bytes that Listing 2 (section 3.2.1) makes for float32 rows.

    ``ids`` ``[n]`` rows of a table ``[..., features]`` that begins at a line. A thread reads one
    element, a warp 32 that follow one another in the answer; each line that a warp touches is one
    request. ``aligned``: with the circular shift, which brings every warp to a line's beginning.
    """
    rows = np.asarray(ids, dtype=np.int64)
    at = np.arange(rows.size * features)
    row, offset = at // features, at % features
    source = rows[row] * features
    if aligned and features > WARP and features % WARP:
        offset = (offset + (row * features - source) % WARP) % features
    line = (source + offset) * ELEMENT_BYTES // LINE_BYTES
    return np.unique(at // WARP * (int(line.max(initial=0)) + 1) + line).size


def row_requests(ids: npt.ArrayLike, row_bytes: int, aligned: bool = False) -> int:
    """The same of gnnbench's kernel (native/cuda/features/rows.cuh), ``access`` naive or aligned.

    ``row_bytes`` is at least 1. A lane loads the widest power of two up to 16 bytes that divides a
    row. Up to 32 lanes share a row; a warp has as many rows as fit.
    """
    rows = np.asarray(ids, dtype=np.int64)
    unit = int(np.gcd(row_bytes, 16))
    units = row_bytes // unit
    lanes = next(n for n in (1, 2, 4, 8, 16, WARP) if n >= min(units, WARP))
    first = rows[:, None] * row_bytes
    at = np.arange(units)
    place = at
    if aligned and row_bytes > LINE_BYTES and row_bytes % LINE_BYTES:
        place = (at + -first % LINE_BYTES // unit) % units
    line = (first + place * unit) // LINE_BYTES
    warp = np.arange(rows.size)[:, None] * lanes // WARP
    load = warp * (-(-units // lanes)) + at // lanes  # of all lanes of a warp
    return np.unique(load * (int(line.max(initial=0)) + 1) + line).size


def lines(ids: npt.ArrayLike, features: int) -> int:
    """Cache lines of 128 bytes that the rows touch, counted by row: the fewest requests."""
    first = np.asarray(ids, dtype=np.int64) * features * ELEMENT_BYTES
    last = first + features * ELEMENT_BYTES - 1
    return int((last // LINE_BYTES - first // LINE_BYTES + 1).sum())
