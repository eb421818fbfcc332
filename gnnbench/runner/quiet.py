"""The harness's own clock around an epoch: it stops when the work has stopped, not when told."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path

STEP_S = 0.005
QUIET_STEPS = 3  # in a row: a thread that waits for a core uses none
BUSY_SHARE = 0.3  # of a core: an idle OpenMP team has stopped spinning by then
GRACE_S = 0.5


class OuterClock:
    """Started before an epoch; ``stop`` is called when the system's own clock has stopped.

    Stopping waits for the devices and for this process to go quiet, so that work left behind on a
    stream or a thread is counted. A thread that is still busy after as long as the epoch and
    half a second is no rest of the epoch: the runner sees it as use of the CPU while idle. Work
    behind a sleeping thread is not seen. The first stop counts.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._stop: float | None = None

    def stop(self) -> None:
        """Take the time; a second call does nothing."""
        if self._stop is None:
            self._stop = _quiet_since(self._start)

    @property
    def seconds(self) -> float:
        """Length of the epoch as the harness saw it."""
        self.stop()
        assert self._stop is not None
        return self._stop - self._start


def _quiet_since(start: float) -> float:
    _synchronize_devices()
    returned = time.perf_counter()
    limit = returned + (returned - start) + GRACE_S
    begin, quiet = returned, 0
    while quiet < QUIET_STEPS and time.perf_counter() < limit:
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


def _synchronize_devices() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)
