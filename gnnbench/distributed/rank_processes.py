"""The processes of the ranks above 0: starting them, exchanging messages, ending them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from gnnbench.core import bootstrap
from gnnbench.core.heartbeat import Board
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.producer_messages import GoneError, receive, send
from gnnbench.distributed.remote_failure import RemoteFailure

WORKER_RANK = "gnnbench.systems.runtime.worker_rank"


class RankProcesses:
    """Child processes, one for each rank from 1, each with a connection."""

    def __init__(self, ranks: int, board: Board) -> None:
        self.ranks, self._board = ranks, board
        self.processes: list[subprocess.Popen[bytes]] = []
        self.connections: list[Connection[object, object]] = []

    def start(self, rank: int, sockets: Mapping[str, socket.socket]) -> None:
        """Start the process of the next rank; it also inherits ``sockets``, which are closed."""
        ours, theirs = socket.socketpair()
        more = {name: one.fileno() for name, one in sockets.items()}
        arguments = {
            "parent": os.getpid(), "socket": theirs.fileno(), "rank": rank, "ranks": self.ranks,
            "board": self._board.descriptor, "more": more,
        }  # fmt: skip
        with theirs:
            process = subprocess.Popen(
                [*bootstrap.command(sys.executable, WORKER_RANK), json.dumps(arguments)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), self._board.descriptor, *more.values()],
            )
        for one in sockets.values():
            one.close()
        self.processes.append(process)
        self.connections.append(Connection(ours.detach()))

    def send(self, rank: int, message: object) -> None:
        """Send a message to one rank. Raises ``LostError``."""
        try:
            send(self.connections[rank - 1], message)
        except GoneError:
            raise LostError(f"rank {rank} has ended") from None

    def broadcast(self, message: object) -> None:
        """Send a message to all ranks. Raises ``LostError``."""
        for rank in range(1, self.ranks):
            self.send(rank, message)

    def gather(self) -> list[object]:
        """Return one answer of each rank, by rank.

        Raises the error of a rank that has failed, ``LostError`` for one that has ended. Does not
        time out: the rank monitor kills a rank that hangs.
        """
        ranks = {connection: rank for rank, connection in enumerate(self.connections, 1)}
        answers: dict[int, object] = {}
        while ranks:
            for connection in wait(list(ranks)):
                assert isinstance(connection, Connection)
                rank = ranks.pop(connection)
                try:
                    answer = receive(connection)
                except GoneError:
                    raise LostError(f"rank {rank} has ended") from None
                if isinstance(answer, RemoteFailure):
                    raise answer.exception()
                answers[rank] = answer
        return [answers[rank] for rank in sorted(answers)]

    def drain(
        self, timeout_s: float, is_cause: Callable[[BaseException], bool]
    ) -> tuple[list[BaseException], list[int]]:
        """Read what the ranks still send, until each has failed or ended, or ``timeout_s`` passed.

        Returns errors and the ranks that have ended. Stops at an error that ``is_cause`` accepts,
        which is then the last.
        """
        ranks = {connection: rank for rank, connection in enumerate(self.connections, 1)}
        errors: list[BaseException] = []
        ended: list[int] = []
        deadline = time.monotonic() + timeout_s
        while ranks and (ready := _readable(list(ranks), deadline - time.monotonic())):
            for connection in ready:
                try:
                    message = receive(connection)
                except (GoneError, OSError):
                    ended.append(ranks.pop(connection))
                    continue
                if isinstance(message, RemoteFailure):
                    ranks.pop(connection)
                    errors.append(message.exception())
                    if is_cause(errors[-1]):
                        return errors, ended
        return errors, ended

    def close_connections(self) -> None:
        """Close all connections, upon which the processes end."""
        for connection in self.connections:
            connection.close()

    def end(self, timeout_s: float) -> None:
        """Wait until all processes have ended; kill those that have not within ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.0))
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def _readable(
    connections: Sequence[Connection[object, object]], timeout_s: float
) -> list[Connection[object, object]]:
    """Wait for the first connections that have a message or have ended, and return them."""
    try:
        ready = wait(connections, max(timeout_s, 0.0))
    except OSError:  # one was closed by this process
        return []
    return [connection for connection in ready if isinstance(connection, Connection)]
