"""Memory that outlives a worker: held by one process, mapped by others, gone with the last of them.

It is a file without a name (``memfd_create``): no file system's limit applies, other processes open
it through ``/proc``, and the kernel frees it with the last descriptor and mapping, however the
processes end.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from gnnbench.measure import machine

PIECE_BYTES = 1 << 26
Fill = Callable[[memoryview, int], None]  # (a piece, its offset): writes every byte of the piece


def hold(name: str, size: int, fill: Fill, threads: int = 0) -> int:
    """Descriptor of ``size`` bytes that ``fill`` wrote, piece by piece, on ``threads`` (0: all).

    The size is sealed. ``name`` is shown in ``/proc``. Raises ``MemoryError`` before anything is
    taken where that much memory is not available, and whatever ``fill`` raises.
    """
    available = min(psutil.virtual_memory().available, machine.memory_limit_bytes())
    if size > available:
        raise MemoryError(
            f"cannot allocate memory: {size} bytes of {name} are to be held, {available} are free"
        )
    descriptor = os.memfd_create(f"gnnbench:{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        if size:
            _fill(descriptor, size, fill, threads or machine.resolve_threads(0))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _fill(descriptor: int, size: int, fill: Fill, threads: int) -> None:
    with (
        mmap.mmap(descriptor, size) as memory,
        memoryview(memory) as view,
        ThreadPoolExecutor(threads) as pool,
    ):
        with suppress(OSError):  # small pages are right as well
            memory.madvise(mmap.MADV_HUGEPAGE)

        def piece(start: int) -> None:
            with view[start : start + PIECE_BYTES] as part:
                fill(part, start)

        for done in [pool.submit(piece, start) for start in range(0, size, PIECE_BYTES)]:
            done.result()


def hold_file(file: Path) -> int:
    """Descriptor of a copy of a file's bytes. Raises ``OSError`` where it ends before its size."""
    with file.open("rb", buffering=0) as source:
        number = source.fileno()

        def read(part: memoryview, start: int) -> None:
            done = 0
            while done < len(part):
                with part[done:] as rest:
                    got = os.preadv(number, [rest], start + done)
                if got == 0:
                    raise OSError(f"{file} ends at byte {start + done}; prepare the dataset again")
                done += got

        return hold(file.name, os.fstat(number).st_size, read)


def address_of(descriptor: int) -> str:
    """Where other processes of the same user open what this process holds."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
