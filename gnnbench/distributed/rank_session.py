"""The ranks of one cell: started, monitored, and ended together on a failure."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TypeVar

from gnnbench.core.heartbeat import RESTS, WORKS, Board, Pulse
from gnnbench.core.job import Job
from gnnbench.core.peer_failure import LostError
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.coordination import Coordination
from gnnbench.distributed.rank_failure import failure_cause
from gnnbench.distributed.rank_messages import BuildRank
from gnnbench.distributed.rank_monitor import RankLoss, RankMonitor
from gnnbench.distributed.rank_processes import RankProcesses
from gnnbench.distributed.rank_schedule import RankSchedule
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.measure.machine import oom_kills
from gnnbench.measure.timeline import Timeline

END_S = 5.0  # in which ranks end, all together
Result = TypeVar("Result")


class RankSession:
    """Rank 0 (``own``) and the processes of the others.

    An exception of any rank ends all of them. The cause is raised, then and by each later call.
    """

    def __init__(self, job: Job, own: RankSchedule, coordination: Coordination) -> None:
        self._job, self._own, self._coordination = job, own, coordination
        self._oom_kills = oom_kills()
        self._failure: RemoteFailure | None = None
        self._board = Board(own.ranks)
        pulse = Pulse(self._board, 0)
        self.peers = Peers.first(own.ranks, self.check, pulse)
        self.processes = RankProcesses(own.ranks, self._board)
        self._monitor = RankMonitor(
            self._board, pulse, self.processes.processes,
            on_loss=self._on_loss, on_stuck=self._on_stuck,
        )  # fmt: skip
        pulse.now(WORKS)

    def start(self, build_message: Callable[[int], BuildRank]) -> None:
        """Start the processes, and have them build their stages."""
        try:
            for rank in range(1, self._own.ranks):
                Pulse(self._board, rank).now(WORKS)
                self.processes.start(rank, self._coordination.sockets(rank))
            self._monitor.begin()
            for rank in range(1, self._own.ranks):
                self.processes.send(rank, sys.path)
                self.processes.send(rank, build_message(rank))
        except BaseException as error:
            self.fail(error)

    def check(self) -> None:
        """Raise the cause if the ranks have failed."""
        if self._failure is not None:
            raise self._failure.exception()
        if (loss := self._monitor.loss) is not None:
            self.fail(LostError(f"rank {loss.rank} is lost"))

    def gather(self) -> list[object]:
        """Return one answer of each rank, by rank; rank 0 waits meanwhile."""
        with self.peers.pulse.waiting():
            return self.processes.gather()

    def run(
        self,
        message: object,
        own_work: Callable[[], Result],
        activity: float,
        timeline: Timeline | None = None,
    ) -> tuple[Result, list[object]]:
        """Have all ranks do the work of a message: returns rank 0's result and the others'.

        ``activity`` is rank 0's state for the monitor (``gnnbench.core.heartbeat``), ``timeline``
        where its spans are seen.
        """
        self.check()
        with self.failing_together():
            self.processes.broadcast(message)
            self.peers.pulse.now(activity, timeline)
            try:
                result = own_work()
                return result, self.gather()
            finally:
                self.peers.pulse.now(RESTS)

    @contextmanager
    def failing_together(self) -> Iterator[None]:
        """End all ranks on an exception of the block, and raise its cause."""
        try:
            yield
        except BaseException as error:
            self.fail(error)

    def fail(self, error: BaseException) -> NoReturn:
        """End all ranks and raise the cause of ``error``."""
        self._monitor.handled()
        cause = self._cause(error)
        if isinstance(cause, Exception):
            self._failure = RemoteFailure.by(cause)  # the exception itself refers to the frames
        self.processes.end(0.0)
        self.processes.close_connections()
        with suppress(Exception):  # on GPUs this ends work that waits for the ranks
            self._leave()
        self._monitor.end()
        self._board.close()
        for failed in (error, cause):  # frames that have ended refer to the store and its port
            traceback.clear_frames(failed.__traceback__)
        raise cause from (None if cause is error else error)

    def close(self) -> None:
        """End all ranks and leave the group."""
        self._monitor.end()
        self.processes.close_connections()
        self.processes.end(END_S)
        self._leave()
        self._board.close()

    def _leave(self) -> None:
        try:
            self._own.close()
        finally:
            try:
                self.peers.close()
            finally:
                self._coordination.close()

    def _cause(self, error: BaseException) -> BaseException:
        return failure_cause(error, self.processes, self._monitor, self._oom_kills)

    def _on_loss(self, loss: RankLoss) -> None:
        """Abort collectives, on the monitor's thread: the host may be blocked."""
        self.abort_collectives()
        self._coordination.on_loss(loss)

    def abort_collectives(self) -> None:
        """Abort collectives that wait on a GPU for ranks that do not come."""
        if (group := self._own.group) is not None and self._job.device.type == "cuda":
            threading.Thread(target=group.abort, daemon=True).start()  # which may itself block

    def _on_stuck(self) -> None:
        """Report the cause on the monitor's thread: rank 0 has not noticed the loss, or hangs."""
        failure = self._failure
        lost = LostError("a rank is lost")
        self._job.stuck(self._cause(lost) if failure is None else failure.exception())
