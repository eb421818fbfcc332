"""Memory that outlives a worker: held by one process, mapped by others, gone with the last of them.

It is a file without a name (``memfd_create``): no file system's limit applies, other processes open
it through ``/proc``, and the kernel frees it with the last descriptor and mapping, however the
processes end.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil

from gnnbench.core import pages
from gnnbench.datasets.store import layout
from gnnbench.measure import machine

PIECE_BYTES = 1 << 26
HUGE_PIECE_BYTES = 1 << 26  # whole huge pages
Fill = Callable[[memoryview, int], None]  # (a piece, its offset): writes every byte of the piece


def hold(name: str, size: int, fill: Fill, threads: int = 0, unit: int = 1) -> int:
    """Descriptor of ``size`` bytes that ``fill`` wrote, piece by piece, on ``threads`` (0: all).

    Pieces are whole multiples of ``unit`` bytes. The memory is in huge pages where the kernel has
    them (``gnnbench.core.pages.huge_bytes``), and its size is sealed. ``name`` is shown in
    ``/proc``.
    Raises ``MemoryError`` before anything is taken where that much memory is not available, and
    whatever ``fill`` raises; nothing is held then.
    """
    available = min(psutil.virtual_memory().available, machine.memory_limit_bytes())
    if size > available:
        raise MemoryError(
            f"cannot allocate memory: {size} bytes of {name} are to be held, {available} are free;"
            " take a smaller @scale, or a machine with more memory"
        )
    descriptor = os.memfd_create(f"gnnbench:{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        if size:
            _fill(descriptor, size, fill, threads or machine.resolve_threads(0), unit)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _fill(descriptor: int, size: int, fill: Fill, threads: int, unit: int) -> None:
    address = pages.map_file(descriptor, size)
    try:
        with pages.view(address, size) as view, ThreadPoolExecutor(threads) as pool:

            def huge(start: int) -> None:
                pages.make_huge(address + start, min(HUGE_PIECE_BYTES, size - start))

            def piece(start: int) -> None:
                with view[start : start + step] as part:
                    fill(part, start)

            step = max(PIECE_BYTES // unit, 1) * unit
            for each, length in ((huge, HUGE_PIECE_BYTES), (piece, step)):
                work = [pool.submit(each, start) for start in range(0, size, length)]
                try:
                    for done in work:
                        done.result()
                finally:
                    for one in work:
                        one.cancel()  # after a failure nobody waits for the rest
    finally:
        pages.unmap(address, size)


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


def array_holder(folder: Path, array: str) -> Callable[[], int]:
    """What holds an array of a prepared graph: a copy of its file, or made where it has none.

    What makes it is imported by then. Raises ``DataError`` where nothing does; the holder raises as
    :func:`hold` and :func:`hold_file`.
    """
    meta = layout.read_meta(folder)
    entry = meta["arrays"][array]
    if not layout.is_made(entry):
        return partial(hold_file, layout.file_of(folder, array))
    from gnnbench.datasets.generators.generated_features import filler

    fill = filler(folder, meta, array)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # of each of the threads that fill
    row = entry["bytes"] // max(entry["shape"][0], 1)
    return partial(hold, array, entry["bytes"], fill, unit=max(row, 1))


def told(descriptor: int) -> dict[str, int]:
    """What a run tells of the memory: ``bytes``, and how many lie in huge pages."""
    return {"bytes": os.fstat(descriptor).st_size, "huge_bytes": pages.huge_bytes(descriptor)}


def address_of(descriptor: int) -> str:
    """Where other processes of the same user open what this process holds."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
