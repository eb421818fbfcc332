"""Access patterns of zero-copy reads from host memory, and their defaults; imports no torch."""

from __future__ import annotations

NAIVE, ALIGNED, PAGE_ORDERED = ACCESSES = ("naive", "aligned", "page-ordered")
PAGE_BYTES = 2 << 20  # range of one address translation
READERS = 16  # blocks of 1024 threads that saturate the link and leave other multiprocessors free
MOST_READERS = 65535
DEPTH = 4  # rows in flight for the lanes of one row: 1, 2 or 4
