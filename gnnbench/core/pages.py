"""Mappings of shared memory, placed and filled so that huge pages hold them where the kernel can.

A row at random in a table of 4 KiB pages costs an address translation that the processor has to
look up in memory; in pages of 2 MiB it mostly has it at hand.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HUGE_BYTES = 2 << 20
_COLLAPSE = 25  # MADV_COLLAPSE of <linux/mman.h>: made huge at once, whatever the system's default
# PROT_NONE, MAP_FIXED, MAP_NORESERVE: Python has no names for them.
_NO_ACCESS, _FIXED, _NORESERVE = 0, 0x10, 0x4000


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = address
    libc.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    libc.munmap.argtypes = (address, size)
    libc.memset.restype = address
    libc.memset.argtypes = (address, number, size)
    libc.mprotect.argtypes = libc.madvise.argtypes = (address, size, number)
    return libc


def _failed(call: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{call}: {os.strerror(code)}")


def _mmap(at: int, size: int, protection: int, flags: int, descriptor: int) -> int:
    found = _libc().mmap(at or None, size, protection, flags, descriptor, 0)
    if found is None or found == ctypes.c_void_p(-1).value:
        raise _failed("mmap")
    return int(found)


def map_file(descriptor: int, size: int) -> int:
    """Address of a shared mapping of a file's first ``size`` bytes (above 0), to read and write.

    It begins with a huge page. Raises ``OSError``, where the address space is exhausted by one that
    says "cannot allocate memory".
    """
    page = mmap.PAGESIZE
    whole = -(-size // page) * page
    nothing = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    room = _mmap(0, whole + HUGE_BYTES, _NO_ACCESS, nothing, -1)
    at = -(-room // HUGE_BYTES) * HUGE_BYTES
    try:
        _mmap(at, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED, descriptor)
    except OSError:
        unmap(room, whole + HUGE_BYTES)
        raise
    for begin, end in ((room, at), (at + whole, room + whole + HUGE_BYTES)):
        if end > begin:
            unmap(begin, end - begin)
    return at


def unmap(address: int, size: int) -> None:
    """Undo :func:`map_file`."""
    if _libc().munmap(address, size) != 0:
        raise _failed("munmap")


def protect(address: int, size: int, how: int) -> None:
    """Allow what ``how`` says (``mmap.PROT_READ`` ...) of mapped pages, and nothing else."""
    if _libc().mprotect(address, size, how) != 0:
        raise _failed("mprotect")


@contextmanager
def view(address: int, size: int) -> Iterator[memoryview]:
    """Mapped bytes as a buffer; nothing may hold a part of it in the end."""
    whole = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    try:
        yield whole
    finally:
        whole.release()


def make_huge(address: int, size: int) -> None:
    """Ask for huge pages for the bytes of a shared mapping, before they are written.

    Where the kernel has none to give (before Linux 6.1 and not advised either, or memory in too
    small pieces) they stay small, which is right as well: :func:`huge_bytes` tells.
    """
    end = (address + size) // HUGE_BYTES * HUGE_BYTES
    begin = -(-address // HUGE_BYTES) * HUGE_BYTES
    if begin >= end:
        return
    libc = _libc()
    libc.madvise(begin, end - begin, mmap.MADV_HUGEPAGE)
    for at in range(begin, end, HUGE_BYTES):
        libc.memset(at, 0, 1)  # one page is made, the rest of 2 MiB follows; other threads go on
    libc.madvise(begin, end - begin, _COLLAPSE)


def huge_bytes(descriptor: int) -> int:
    """How much of a file in memory a process that maps it reads through huge pages."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0
    address = map_file(descriptor, size)
    try:
        for at in range(address, address + size, HUGE_BYTES):
            ctypes.c_char.from_address(at).value  # noqa: B018
        found = False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if line.startswith(f"{address:x}-"):
                found = True
            elif found and line.startswith("ShmemPmdMapped:"):
                return int(line.split()[1]) * 1024
        return 0
    finally:
        unmap(address, size)
