"""Processes that are one rank after the other: a test's ranks need no new ones, which take seconds.

What a process runs for a rank is ``gnnbench.systems.runtime.worker_rank``'s ``main``, whole; only
its end
is another: the process waits for the next rank. One that is killed is not used again.
"""

import gc
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from gnnbench.core import bootstrap

OVER = b"over"
PIECE = 4096


class Rank:
    """A rank as ``subprocess.Popen`` would have it: its process' own end, or that of its work."""

    def __init__(self, pool, process, line):
        self._pool, self._process, self._line, self._over = pool, process, line, False
        self.pid, self._lock = process.pid, threading.Lock()

    @property
    def returncode(self):
        return self.poll()

    def poll(self):
        """None while it works, 0 once it is over, else how its process has ended."""
        return self._look(0)

    def wait(self, timeout=None):
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired("a rank", timeout)
        return self.poll()

    def kill(self):
        if self.poll() is None:
            self._process.kill()

    def _look(self, timeout):
        with self._lock:  # a watch may look, too
            if self._over:
                return 0
            self._line.settimeout(timeout)
            try:
                told = self._line.recv(len(OVER))
            except (TimeoutError, BlockingIOError):
                return None
            except OSError:
                told = b""
            if told != OVER:
                return self._process.wait()
            self._over = True
            self._pool.back(self._process, self._line)
            return 0


class Pool:
    """The processes, those that wait and those that work."""

    def __init__(self):
        self._idle, self._all = [], []

    def start(self, command, *, stdin, pass_fds):
        """In place of ``subprocess.Popen`` for a rank's process: the same command's arguments."""
        told = json.loads(command[-1])
        process, line = self._idle.pop() if self._idle else self._made()
        # The process gets descriptors of its own, in this order.
        more = told.pop("more")
        numbers = [told["socket"], told["board"], *more.values()]
        assert sorted(numbers) == sorted(pass_fds)
        words = json.dumps({"told": told, "more": list(more)}).encode()
        socket.send_fds(line, [words], numbers)
        return Rank(self, process, line)

    def back(self, process, line):
        """A process waits again."""
        self._idle.append((process, line))

    def _made(self):
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            process = subprocess.Popen(
                [*bootstrap.command(sys.executable, "rank_pool"), str(number)],
                stdin=subprocess.DEVNULL, pass_fds=[number],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            )  # fmt: skip
        self._all.append((process, ours))
        return process, ours

    def close(self):
        """End all of them."""
        for _, line in self._all:
            line.close()
        for process, _ in self._all:
            process.kill()
            process.wait()


class _Apart:
    """A module, with one of its names another."""

    def __init__(self, module, **names):
        self._module, self._names = module, names

    def __getattr__(self, name):
        return self._names.get(name) or getattr(self._module, name)


@contextmanager
def ranks_from(pool):
    """Within, leaders take their ranks' processes from a pool."""
    from gnnbench.distributed import rank_processes

    rank_processes.subprocess = _Apart(subprocess, Popen=pool.start)
    try:
        yield
    finally:
        rank_processes.subprocess = subprocess


class _OverError(BaseException):
    """A rank's work is over."""


def _serve(line):
    from gnnbench.core.heartbeat import TICK_S
    from gnnbench.systems.runtime import worker_rank

    def over(code):
        raise _OverError

    worker_rank.os = _Apart(os, _exit=over)
    made, first = [], worker_rank.WorkerRank.__init__

    def note(self, *args):
        made.append(self)
        first(self, *args)

    worker_rank.WorkerRank.__init__ = note

    class Ending(worker_rank.Pulse):
        """One whose thread ends with the rank."""

        def beats(self):
            over = self.over

            def run():
                while not over.wait(TICK_S):
                    self.beat()

            threading.Thread(target=run, daemon=True).start()

    worker_rank.Pulse = Ending
    beating = Ending.over = threading.Event()
    while True:
        words, numbers, _, _ = socket.recv_fds(line, PIECE, 8)
        if not words:
            return
        asked = json.loads(words)
        connection, board, *others = numbers
        more = dict(zip(asked["more"], others, strict=True))
        told = {**asked["told"], "socket": connection, "board": board, "more": more}
        sys.argv[1:] = [json.dumps(told)]
        with suppress(_OverError):
            worker_rank.main()
        beating.set()
        beating = worker_rank.Pulse.over = threading.Event()
        for one in made:
            if hasattr(one, "_system"):
                one.close()
        made.clear()
        gc.collect()
        line.sendall(OVER)


def main():
    """Serve the socket whose descriptor is the last argument."""
    _serve(socket.socket(fileno=int(sys.argv[-1])))
