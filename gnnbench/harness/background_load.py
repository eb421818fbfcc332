"""CPU time that other programs use while a worker is measured: in total, and by program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from gnnbench.harness.doubt import busy_round
from gnnbench.measure import contention, machine

if TYPE_CHECKING:
    from gnnbench.harness.process import WorkerProcess
    from gnnbench.schema.events import BusyEvent
    from gnnbench.schema.samples import EpochSample

SUSPENDED_S = 0.1  # less is the difference between two readings of clocks


class LoadFields(TypedDict):
    """Fields of a sample (s).

    Length of the block; CPU time of the worker, of the idle one and of other programs; time that
    other virtual machines took; time for which this machine was suspended.
    """

    block_s: float
    cpu_s: float
    idle_cpu_s: float
    foreign_cpu_s: float
    stolen_s: float
    suspended_s: float


class BackgroundLoad:
    """CPU time from the construction on, while ``worker`` runs and the ``idle`` ones wait."""

    def __init__(self, worker: WorkerProcess, idle: Sequence[WorkerProcess] = ()) -> None:
        self._worker, self._idle = worker, idle
        self._before, self._began = self._counters(), time.monotonic()

    def _counters(self) -> dict[str, float]:
        return {
            "idle": sum(w.cpu_seconds() for w in self._idle),
            "worker": self._worker.cpu_seconds(),
            "busy": machine.busy_seconds(),
            "runner": time.process_time(),  # it reads these counters
            "stolen": contention.stolen_seconds(),
            "suspended": contention.suspended_seconds(),
        }

    def read(self) -> LoadFields:
        """Return the CPU times since the construction."""
        length = time.monotonic() - self._began
        spent = {key: value - self._before[key] for key, value in self._counters().items()}
        return {
            "block_s": length,
            "cpu_s": spent["worker"],
            "idle_cpu_s": spent["idle"],
            "foreign_cpu_s": spent["busy"] - spent["worker"] - spent["idle"] - spent["runner"],
            "stolen_s": spent["stolen"],
            "suspended_s": spent["suspended"] if spent["suspended"] > SUSPENDED_S else 0.0,
        }


class BusyPrograms:
    """Other programs that used cores during a trial, by name."""

    def __init__(self) -> None:
        self._programs = contention.Programs()
        self._foreign_s = self._foreign_cpu_s = 0.0

    def note(self, sample: EpochSample, free_cores: int) -> None:
        """Find out which programs are busy, if others disturbed an epoch; this takes a while."""
        if busy_round(sample, free_cores):
            self._programs.add()
            self._foreign_s += sample.block_s or 0.0
            self._foreign_cpu_s += sample.foreign_cpu_s or 0.0

    def record(self) -> BusyEvent:
        """Return the sums, for the journal."""
        return {
            "foreign_s": self._foreign_s,
            "foreign_cpu_s": self._foreign_cpu_s,
            "seconds": self._programs.seconds,
            "cpu_s": self._programs.used,
        }
