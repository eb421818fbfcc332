"""Error of a correctness check."""

from __future__ import annotations


class Fault(Exception):
    """A system's result differs from the reference; the text becomes the row's reason."""
