"""Refuse an import that exceeds the machine's memory or disk before it begins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gnnbench.core.errors import GnnbenchError, HostMemoryError, UsageError, lacks_host_memory
from gnnbench.core.host_memory import free_memory_bytes
from gnnbench.datasets.store.csc import EDGES_PER_PASS
from gnnbench.datasets.store.disk import free_disk_bytes

# Of a node: degrees, their sums, indptr, labels and the order that a split is drawn from.
_NODE_BYTES = 80
# Of an edge while it is sorted (its ids are in memory by then), and of a weight with its place.
_SORTED_BYTES, _WEIGHT_BYTES = 20, 32


def check_memory(size: int, origin: str) -> None:
    """Raise ``HostMemoryError`` where ``origin`` takes ``size`` bytes and fewer are free."""
    free = free_memory_bytes()
    if size > free:
        raise HostMemoryError(
            f"{origin} takes about {_gib(size)} of memory where {_gib(free)} are free; check its "
            "counts, close other programs or use a machine with more memory"
        )


def check_room(
    folder: Path, nodes: int, edges: int, width: int, source: Path, weighted: bool = False
) -> None:
    """Raise where a graph of these counts takes more than is free.

    ``folder`` is where it is stored, ``width`` the number of stored float32 features of a node,
    ``source`` is named in errors. Raises ``HostMemoryError`` for memory, ``UsageError`` for disk.
    """
    counts = f"importing {source} ({nodes:,} nodes, {edges:,} edges)"
    memory = _NODE_BYTES * nodes + _SORTED_BYTES * min(edges, EDGES_PER_PASS)
    check_memory(memory + _WEIGHT_BYTES * edges * weighted, counts)
    stored, free = (24 + 4 * width) * nodes + 4 * edges, free_disk_bytes(folder)
    if stored > free:
        raise UsageError(
            f"{counts} takes about {_gib(stored)} of disk where {_gib(free)} are free below "
            f"{folder}; check its counts, free some space, or set GNNBENCH_DATA to a folder on "
            "another disk"
        )


@contextlib.contextmanager
def memory_errors(source: Path | str) -> Iterator[None]:
    """Turn exhausted memory into ``HostMemoryError``, which names ``source``."""
    try:
        yield
    except GnnbenchError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not lacks_host_memory(error):
            raise
        raise HostMemoryError(
            f"importing {source} takes more memory than is free; check its counts, or use a "
            "machine with more memory"
        ) from None


def _gib(size: int) -> str:
    if size >= 1 << 50:
        return f"{size / 2**40:,.0f} TiB"
    return f"{size / 2**30:.1f} GiB" if size >= 1 << 27 else f"{size / 2**20:.1f} MiB"
