"""When the work of an epoch has stopped, not when its system says so."""

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


def quiet_since(start: float) -> float:
    """Wait until the devices and this process are quiet; since when they are.

    ``start`` is when an epoch that has just ended began; both are times of ``perf_counter``. So
    work left behind on a stream or a thread is counted. A thread that is still busy after as long
    as the epoch and half a second is no rest of the epoch: the runner sees it as use of the CPU
    while idle. Work behind a sleeping thread is not seen.
    """
    synchronize_devices()
    returned = time.perf_counter()
    most = (returned - start) + GRACE_S
    begin, quiet = returned, 0
    # Steps are counted too: a clock that was made slow would keep the run here.
    for _ in range(math.ceil(most / STEP_S)):
        if quiet >= QUIET_STEPS or time.perf_counter() >= returned + most:
            break
        spent, step = time.process_time(), time.perf_counter()
        time.sleep(STEP_S)
        end = time.perf_counter()
        busy = time.process_time() - spent >= BUSY_SHARE * (end - step)
        if busy or _others_run():
            begin, quiet = end, 0
        else:
            quiet += 1
    return begin if quiet else returned


def _others_run() -> bool:
    """Whether another thread of this process runs or waits for a core."""
    own = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        if task.name != str(own):
            with contextlib.suppress(OSError):  # it has ended
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if state == "R":
                    return True
    return False


def synchronize_devices() -> None:
    """Wait for all work of this process on all GPUs, where it has used one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)
