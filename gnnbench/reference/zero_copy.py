"""What PyTorch-Direct's kernel asks of the host (section 3.2.1, Listing 2): an address model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WARP = 32
LINE_BYTES = 128


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
    line = (source + offset) * 4 // LINE_BYTES
    return len(np.unique(np.stack([at // WARP, line]), axis=1).T)
