"""Shared memory that outlives a worker: created by one process and mapped by others.

It is an anonymous file (``memfd_create``): no limit of a file system applies, other processes open
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

CHUNK_BYTES = 1 << 26
HUGE_CHUNK_BYTES = 1 << 26  # whole huge pages
Fill = Callable[[memoryview, int], None]  # writes every byte of a chunk, given its offset


def create_shared(name: str, size: int, fill: Fill, threads: int = 0, unit: int = 1) -> int:
    """Allocate ``size`` bytes of shared memory and fill them; returns the descriptor.

    ``fill`` is called for chunks of a multiple of ``unit`` bytes on ``threads`` threads (0: all
    cores). Huge pages are used if the kernel has them (``gnnbench.core.pages.huge_bytes``); the
    size is sealed. ``name`` is shown in ``/proc``. Raises ``MemoryError`` before the allocation if
    too little memory is available. After an exception of ``fill`` the memory is freed.
    """
    available = min(psutil.virtual_memory().available, machine.memory_limit_bytes())
    if size > available:
        raise MemoryError(
            f"cannot allocate memory: {name} takes {size} bytes, {available} are free;"
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

            def advise_huge(start: int) -> None:
                pages.make_huge(address + start, min(HUGE_CHUNK_BYTES, size - start))

            def fill_chunk(start: int) -> None:
                with view[start : start + step] as chunk:
                    fill(chunk, start)

            step = max(CHUNK_BYTES // unit, 1) * unit
            for function, length in ((advise_huge, HUGE_CHUNK_BYTES), (fill_chunk, step)):
                tasks = [pool.submit(function, start) for start in range(0, size, length)]
                try:
                    for task in tasks:
                        task.result()
                finally:
                    for task in tasks:
                        task.cancel()  # the rest, after a failure
    finally:
        pages.unmap(address, size)


def share_file(file: Path) -> int:
    """Copy a file to shared memory; returns the descriptor.

    Raises ``OSError`` if the file is shorter than its size.
    """
    with file.open("rb", buffering=0) as source:
        descriptor = source.fileno()

        def read(chunk: memoryview, start: int) -> None:
            done = 0
            while done < len(chunk):
                with chunk[done:] as rest:
                    count = os.preadv(descriptor, [rest], start + done)
                if count == 0:
                    raise OSError(f"{file} ends at byte {start + done}; prepare the dataset again")
                done += count

        return create_shared(file.name, os.fstat(descriptor).st_size, read)


def array_sharer(folder: Path, array: str) -> Callable[[], int]:
    """A function that puts an array of a prepared graph into shared memory and returns its
    descriptor.

    It copies the array's file, or generates an array without a file; the generator is imported
    here, not in the returned function. Raises ``DataError`` for an unknown generator; the function
    raises as :func:`create_shared` and :func:`share_file`.
    """
    meta = layout.read_meta(folder)
    entry = meta["arrays"][array]
    if not layout.is_generated(entry):
        return partial(share_file, layout.file_of(folder, array))
    from gnnbench.datasets.generators.generated_features import filler

    fill = filler(folder, meta, array)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # per filling thread
    row = entry["bytes"] // max(entry["shape"][0], 1)
    return partial(create_shared, array, entry["bytes"], fill, unit=max(row, 1))


def memory_sizes(descriptor: int) -> dict[str, int]:
    """Size of shared memory (``bytes``), and how much of it is in huge pages (``huge_bytes``)."""
    return {"bytes": os.fstat(descriptor).st_size, "huge_bytes": pages.huge_bytes(descriptor)}


def address_of(descriptor: int) -> str:
    """Path under which other processes of the same user open shared memory of this process."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
