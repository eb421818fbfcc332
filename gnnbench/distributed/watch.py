"""Rank 0's look at all ranks, from their start to their end: whether each lives and gets on.

It is a thread, for rank 0 may itself wait for a rank that does not come, or work for long. What a
rank does stands on the board (``gnnbench.core.heartbeat``). One that works is seen to do so by the
kernel's counts, whatever it does and however long; one that runs batches by its spans, those that
wait on a GPU included; one that waits for others owes nothing. A rank that has ended, that is
stopped, or that does nothing for ``SILENCE_S`` is lost, and all with it.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gnnbench.core import process_activity
from gnnbench.core.heartbeat import RESTS, RUNS, TICK_S, Board, Pulse
from gnnbench.core.process_activity import Stillness

NAME = "watch"  # of the thread
LOOK_S = 1.0  # between looks at what the kernel counts
SETTLE_S = 2.0  # in which ranks say what they failed by once one of them has ended
GRACE_S = 4.0  # in which rank 0 is to be done with it, once nobody is left that it could wait for


@dataclass(frozen=True)
class Loss:
    """A rank is lost; ``why`` it is taken for hung, "" where its process has ended."""

    rank: int
    why: str


class Watch:
    """Looks at rank 0, which is this process, and at the ``processes`` of the others.

    Args:
        board: of all ranks.
        own: rank 0's line.
        processes: those of ranks 1, 2 ..., in that order; all are there when it begins.
        lost: called once, on the thread: what waits for the lost rank is to be ended.
        stuck: called on the thread where rank 0 was not done with it in time after that.
    """

    def __init__(
        self,
        board: Board,
        own: Pulse,
        processes: Sequence[subprocess.Popen[bytes]],
        *,
        lost: Callable[[Loss], None],
        stuck: Callable[[], None],
    ) -> None:
        self._board, self._own, self._processes = board, own, processes
        self._lost, self._stuck = lost, stuck
        self.loss: Loss | None = None
        self.spared: set[int] | None = None  # ranks that had not ended when all were killed
        self._over, self._known = threading.Event(), threading.Event()
        self._all_wait: float | None = None  # since when nobody is left that anybody waits for
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def begin(self) -> None:
        """Look from now on."""
        self._signs = [Stillness(os.getpid()), *(Stillness(p.pid) for p in self._processes)]
        self._thread.start()

    def come(self) -> None:
        """Rank 0 knows of a failure, and ends the others by itself."""
        self._known.set()

    def end(self) -> None:
        """Look no more: rank 0 is done with the others, or is about to end them."""
        self.come()
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        looked = 0.0
        while not self._over.wait(TICK_S):
            self._own.beat()
            found = self.dead()
            if found is None and time.monotonic() - looked >= LOOK_S:
                looked, found = time.monotonic(), self.hung()
            if found is None:
                continue
            self.loss = found
            self._lost(found)
            # What others failed by may come before what that did to this rank.
            if found.why or not self._known.wait(SETTLE_S):
                self._kill()
            if not self._over.wait(GRACE_S):
                self._stuck()
            return

    def _kill(self) -> None:
        running = enumerate((process.poll() is None for process in self._processes), 1)
        self.spared = {rank for rank, runs in running if runs}
        for process in self._processes:
            process.kill()

    def dead(self) -> Loss | None:
        """A rank that has ended."""
        for rank, process in enumerate(self._processes, 1):
            if process.poll() is not None:
                return Loss(rank, "")
        return None

    def hung(self) -> Loss | None:
        """A rank that is stopped, or is the first of those that stand still."""
        board, now, least = self._board, time.monotonic(), process_activity.SILENCE_S
        last: dict[int, float] = {}
        waiting = 0
        for rank, own in enumerate(self._signs):
            still, stopped = own.look()
            if stopped > least:
                return Loss(rank, f"rank {rank} was stopped for {least:g} s: it hangs")
            if (does := board.does(rank)) == RESTS:
                continue
            if board.waits(rank):
                waiting += 1
                continue
            moved = board.moved(rank)
            last[rank] = moved if does == RUNS else max(moved, now - still)
        if last or not waiting:
            self._all_wait = None
        elif self._all_wait is None:
            self._all_wait = now
        if last and now - last[first := min(last, key=last.__getitem__)] > least:
            return Loss(first, f"rank {first} did nothing for {least:g} s: it hangs")
        if self._all_wait is not None and now - self._all_wait > least:
            return Loss(0, f"all ranks wait for each other for {least:g} s: they hang")
        return None
