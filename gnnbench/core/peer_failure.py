"""Errors caused by the failure of another process of the group."""

from __future__ import annotations

import torch.distributed as dist

from gnnbench.core.errors import lacks_gpu_memory, lacks_host_memory

# Gloo's errors are plain ``RuntimeError``.
_GLOO = ("gloo/", "connectFullMesh", "Application timeout caused pair closure")
# So are errors of other ranks that cannot be pickled and arrive as text.
_FORWARDED = ("LostError: ", "DistBackendError: ", "DistNetworkError: ", "DistStoreError: ")
_LATE = ("imed out", "imeout", "wait timeout")


class LostError(RuntimeError):
    """Another process of the group has ended or does not answer."""


def is_lost(error: BaseException) -> bool:
    """Whether an error follows from the failure of a peer.

    Exhausted memory is a failure of this process, also inside a collective.
    """
    if lacks_host_memory(error) or lacks_gpu_memory(error):
        return False
    if isinstance(error, LostError | dist.DistError):
        return True
    if type(error) is not RuntimeError:
        return False
    text = str(error)
    return any(mark in text for mark in _GLOO) or text.startswith(_FORWARDED)


def is_late(error: BaseException) -> bool:
    """Whether a peer failure is a timeout."""
    return any(mark in str(error) for mark in _LATE)
