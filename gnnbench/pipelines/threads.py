"""Concurrent parts of an epoch on threads: what each waits for, and how all of them end."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable

import torch

NAME = "part of an epoch"  # of every thread
# Interval after which a thread that runs Python code lets another one run. Python's default of 5 ms
# is longer than a phase of a small batch, and operators that only launch kernels end before the
# other thread has woken.
SWITCH_INTERVAL_S = 1e-4


class _EpochEnded(BaseException):
    """The epoch has ended on another thread."""


class Progress:
    """Counts of what the parts of an epoch have done, until one fails or all have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._waiting: dict[str, threading.Condition] = {}  # by the event that is waited for
        self._ended = False
        self._error: BaseException | None = None

    def note(self, event: str) -> None:
        """Count one more ``event``."""
        with self._lock:
            self._counts[event] += 1
            if event in self._waiting:
                self._waiting[event].notify_all()

    def reached(self, event: str, count: int) -> bool:
        """Whether ``event`` was counted ``count`` times."""
        with self._lock:
            return self._counts[event] >= count

    def reach(self, event: str, count: int) -> None:
        """Wait until ``event`` was counted ``count`` times; ends the part if the epoch ends."""
        with self._lock:
            if event not in self._waiting:
                self._waiting[event] = threading.Condition(self._lock)
            self._waiting[event].wait_for(lambda: self._ended or self._counts[event] >= count)
            if self._ended:
                raise _EpochEnded

    def run(self, own: Callable[[], None], *others: Callable[[], None]) -> None:
        """Run ``own`` on the caller's thread and each of ``others`` on a new one, until all end.

        An error ends each of them at its next wait, and is raised here. No thread is left.
        """
        threads = [threading.Thread(target=self._part, args=(part,), name=NAME) for part in others]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_INTERVAL_S))
        try:
            for thread in threads:
                thread.start()
            own()
            self._end()
        except _EpochEnded:
            pass
        except BaseException as error:
            self._end(error)
        for thread in threads:
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:  # a signal; the join lasts at most one batch
                    self._end(error)
        sys.setswitchinterval(interval)
        first, self._error = self._error, None
        if first is not None:
            try:
                raise first
            finally:
                del first  # its traceback refers to this frame

    def _part(self, part: Callable[[], None]) -> None:
        try:
            # Each thread has its own OpenMP team: this gives it as many threads as the caller's.
            torch.get_num_threads()
            part()
            # A native library frees its per-thread memory at the end of the thread. Not while
            # others run, because freeing locked memory waits for the device.
            self.reach("end", 1)
        except _EpochEnded:
            pass
        except BaseException as error:
            self._end(error)

    def _end(self, error: BaseException | None = None) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            self._ended = True
            for condition in self._waiting.values():
                condition.notify_all()
