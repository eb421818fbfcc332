"""The host's memory: how much there is for this process, and how much of it is free."""

from __future__ import annotations

from pathlib import Path


def memory_limit_bytes() -> int:
    """Memory this process may use: the machine's, or its control group's limit if smaller."""
    import psutil

    total = int(psutil.virtual_memory().total)
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def free_memory_bytes() -> int:
    """Memory that can be had without swapping, as the kernel estimates it, within that limit."""
    import psutil

    return min(int(psutil.virtual_memory().available), memory_limit_bytes())
