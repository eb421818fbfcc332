"""Access patterns of zero-copy reads from host memory, and their defaults; imports no torch."""

from __future__ import annotations

ELEMENTWISE = "elementwise", "elementwise-shifted"  # PyTorch-Direct's Listing 2, as printed
NAIVE, ALIGNED, PAGE_ORDERED, PLAIN, SHIFTED = ACCESSES = (
    "naive", "aligned", "page-ordered", *ELEMENTWISE,
)  # fmt: skip
ELEMENT_BYTES = 4  # of one thread's load by elementwise access
PAGE_BYTES = 2 << 20  # range of one address translation
READERS = 16  # blocks of 1024 threads that saturate the link and leave other multiprocessors free
MOST_READERS = 65535
DEPTH = 4  # rows in flight for the lanes of one row: 1, 2 or 4
