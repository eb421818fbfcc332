"""Host memory: the size usable by this process, and the free part."""

from __future__ import annotations

from gnnbench.core.cgroups import memory_limit


def memory_limit_bytes() -> int:
    """Memory this process may use: the machine's, or its control groups' limit if smaller."""
    import psutil

    total, limit = int(psutil.virtual_memory().total), memory_limit()
    return total if limit is None else min(total, limit)


def free_memory_bytes() -> int:
    """Memory that can be had without swapping, as the kernel estimates it, within that limit."""
    import psutil

    return min(int(psutil.virtual_memory().available), memory_limit_bytes())
