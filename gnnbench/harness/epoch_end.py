"""When the work of an epoch has ended, whatever its system reports."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from pathlib import Path

STEP_S = 0.005
QUIET_STEPS = 3  # in a row: a thread that waits for a core uses none
BUSY_SHARE = 0.3  # of a core: an idle OpenMP team has stopped spinning by then
GRACE_S = 0.5


def wait_until_quiescent(start: float) -> float:
    """Wait until the devices and this process are idle; return since when they are.

    ``start`` is when the epoch began; both are times of ``perf_counter``. Work left on a stream or
    a thread is thus counted. A thread that is still busy after the epoch's duration and half a
    second does not belong to the epoch: the harness notices its CPU use while the worker is idle.
    Work behind a sleeping thread is not noticed.
    """
    synchronize_devices()
    returned = time.perf_counter()
    limit = (returned - start) + GRACE_S
    idle_since, quiet_steps = returned, 0
    # Steps are counted too: a clock that was made slow would block the run here.
    for _ in range(math.ceil(limit / STEP_S)):
        if quiet_steps >= QUIET_STEPS or time.perf_counter() >= returned + limit:
            break
        cpu_s, step = time.process_time(), time.perf_counter()
        time.sleep(STEP_S)
        end = time.perf_counter()
        busy = time.process_time() - cpu_s >= BUSY_SHARE * (end - step)
        if busy or _other_thread_runs():
            idle_since, quiet_steps = end, 0
        else:
            quiet_steps += 1
    return idle_since if quiet_steps else returned


def _other_thread_runs() -> bool:
    """Return whether another thread of this process runs or waits for a core."""
    this_thread = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        if task.name != str(this_thread):
            with contextlib.suppress(OSError):  # it has ended
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if state == "R":
                    return True
    return False


def synchronize_devices() -> None:
    """Wait for all work of this process on all GPUs, if it has used one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)
