"""Map shared memory aligned for huge pages.

A random row access in 4 KiB pages misses the TLB and reads the page table from memory. With 2 MiB
pages it mostly hits the TLB.
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
    address = _libc().mmap(at or None, size, protection, flags, descriptor, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise _failed("mmap")
    return int(address)


def map_file(descriptor: int, size: int) -> int:
    """Map the first ``size`` bytes (above 0) of a file, shared, read and write.

    Returns the address, a multiple of ``HUGE_BYTES``. Raises ``OSError``.
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
    """Set the protection of mapped pages to ``how`` (``mmap.PROT_READ`` ...)."""
    if _libc().mprotect(address, size, how) != 0:
        raise _failed("mprotect")


@contextmanager
def view(address: int, size: int) -> Iterator[memoryview]:
    """Mapped bytes as a buffer; no slice of it may outlive the block."""
    whole = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    try:
        yield whole
    finally:
        whole.release()


def make_huge(address: int, size: int) -> None:
    """Request huge pages for the bytes of a shared mapping, before they are written.

    Pages stay small where the kernel has no huge ones (before Linux 6.1 without ``madvise``, or
    fragmented memory). :func:`huge_bytes` returns the result.
    """
    end = (address + size) // HUGE_BYTES * HUGE_BYTES
    begin = -(-address // HUGE_BYTES) * HUGE_BYTES
    if begin >= end:
        return
    libc = _libc()
    libc.madvise(begin, end - begin, mmap.MADV_HUGEPAGE)
    for at in range(begin, end, HUGE_BYTES):
        libc.memset(at, 0, 1)  # one page is touched; the kernel fills the other 2 MiB
    libc.madvise(begin, end - begin, _COLLAPSE)


def huge_bytes(descriptor: int) -> int:
    """Bytes of a memory file that are mapped through huge pages."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0
    address = map_file(descriptor, size)
    try:
        for at in range(address, address + size, HUGE_BYTES):
            ctypes.c_char.from_address(at).value  # noqa: B018
        in_mapping = False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if line.startswith(f"{address:x}-"):
                in_mapping = True
            elif in_mapping and line.startswith("ShmemPmdMapped:"):
                return int(line.split()[1]) * 1024
        return 0
    finally:
        unmap(address, size)
