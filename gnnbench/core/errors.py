"""Errors a user can meet; each carries the exit code that the command line documents.

The message is one sentence: what is wrong and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

EXIT_OK = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_CELLS_FAILED = 3
EXIT_INCORRECT = 4
EXIT_REGRESSION = 5
EXIT_MISSING = 6
EXIT_INTERRUPTED = 130
# How libraries say it, in small letters.
HOST_MEMORY = (
    "can't allocate memory", "cannot allocate memory", "bad_alloc", "not enough memory",
    "failed to map segment",  # the loader of shared libraries
    "unable to allocate shared memory", "insufficient shared memory",  # torch
    "storage size calculation overflowed",  # torch, of more bytes than an address can have
)  # fmt: skip
GPU_MEMORY = (
    "cuda out of memory",
    "out of memory on device",
    "cudaerrormemoryallocation",
    "cuda error: out of memory",
    "cuda failure 2 'out of memory'", "cuda failure 'out of memory'",  # NCCL
)  # fmt: skip


class GnnbenchError(Exception):
    """Base of every error that is told to the user without a traceback."""

    exit_code: ClassVar[int] = EXIT_INTERNAL


class UsageError(GnnbenchError):
    """A name, option, definition or folder that cannot be used as given."""

    exit_code = EXIT_USAGE


class OutputError(UsageError):
    """Standard output or error that cannot be written, such as one on a full disk."""


class SettingError(UsageError):
    """The value of an axis, of ``SYSTEM.PATH`` or of another ``key`` that cannot be as it is."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@contextmanager
def setting(key: str) -> Iterator[None]:
    """Say of a ``UsageError`` that the value of ``key`` is at fault.

    ``key``: an axis, ``SYSTEM.PATH`` or a key of the definition.
    """
    try:
        yield
    except SettingError:
        raise
    except UsageError as error:
        raise SettingError(str(error), key) from None


class CellsFailedError(GnnbenchError):
    """Some cells of a run ended with another status than ``ok``."""

    exit_code = EXIT_CELLS_FAILED


class MissingError(GnnbenchError):
    """A backend or a dataset is not there, or is there and unusable."""

    exit_code = EXIT_MISSING


class DataError(MissingError):
    """A dataset that is there but broken: truncated, flipped, out of range, of the wrong type."""


class NoGraphError(MissingError):
    """There is no prepared graph where one is expected; a cell's status is ``missing_data``."""


class GpuMemoryError(GnnbenchError):
    """What was asked for does not fit into the GPU's memory; a cell's status is ``oom_gpu``."""

    exit_code = EXIT_CELLS_FAILED


class HostMemoryError(GnnbenchError, MemoryError):
    """The host's memory is short, or cannot be locked; a cell's status is ``oom_host``."""

    exit_code = EXIT_CELLS_FAILED


class UnsupportedError(UsageError):
    """A system cannot do what was asked of it; in a run this is a row, not an end."""


def lacks_host_memory(error: BaseException) -> bool:
    """Whether an error says that the host's memory is short, whosever error it is."""
    if isinstance(error, GpuMemoryError):
        return False
    return isinstance(error, MemoryError) or _says(error, HOST_MEMORY)


def lacks_gpu_memory(error: BaseException) -> bool:
    """Whether an error says that a GPU's memory is exhausted, whosever error it is."""
    known = isinstance(error, GpuMemoryError) or type(error).__name__ == "OutOfMemoryError"
    return known or _says(error, GPU_MEMORY)


def _says(error: BaseException, marks: tuple[str, ...]) -> bool:
    text = str(error).lower()
    return any(mark in text for mark in marks)
