"""What else uses the cores while a worker is measured: CPU time of everybody, and by program."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.harness.doubt import busy_round
from gnnbench.harness.process import WorkerProcess
from gnnbench.measure import contention, machine

SUSPENDED_S = 0.1  # less is the difference between two readings of clocks


class Surroundings:
    """CPU time from here on, while ``worker`` has something to do and the ``idle`` ones not."""

    def __init__(self, worker: WorkerProcess, idle: Sequence[WorkerProcess] = ()) -> None:
        self._worker, self._idle = worker, idle
        self._before, self._began = self._read(), time.monotonic()

    def _read(self) -> dict[str, float]:
        return {
            "idle": sum(w.cpu_seconds() for w in self._idle),
            "own": self._worker.cpu_seconds(),
            "busy": machine.busy_seconds(),
            "stolen": contention.stolen_seconds(),
            "slept": contention.suspended_seconds(),
        }

    def taken(self) -> dict[str, float]:
        """Fields of a sample (s): length of the block; CPU time of the worker, the idle one, other
        programs and other machines; for how long this machine was suspended."""
        length = time.monotonic() - self._began
        spent = {key: value - self._before[key] for key, value in self._read().items()}
        return {
            "block_s": length,
            "cpu_s": spent["own"],
            "idle_cpu_s": spent["idle"],
            "foreign_cpu_s": spent["busy"] - spent["own"] - spent["idle"],
            "stolen_s": spent["stolen"],
            "suspended_s": spent["slept"] if spent["slept"] > SUSPENDED_S else 0.0,
        }


class Disturbers:
    """Other programs that used cores in a pair of processes, by name."""

    def __init__(self) -> None:
        self._programs = contention.Programs()
        self._rounds = {"foreign_s": 0.0, "foreign_cpu_s": 0.0}

    def note(self, sample: Mapping[str, Any], free_cores: int) -> None:
        """Look which programs are busy if others disturbed an epoch: it takes a while."""
        if busy_round(sample, free_cores):
            self._programs.add()
            self._rounds["foreign_s"] += sample["block_s"]
            self._rounds["foreign_cpu_s"] += sample["foreign_cpu_s"]

    def record(self) -> dict[str, Any]:
        """Length of the disturbed epochs and the CPU time of others in them; how long programs were
        looked at, and their CPU time by name (s)."""
        return {**self._rounds, "seconds": self._programs.seconds, "cpu_s": self._programs.used}
