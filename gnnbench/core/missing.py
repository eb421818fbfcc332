"""What is not there, and how to get it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """Why something cannot run here, and the exact way to get what is missing."""

    reason: str
    fix: str
