"""How many rows a cache holds where nobody says: what batches leave of the device's memory."""

from __future__ import annotations

AUTO = "auto"
# Of the peak, for batches larger than those that were seen, and for what no allocator counts.
MARGIN_SHARE, MARGIN_BYTES = 1 / 8, 1 << 29


def fitting_rows(
    num_nodes: int, row_bytes: int, room: int | None = None, peak: int = 0, limit: int | None = None
) -> int:
    """Rows of ``row_bytes`` that a cache may hold, ``num_nodes`` at most.

    ``room``: bytes of the device's memory for all that the process has there; ``peak``: the most of
    them that batches without the cache took (PaGraph, SoCC 2020; GNNLab, EuroSys 2022, section
    6.1, after one mini-batch). What is left, less an eighth of the peak and 512 MiB, is the
    cache's. ``limit``: bytes that it may take at most. Raises ``ValueError`` where neither ``room``
    nor ``limit`` is given.
    """
    if room is None and limit is None:
        raise ValueError("a cache's size is derived from a room or a limit")
    left = [] if limit is None else [limit]
    if room is not None:
        left.append(room - peak - int(peak * MARGIN_SHARE) - MARGIN_BYTES)
    return max(0, min(num_nodes, min(left) // max(1, row_bytes)))
