"""Failures as data: a status and one sentence from an exception or an ended worker."""

from __future__ import annotations

import signal
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path

from gnnbench.core.errors import (
    HOST_MEMORY,
    DataError,
    GnnbenchError,
    GpuMemoryError,
    HostMemoryError,
    MissingError,
    NoGraphError,
    ReplacedError,
    UsageError,
    lacks_gpu_memory,
    lacks_host_memory,
)

FAILED = ("oom_gpu", "oom_host", "timeout", "crash", "incorrect", "unstable")
LESS_HOST_MEMORY = "take a smaller @scale or batch_size, or a machine with more memory"
LESS_GPU_MEMORY = "take a smaller batch_size or a GPU with more memory"


@dataclass(frozen=True)
class Failure:
    """``status`` is one of ``gnnbench.schema.STATUSES``; ``reason`` is one sentence."""

    status: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return plain values."""
        return asdict(self)


def host_memory(error: BaseException) -> Failure | None:
    """Return a failure of host memory if an error reports it.

    A package that cannot be loaded for lack of memory is not missing.
    """
    if isinstance(error, HostMemoryError):
        return Failure("oom_host", str(error))
    if lacks_host_memory(error):
        return Failure("oom_host", f"the host's memory is exhausted; {LESS_HOST_MEMORY}")
    return None


def from_exception(error: BaseException) -> Failure:
    """Classify an exception of a system."""
    kind = type(error).__name__
    if (short := host_memory(error)) is not None:
        return short
    if isinstance(error, DataError | NoGraphError):
        return Failure("missing_data", str(error))
    if isinstance(error, MissingError):
        return Failure("missing_dep", str(error))
    if isinstance(error, UsageError):
        return Failure("unsupported", str(error))
    if isinstance(error, ReplacedError):
        return Failure("incorrect", str(error))
    if isinstance(error, GpuMemoryError):
        return Failure("oom_gpu", str(error))
    if isinstance(error, GnnbenchError):
        return Failure("crash", str(error))
    if isinstance(error, ImportError):
        return Failure("missing_dep", f"a package does not import ({error}); install it again")
    if lacks_gpu_memory(error):
        return Failure("oom_gpu", f"the GPU's memory is exhausted; {LESS_GPU_MEMORY}")
    first = textwrap.shorten(next(iter(str(error).splitlines()), ""), 300, placeholder=" ...")
    return Failure("crash", f"{kind}: {first}" if first else kind)


def from_death(code: int, oom_kills: int, log: Path) -> Failure:
    """Classify a worker that ended by itself.

    ``code`` is negative for a signal; ``oom_kills`` counts the kernel's kills for memory since the
    worker started.
    """
    shown = see(log)
    tail = _tail(log).lower()
    if (code == -signal.SIGKILL and oom_kills > 0) or (
        code < 0 and any(mark in tail for mark in HOST_MEMORY)
    ):
        return Failure("oom_host", f"the host's memory is exhausted; {LESS_HOST_MEMORY}")
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Failure("crash", f"the worker died by {name}; {shown}")
    return Failure("crash", f"the worker ended by itself with code {code}; {shown}")


def see(log: Path) -> str:
    """Return where a worker's log is, relative to the run's folder."""
    return f"see logs/{log.name} in the run's folder"


def last_line(log: Path) -> str:
    """Return the last non-empty line of a worker's log, shortened; "" without one."""
    lines = [line.strip() for line in _tail(log).splitlines()]
    said = next((line for line in reversed(lines) if line), "")
    return textwrap.shorten(said, 300, placeholder=" ...")


def _tail(log: Path, size: int = 4096) -> str:
    try:
        content = log.read_bytes()
    except OSError:
        return ""
    return content[-size:].decode(errors="replace")
