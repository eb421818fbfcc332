"""How a child process has ended."""

from __future__ import annotations

import signal
import subprocess

from gnnbench.measure.machine import oom_kills


def exit_code(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Wait for a process whose connection is closed; kill it if it has not ended in time."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def was_killed_for_memory(code: int, oom_kills_before: int) -> bool:
    """Whether the kernel killed the process for lack of memory."""
    return code == -signal.SIGKILL and oom_kills() > oom_kills_before


def exit_description(code: int) -> str:
    """Describe an exit code: ``with code 1`` or ``by SIGKILL``."""
    return f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
