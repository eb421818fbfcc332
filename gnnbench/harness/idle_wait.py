"""Wait for an idle machine before measuring, up to a limit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from gnnbench.harness import doubt, stray_processes
from gnnbench.measure import contention, machine

POLL_S = 0.5
QUIET_POLLS = 2  # in a row: a compiler pauses between two files
LIMIT_S = 60.0
BRIEF_S = 10.0  # for a run too small to give verdicts
NO_WAIT = "GNNBENCH_NO_WAIT"


def limit_s(gives_verdicts: bool) -> float:
    """Return for how long a run waits in total (s); 0 if the user's environment says so."""
    if os.environ.get(NO_WAIT, "") not in ("", "0"):
        return 0.0
    return LIMIT_S if gives_verdicts else BRIEF_S


class IdleWait:
    """Waits of a run for an idle machine: ``left_s`` seconds in total.

    ``free_cores``: cores that no thread of the run's workers needs.
    """

    def __init__(self, left_s: float = 0.0, free_cores: int = 0) -> None:
        self.left_s = left_s
        self._allowed = doubt.allowed_cores(free_cores)

    def wait(self, notify: Callable[[str], None]) -> bool:
        """Wait until other programs use few cores, or the time is over; returns whether they do.

        ``notify`` gets one message with the programs that use the cores, and one if the wait was in
        vain. On an idle machine the method returns at once.
        """
        if self.left_s <= 0:
            return False
        quiet_polls, notified, programs = 0, False, contention.Programs()
        begun = time.monotonic()
        end = begun + self.left_s
        while quiet_polls < (QUIET_POLLS if notified else 1) and time.monotonic() < end:
            foreign = _foreign_cores(POLL_S)
            if foreign <= self._allowed:
                quiet_polls += 1
                continue
            quiet_polls = 0
            if not notified:
                programs.add()
                names = contention.named(programs.used, programs.seconds, foreign)
                notify(
                    f"other programs use {foreign:.1f} cores: {names}; waiting up to"
                    f" {self.left_s:.0f} s for a quiet machine (not with 'run --no-wait' or"
                    f" {NO_WAIT}=1)"
                )
                notified = True
        if notified:
            self.left_s = max(self.left_s - (time.monotonic() - begun), 0.0)
        if quiet_polls:
            return True
        notify("the machine is still busy: times measured now are marked (?)")
        return False


def _foreign_cores(seconds: float) -> float:
    """Return how many cores other programs use, on average over some seconds."""
    begun, own, busy = time.monotonic(), _own_seconds(), machine.busy_seconds()
    time.sleep(seconds)
    own, busy = _own_seconds() - own, machine.busy_seconds() - busy
    return max(busy - own, 0.0) / (time.monotonic() - begun)


def _own_seconds() -> float:
    """Return the CPU time so far of this process and its descendants."""
    return stray_processes.tree_cpu_s(os.getpid())
