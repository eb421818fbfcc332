"""Wait for a quiet machine before measuring, no longer than a limit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from gnnbench.harness import doubt, isolation
from gnnbench.measure import contention, machine

POLL_S = 0.5
QUIET_POLLS = 2  # in a row: a compiler rests between two files
LIMIT_S = 60.0
BRIEF_S = 10.0  # of a run too small to give verdicts
NO_WAIT = "GNNBENCH_NO_WAIT"


def limit_s(gives_verdicts: bool) -> float:
    """For how long a run waits in all (s); 0 where the user's environment says so."""
    if os.environ.get(NO_WAIT, "") not in ("", "0"):
        return 0.0
    return LIMIT_S if gives_verdicts else BRIEF_S


class Patience:
    """Waits of a run for a quiet machine: ``left_s`` seconds in all.

    ``free_cores``: those that the run's workers have no threads for.
    """

    def __init__(self, left_s: float = 0.0, free_cores: int = 0) -> None:
        self.left_s = left_s
        self._allowed = doubt.allowed_cores(free_cores)

    def wait(self, say: Callable[[str], None]) -> bool:
        """Wait until other programs use few cores, or no patience is left; whether they do.

        ``say`` is told once which programs are waited for, and once that the wait is over in vain.
        A quiet machine is measured on at once.
        """
        if self.left_s <= 0:
            return False
        quiet, told, programs = 0, False, contention.Programs()
        begun = time.monotonic()
        end = begun + self.left_s
        while quiet < (QUIET_POLLS if told else 1) and time.monotonic() < end:
            foreign = _foreign_cores(POLL_S)
            if foreign <= self._allowed:
                quiet += 1
                continue
            quiet = 0
            if not told:
                programs.add()
                names = contention.named(programs.used, programs.seconds, foreign)
                say(
                    f"other programs use {foreign:.1f} cores: {names}; waiting up to"
                    f" {self.left_s:.0f} s for a quiet machine (not with 'run --no-wait' or"
                    f" {NO_WAIT}=1)"
                )
                told = True
        if told:
            self.left_s = max(self.left_s - (time.monotonic() - begun), 0.0)
        if quiet:
            return True
        say("the machine is still busy: times measured now are marked (?)")
        return False


def _foreign_cores(seconds: float) -> float:
    """Cores that other programs use, over some seconds."""
    begun, own, busy = time.monotonic(), _own_seconds(), machine.busy_seconds()
    time.sleep(seconds)
    own, busy = _own_seconds() - own, machine.busy_seconds() - busy
    return max(busy - own, 0.0) / (time.monotonic() - begun)


def _own_seconds() -> float:
    """CPU time so far of this process and all below it."""
    return isolation.family_cpu_s(os.getpid())
