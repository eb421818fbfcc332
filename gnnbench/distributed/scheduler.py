"""The scheduler of ``schedule=factored``: a thread of rank 0 that answers requests of all ranks.

Each rank has a channel to it, a socket. The scheduler notices at once that a process has ended, and
the rank monitor reports one that hangs. It then fails the requests of all ranks, so that none waits
for a batch that nobody samples. Which rank is next is decided by ``gnnbench.distributed.tasks``.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.async_tasks import AsyncTaskQueue
from gnnbench.distributed.bounded_queue import QueueSlots, SlotMemory
from gnnbench.distributed.producer_messages import GoneError, receive, send
from gnnbench.distributed.scheduler_messages import (
    BatchNumber,
    BatchTrained,
    BatchWritten,
    EpochDone,
    EpochFailed,
    NextBatch,
    NextShare,
    RankFailed,
    RequestSlot,
    SlotReleased,
    StepShare,
)
from gnnbench.distributed.tasks import AssignedShare, TaskQueue

NAME = "scheduler"  # of the thread


class SchedulerChannel:
    """A rank's end of its channel. One thread sends requests; any thread may send a notice."""

    def __init__(self, connection: Connection[object, object]) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def notify(self, message: object) -> None:
        """Send a message without an answer. Raises ``LostError``."""
        try:
            with self._lock:
                send(self._connection, message)
        except (GoneError, OSError):
            raise LostError("rank 0 has ended") from None

    def request(self, message: object) -> object:
        """Return the scheduler's answer. Raises ``LostError`` if the epoch has failed."""
        self.notify(message)
        try:
            answer = receive(self._connection)
        except (GoneError, OSError):
            raise LostError("rank 0 has ended") from None
        if isinstance(answer, EpochFailed):
            raise LostError(answer.reason)
        return answer

    def close(self) -> None:
        """Close the channel."""
        self._connection.close()


def channel_pair() -> tuple[Connection[object, object], socket.socket]:
    """Return the scheduler's and the rank's end of a new channel."""
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), theirs


class Scheduler:
    """Answers the ranks at ``channels`` while an epoch runs.

    ``on_failure`` is called when the epoch cannot be finished, before the ranks are notified.
    """

    def __init__(
        self,
        channels: Mapping[int, Connection[object, object]],
        slots: QueueSlots,
        on_failure: Callable[[], None],
    ) -> None:
        self._channels, self._slots, self._on_failure = channels, slots, on_failure
        self._thread: threading.Thread | None = None
        self._sizes: dict[int, int] = {}  # by batch, until it has a slot
        self._memory: dict[int, SlotMemory] = {}  # by batch
        self.error: BaseException | None = None  # of the thread

    def begin(self, tasks: TaskQueue, weights: SlotMemory | None = None) -> None:
        """Distribute the tasks of an epoch, on a new thread.

        ``weights`` are those that the ranks share where updates are asynchronous.
        """
        self.tasks, self._weights = tasks, weights
        self._sizes, self._memory, self.error = {}, {}, None
        ours, theirs = socket.socketpair()
        self._stop, self._stopped = Connection(ours.detach()), Connection(theirs.detach())
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def fail(self, reason: str) -> None:
        """Fail the requests of all ranks; on any thread."""
        if self._thread is not None:
            with suppress(GoneError, OSError):  # the epoch is over
                send(self._stop, EpochFailed(reason))

    def end(self) -> None:
        """End the thread and wait for it."""
        if self._thread is None:
            return
        self._stop.close()
        self._thread.join()
        self._stopped.close()
        self._thread = None

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self.error = error
            self._fail_all(f"{type(error).__name__}: {error}")

    def _serve(self) -> None:
        """Answer requests until no rank needs anything more, or the epoch fails."""
        ranks = {connection: rank for rank, connection in self._channels.items()}
        while ranks:
            ready = wait([*ranks, self._stopped])
            if self._stopped in ready:
                with suppress(GoneError):
                    message = receive(self._stopped)
                    assert isinstance(message, EpochFailed)
                    self._fail_all(message.reason)
                return
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = ranks[connection]
                try:
                    message = receive(connection)
                except GoneError:
                    self._fail_all(f"rank {rank} has ended")
                    return
                if isinstance(message, RankFailed):
                    self._fail_all(f"rank {rank} has failed")
                    return
                if self._is_finished(rank, message):
                    del ranks[connection]
            for rank in self._answer():
                del ranks[self._channels[rank]]

    def _is_finished(self, rank: int, message: object) -> bool:
        """Process a message; returns whether the rank needs nothing more."""
        tasks = self.tasks
        if isinstance(message, NextBatch):
            number = tasks.next_batch()
            self._send(rank, BatchNumber(number))
            return number is None and not tasks.standby
        if isinstance(message, RequestSlot):
            self._sizes[message.batch] = message.size
            tasks.request_slot(rank, message.batch)
        elif isinstance(message, BatchWritten):
            tasks.fill(message.batch, message)
        elif isinstance(message, SlotReleased):
            tasks.release(message.batch)
        elif isinstance(message, BatchTrained):
            assert isinstance(tasks, AsyncTaskQueue)
            tasks.finish(rank)
        else:
            assert isinstance(message, NextShare)
            tasks.request_share(rank, time.perf_counter())
        return False

    def _answer(self) -> list[int]:
        """Answer what can be answered now; returns the ranks that need nothing more."""
        tasks, finished = self.tasks, []
        for rank, batch, slot in tasks.granted_slots():
            memory = self._memory[batch] = self._slots.allocate(slot, self._sizes.pop(batch))
            self._send(rank, memory)
        for rank, share in tasks.assigned_shares(time.perf_counter()):
            if not isinstance(share, AssignedShare):
                self._send(rank, EpochDone(len(tasks.steps), self._weights))
                finished.append(rank)
                continue
            step, number = share.step, share.batch
            slot_memory = None if number is None else self._memory.pop(number)
            members = len(step.members)
            self._send(
                rank,
                StepShare(
                    step.number, members, step.joins, number, share.written, slot_memory,
                    self._weights,
                ),
            )  # fmt: skip
        return finished

    def _send(self, rank: int, message: object) -> None:
        send(self._channels[rank], message)

    def _fail_all(self, reason: str) -> None:
        with suppress(Exception):
            self._on_failure()
        for rank in self._channels:
            with suppress(GoneError, OSError):
                self._send(rank, EpochFailed(reason))
