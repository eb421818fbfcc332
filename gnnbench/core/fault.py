"""The fault that a check raises: what a system computes differs from what it should compute."""

from __future__ import annotations


class Fault(Exception):
    """What a gate found; its text is the reason of the row."""
