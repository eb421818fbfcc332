"""How a device reads rows of a table in host memory: words and numbers, for which nobody needs
torch."""

from __future__ import annotations

NAIVE, ALIGNED, PAGE_ORDERED = ACCESSES = ("naive", "aligned", "page-ordered")
PAGE_BYTES = 2 << 20  # what one translation of an address serves
READERS = 16  # blocks of 1024 threads that fill the link, and leave the other processors free
MOST_READERS = 65535
DEPTH = 4  # rows that the lanes of one row ask for before they wait: 1, 2 or 4
