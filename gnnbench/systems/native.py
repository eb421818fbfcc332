"""What the systems on our native operators need."""

from __future__ import annotations

from gnnbench.ops.library import native_info
from gnnbench.systems.base import Missing


def native_missing() -> Missing | None:
    """The CPU library must have been built."""
    if native_info()["cpu_built"]:
        return None
    return Missing("the native library is not built", "make install")
