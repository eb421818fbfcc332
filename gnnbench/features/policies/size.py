"""Cache size derived from the device memory that batches leave free."""

from __future__ import annotations

AUTO = "auto"
# Reserve for batches larger than the measured ones and for memory outside torch's allocator.
MARGIN_SHARE, MARGIN_BYTES = 1 / 8, 1 << 29


def fitting_rows(
    num_nodes: int, row_bytes: int, room: int | None = None, peak: int = 0, limit: int | None = None
) -> int:
    """Rows of ``row_bytes`` bytes that fit into a cache, at most ``num_nodes``.

    ``room``: bytes of device memory available to the process; ``peak``: the peak of batches without
    the cache (PaGraph, SoCC 2020; GNNLab, EuroSys 2022, section 6.1, after one mini-batch). The
    cache gets the rest less an eighth of the peak and 512 MiB. ``limit``: maximum bytes of the
    cache. Raises ``ValueError`` if both ``room`` and ``limit`` are None.
    """
    if room is None and limit is None:
        raise ValueError("a cache's size is derived from a room or a limit")
    left = [] if limit is None else [limit]
    if room is not None:
        left.append(room - peak - int(peak * MARGIN_SHARE) - MARGIN_BYTES)
    return max(0, min(num_nodes, min(left) // max(1, row_bytes)))
