"""Host requests of PyTorch-Direct's kernel (section 3.2.1, Listing 2): an address model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WARP = 32
LINE_BYTES = 128
ELEMENT_BYTES = 4


def requests(ids: npt.ArrayLike, features: int, aligned: bool = False) -> int:
    """Requests for lines of 128 bytes that a gather of float32 rows makes.

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


def lines(ids: npt.ArrayLike, features: int) -> int:
    """Cache lines of 128 bytes that the rows touch, counted by row: the fewest requests."""
    first = np.asarray(ids, dtype=np.int64) * features * ELEMENT_BYTES
    last = first + features * ELEMENT_BYTES - 1
    return int((last // LINE_BYTES - first // LINE_BYTES + 1).sum())
