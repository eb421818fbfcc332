"""Monitors all ranks from their start to their end: whether each runs and makes progress.

The monitor is a thread of rank 0, because rank 0 itself may wait for another rank or work for long.
Each rank shows its activity in shared memory (``gnnbench.core.heartbeat``). A rank that works makes
progress by the kernel's process statistics, whatever it does and however long. A rank that runs
batches makes progress by its spans, those that wait on a GPU included. A rank that waits for others
is not late. A rank that has ended, that is stopped, or that makes no progress for ``SILENCE_S`` is
lost, and the epoch with it.
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

NAME = "rank monitor"  # of the thread
LOOK_S = 1.0  # between reads of the kernel's statistics
SETTLE_S = 2.0  # for ranks to report their errors after one of them has ended
GRACE_S = 4.0  # for rank 0 to handle the loss after all other ranks were killed


@dataclass(frozen=True)
class RankLoss:
    """A lost rank; ``hang`` says why it counts as hanging, "" if its process has ended."""

    rank: int
    hang: str


class RankMonitor:
    """Monitors rank 0, which is this process, and the ``processes`` of the others.

    Args:
        board: the heartbeats of all ranks.
        own: rank 0's heartbeat.
        processes: those of ranks 1, 2 ..., in that order, complete when ``begin`` is called.
        on_loss: called once on the thread; ends the calls that wait for the lost rank.
        on_stuck: called on the thread if rank 0 has not handled the loss in time.
    """

    def __init__(
        self,
        board: Board,
        own: Pulse,
        processes: Sequence[subprocess.Popen[bytes]],
        *,
        on_loss: Callable[[RankLoss], None],
        on_stuck: Callable[[], None],
    ) -> None:
        self._board, self._own, self._processes = board, own, processes
        self._on_loss, self._on_stuck = on_loss, on_stuck
        self.loss: RankLoss | None = None
        self.killed: set[int] | None = None  # ranks that still ran when all were killed
        self._ended, self._handled = threading.Event(), threading.Event()
        self._all_wait_since: float | None = None
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def begin(self) -> None:
        """Start monitoring."""
        pids = [os.getpid(), *(process.pid for process in self._processes)]
        self._activity = [Stillness(pid) for pid in pids]
        self._thread.start()

    def handled(self) -> None:
        """Note that rank 0 handles a failure and ends the other ranks itself."""
        self._handled.set()

    def end(self) -> None:
        """Stop monitoring: rank 0 has ended the other ranks, or is about to."""
        self.handled()
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        looked = 0.0
        while not self._ended.wait(TICK_S):
            self._own.beat()
            loss = self.ended_rank()
            if loss is None and time.monotonic() - looked >= LOOK_S:
                looked, loss = time.monotonic(), self.hanging_rank()
            if loss is None:
                continue
            self.loss = loss
            self._on_loss(loss)
            # Errors of other ranks may arrive before the consequence for this rank.
            if loss.hang or not self._handled.wait(SETTLE_S):
                self._kill()
            if not self._ended.wait(GRACE_S):
                self._on_stuck()
            return

    def _kill(self) -> None:
        running = enumerate((process.poll() is None for process in self._processes), 1)
        self.killed = {rank for rank, runs in running if runs}
        for process in self._processes:
            process.kill()

    def ended_rank(self) -> RankLoss | None:
        """Return the first rank whose process has ended."""
        for rank, process in enumerate(self._processes, 1):
            if process.poll() is not None:
                return RankLoss(rank, "")
        return None

    def hanging_rank(self) -> RankLoss | None:
        """Return a rank that is stopped, or else the one without progress for longest."""
        board, now, limit = self._board, time.monotonic(), process_activity.SILENCE_S
        last: dict[int, float] = {}
        waiting = 0
        for rank, activity in enumerate(self._activity):
            still_s, stopped_s = activity.look()
            if stopped_s > limit:
                return RankLoss(rank, f"rank {rank} was stopped for {limit:g} s: it hangs")
            if (state := board.does(rank)) == RESTS:
                continue
            if board.waits(rank):
                waiting += 1
                continue
            moved = board.moved(rank)
            last[rank] = moved if state == RUNS else max(moved, now - still_s)
        if last or not waiting:
            self._all_wait_since = None
        elif self._all_wait_since is None:
            self._all_wait_since = now
        if last and now - last[first := min(last, key=last.__getitem__)] > limit:
            return RankLoss(first, f"rank {first} did nothing for {limit:g} s: it hangs")
        if self._all_wait_since is not None and now - self._all_wait_since > limit:
            return RankLoss(0, f"all ranks wait for each other for {limit:g} s: they hang")
        return None
