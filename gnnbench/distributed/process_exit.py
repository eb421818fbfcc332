"""How a child process has ended."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

from gnnbench.measure.machine import oom_kills


def death_error(
    process: subprocess.Popen[bytes],
    timeout_s: float,
    oom_kills_before: int,
    name: str,
    error: Callable[[str], Exception],
) -> Exception:
    """Return the error of a process that has closed its connection; kill it after ``timeout_s``.

    ``MemoryError`` if the kernel killed it for lack of memory, else ``error`` of how it ended:
    ``with code 1`` or ``by SIGKILL``.
    """
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code == -signal.SIGKILL and oom_kills() > oom_kills_before:
        return MemoryError(f"cannot allocate memory: the kernel killed {name} for it")
    return error(f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}")
