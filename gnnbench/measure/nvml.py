"""Queries of NVML, which a device may not support."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def optional(nvml: ModuleType, query: Callable[[], T]) -> T | None:
    """Return the answer of ``query``; None if the device does not support it."""
    try:
        return query()
    except nvml.NVMLError:
        return None
