"""The desk at which samplers and trainers ask: a thread of rank 0 that answers by ``Tasks``.

Each rank has a line to it, a socket. It sees at once that a process has ended, and is told of one
that hangs (``gnnbench.distributed.watch``); then it tells all who ask, so that nobody waits for
a batch that nobody draws.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.bounded_queue import Places, Room
from gnnbench.distributed.producer import GoneError, receive, send
from gnnbench.distributed.tasks import Dealt, Tasks

NAME = "desk"  # of the thread


@dataclass(frozen=True)
class Draw:
    """Which batch am I to draw? The answer is its number, or None."""


@dataclass(frozen=True)
class Drawn:
    """``batch`` is drawn and takes ``size`` bytes: where to? The answer is a ``Room``."""

    batch: int
    size: int


@dataclass(frozen=True)
class Full:
    """``batch`` lies in its place: a ``Part`` in place of every tensor."""

    batch: int
    parts: MiniBatch
    size: int


@dataclass(frozen=True)
class Want:
    """What do I train on next? The answer is a ``Share`` or an ``End``."""


@dataclass(frozen=True)
class Taken:
    """``batch`` has left its place."""

    batch: int


@dataclass(frozen=True)
class GiveUp:
    """The rank has failed."""


@dataclass(frozen=True)
class Share:
    """A rank's part of step ``step``: a batch, or none where ``batch`` is None.

    ``members`` ranks take part, the first so many; ``joins``: not all of them did before.
    """

    step: int
    members: int
    joins: bool
    batch: int | None
    full: Full | None
    room: Room | None


@dataclass(frozen=True)
class End:
    """All is dealt, in so many ``steps``."""

    steps: int


@dataclass(frozen=True)
class Lost:
    """The epoch cannot be finished."""

    why: str


class Line:
    """A rank's end of its line. One thread asks; any may say something."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def say(self, word: Any) -> None:
        """Tell the desk. Raises ``LostError``."""
        try:
            with self._lock:
                send(self._connection, word)
        except (GoneError, OSError):
            raise LostError("rank 0 has ended") from None

    def ask(self, word: Any) -> Any:
        """The desk's answer. Raises ``LostError`` where there is none."""
        self.say(word)
        try:
            answer = receive(self._connection)
        except (GoneError, OSError):
            raise LostError("rank 0 has ended") from None
        if isinstance(answer, Lost):
            raise LostError(answer.why)
        return answer

    def close(self) -> None:
        """End it."""
        self._connection.close()


def pair() -> tuple[Connection, socket.socket]:
    """A line: the desk's end, and the rank's."""
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), theirs


class Desk:
    """Answers the ranks at the ends of ``lines`` while an epoch runs.

    ``broken`` is called where the epoch cannot be finished, before anybody is told.
    """

    def __init__(
        self, lines: Mapping[int, Connection], places: Places, broken: Callable[[], None]
    ) -> None:
        self._lines, self._places, self._broken = lines, places, broken
        self._thread: threading.Thread | None = None
        self._sizes: dict[int, int] = {}
        self._rooms: dict[int, Room] = {}
        self.error: BaseException | None = None  # of its own

    def begin(self, tasks: Tasks) -> None:
        """Deal the tasks of an epoch, on a thread of its own."""
        self._tasks = tasks
        self._sizes, self._rooms, self.error = {}, {}, None
        ours, theirs = socket.socketpair()
        self._stop, self._stopped = Connection(ours.detach()), Connection(theirs.detach())
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def lose(self, why: str) -> None:
        """Tell all who ask that the epoch cannot be finished; on any thread."""
        if self._thread is not None:
            with suppress(GoneError, OSError):  # the epoch is over
                send(self._stop, Lost(why))

    def end(self) -> None:
        """Wait for its end, or bring it about."""
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
            self._lose(f"{type(error).__name__}: {error}")

    def _serve(self) -> None:
        asked = dict(zip(self._lines.values(), self._lines, strict=True))
        while asked:
            ready = wait([*asked, self._stopped])
            if self._stopped in ready:
                with suppress(GoneError):
                    self._lose(receive(self._stopped).why)
                return
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = asked[connection]
                try:
                    word = receive(connection)
                except GoneError:
                    self._lose(f"rank {rank} has ended")
                    return
                if isinstance(word, GiveUp):
                    self._lose(f"rank {rank} has failed")
                    return
                if self._is_over(rank, word):
                    del asked[connection]
            for rank in self._answer():
                del asked[self._lines[rank]]

    def _is_over(self, rank: int, word: Any) -> bool:
        """Take in a word; whether the rank has nothing more to ask."""
        tasks = self._tasks
        if isinstance(word, Draw):
            number = tasks.draw()
            self._say(rank, number)
            return number is None and not tasks.standby
        if isinstance(word, Drawn):
            self._sizes[word.batch] = word.size
            tasks.ask_room(rank, word.batch)
        elif isinstance(word, Full):
            tasks.fill(word.batch, word)
        elif isinstance(word, Taken):
            tasks.free(word.batch)
        else:
            assert isinstance(word, Want)
            tasks.want(rank, time.perf_counter())
        return False

    def _answer(self) -> list[int]:
        """Give what can be given now; ranks that have nothing more to ask."""
        tasks, over = self._tasks, []
        for rank, drawn, place in tasks.granted():
            room = self._rooms[drawn] = self._places.room(place, self._sizes.pop(drawn))
            self._say(rank, room)
        for rank, dealt in tasks.dealt(time.perf_counter()):
            if not isinstance(dealt, Dealt):
                self._say(rank, End(len(tasks.steps)))
                over.append(rank)
                continue
            step, batch = dealt.step, dealt.batch
            where = None if batch is None else self._rooms.pop(batch)
            members = len(step.members)
            self._say(rank, Share(step.number, members, step.joins, batch, dealt.filled, where))
        return over

    def _say(self, rank: int, word: Any) -> None:
        send(self._lines[rank], word)

    def _lose(self, why: str) -> None:
        with suppress(Exception):
            self._broken()
        for rank in self._lines:
            with suppress(GoneError, OSError):
                self._say(rank, Lost(why))
