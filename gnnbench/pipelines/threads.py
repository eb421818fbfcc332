"""Parts of an epoch on threads beside one another: what each waits for, and how all of them end."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable

import torch

NAME = "part of an epoch"  # of every thread
# After so long a thread that runs Python code lets another do so. Python's own 5 ms are longer than
# a phase of a small batch, and operators that only launch kernels end before the other has woken.
SWITCH_S = 1e-4


class _Ended(BaseException):
    """The epoch has ended on another thread."""


class Progress:
    """How far the parts of an epoch are, until one of them fails or all have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._waiting: dict[str, threading.Condition] = {}  # by what is waited for
        self._ended = False
        self._error: BaseException | None = None

    def note(self, what: str) -> None:
        """One more of ``what`` is done."""
        with self._lock:
            self._counts[what] += 1
            if what in self._waiting:
                self._waiting[what].notify_all()

    def reached(self, what: str, count: int) -> bool:
        """Whether so many of ``what`` are done."""
        with self._lock:
            return self._counts[what] >= count

    def reach(self, what: str, count: int) -> None:
        """Wait until so many of ``what`` are done; where the epoch ends before, the part ends."""
        with self._lock:
            if what not in self._waiting:
                self._waiting[what] = threading.Condition(self._lock)
            self._waiting[what].wait_for(lambda: self._ended or self._counts[what] >= count)
            if self._ended:
                raise _Ended

    def run(self, own: Callable[[], None], *others: Callable[[], None]) -> None:
        """Run ``own`` here and each of ``others`` on a thread of its own, until all have ended.

        An error ends them all, each where it waits next, and is raised here. No thread is left.
        """
        threads = [threading.Thread(target=self._part, args=(part,), name=NAME) for part in others]
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, SWITCH_S))
        try:
            for thread in threads:
                thread.start()
            own()
            self._end()
        except _Ended:
            pass
        except BaseException as error:
            self._end(error)
        for thread in threads:
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:  # a signal; what is waited for is a batch's end
                    self._end(error)
        sys.setswitchinterval(before)
        first, self._error = self._error, None
        if first is not None:
            try:
                raise first
            finally:
                del first  # its traceback holds this frame

    def _part(self, part: Callable[[], None]) -> None:
        try:
            # A team of OpenMP is its thread's own: this gives it as many threads as the caller's.
            torch.get_num_threads()
            part()
            # What a native library keeps for a thread is freed with it: not while others run, for
            # freeing locked memory waits for the device.
            self.reach("end", 1)
        except _Ended:
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
