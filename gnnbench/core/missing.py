"""A missing dependency, dataset or device, and how to get it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """Why something cannot run here (``reason``), and the command that fixes it (``fix``)."""

    reason: str
    fix: str
