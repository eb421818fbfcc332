"""Errors shown to users; each has the documented exit code of the command line.

A message says what is wrong and what to do, in one or two sentences.
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
# Texts of libraries' errors, in lower case.
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
    """Base of all errors that are shown to the user without a traceback."""

    exit_code: ClassVar[int] = EXIT_INTERNAL


class UsageError(GnnbenchError):
    """A name, option, definition or folder is invalid."""

    exit_code = EXIT_USAGE


class OutputError(UsageError):
    """Standard output or error cannot be written, for example because the disk is full."""


class SettingError(UsageError):
    """The value of ``key`` is invalid: an axis, ``SYSTEM.PATH`` or another key."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@contextmanager
def setting(key: str) -> Iterator[None]:
    """Attribute a ``UsageError`` of the block to the value of ``key``.

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
    """A backend or dataset is missing or unusable."""

    exit_code = EXIT_MISSING


class DataError(MissingError):
    """A dataset is damaged: truncated, altered, out of range or of a wrong type."""


class NoGraphError(MissingError):
    """No prepared graph in the expected folder; the cell's status is ``missing_data``."""


class GpuMemoryError(GnnbenchError):
    """GPU memory is exhausted; the cell's status is ``oom_gpu``."""

    exit_code = EXIT_CELLS_FAILED


class HostMemoryError(GnnbenchError, MemoryError):
    """Host memory is exhausted or cannot be page-locked; the cell's status is ``oom_host``."""

    exit_code = EXIT_CELLS_FAILED


class ReplacedError(GnnbenchError):
    """A plug-in has replaced code of gnnbench; the cell's status is ``incorrect``."""

    exit_code = EXIT_INCORRECT


class UnsupportedError(UsageError):
    """A system does not support a setting; in a run this becomes a row."""


def lacks_host_memory(error: BaseException) -> bool:
    """Whether an error of any library reports exhausted host memory."""
    if isinstance(error, GpuMemoryError):
        return False
    return isinstance(error, MemoryError) or _says(error, HOST_MEMORY)


def lacks_gpu_memory(error: BaseException) -> bool:
    """Whether an error of any library reports exhausted GPU memory."""
    known = isinstance(error, GpuMemoryError) or type(error).__name__ == "OutOfMemoryError"
    return known or _says(error, GPU_MEMORY)


def _says(error: BaseException, marks: tuple[str, ...]) -> bool:
    text = str(error).lower()
    return any(mark in text for mark in marks)
