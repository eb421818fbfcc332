"""Errors of a process that has lost another one of its group: what follows from one elsewhere."""

from __future__ import annotations

import torch.distributed as dist

from gnnbench.core.errors import lacks_gpu_memory, lacks_host_memory

# Gloo's errors are plain ``RuntimeError``.
_GLOO = ("gloo/", "connectFullMesh", "Application timeout caused pair closure")
# So is what is told of an error that cannot be sent.
_TOLD = ("LostError: ", "DistBackendError: ", "DistNetworkError: ", "DistStoreError: ")
_LATE = ("imed out", "imeout", "wait timeout")


class LostError(RuntimeError):
    """Another process of the group has ended, or does not answer."""


def is_lost(error: BaseException) -> bool:
    """Whether an error is of the connection to other processes, and not by itself one.

    Whoever lacks memory says so, also where it is a collective that lacks it.
    """
    if lacks_host_memory(error) or lacks_gpu_memory(error):
        return False
    if isinstance(error, LostError | dist.DistError):
        return True
    return type(error) is RuntimeError and _is_told(str(error))


def _is_told(text: str) -> bool:
    return any(mark in text for mark in _GLOO) or text.startswith(_TOLD)


def is_late(error: BaseException) -> bool:
    """Whether one that is lost says that nothing came in time."""
    return any(mark in str(error) for mark in _LATE)
