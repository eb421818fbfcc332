"""A pool of processes that tests use as ranks again and again, since a new one takes seconds.

For each rank a process runs ``main`` of ``gnnbench.systems.runtime.worker_rank``. At its end the
process does not exit; it waits for the next rank. A killed process is not used again.
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

RANK_ENDED = b"over"
REQUEST_BYTES = 4096


class Rank:
    """The ``subprocess.Popen`` of a rank; it ends with the rank's work or with the process."""

    def __init__(self, pool, process, line):
        self._pool, self._process, self._line, self._has_ended = pool, process, line, False
        self.pid, self._lock = process.pid, threading.Lock()

    @property
    def returncode(self):
        return self.poll()

    def poll(self):
        """Return None while the rank works, 0 after its end, else the process' exit code."""
        return self._look(0)

    def wait(self, timeout=None):
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired("a rank", timeout)
        return self.poll()

    def kill(self):
        if self.poll() is None:
            self._process.kill()

    def _look(self, timeout):
        with self._lock:  # the rank monitor polls, too
            if self._has_ended:
                return 0
            self._line.settimeout(timeout)
            try:
                message = self._line.recv(len(RANK_ENDED))
            except (TimeoutError, BlockingIOError):
                return None
            except OSError:
                message = b""
            if message != RANK_ENDED:
                return self._process.wait()
            self._has_ended = True
            self._pool.back(self._process, self._line)
            return 0


class Pool:
    """The processes: idle ones and working ones."""

    def __init__(self):
        self._idle, self._all = [], []

    def start(self, command, *, stdin, pass_fds):
        """Start a rank in a process of the pool; the arguments of ``subprocess.Popen``."""
        arguments = json.loads(command[-1])
        process, line = self._idle.pop() if self._idle else self._made()
        # The process receives duplicates of the descriptors, in this order.
        more = arguments.pop("more")
        numbers = [arguments["socket"], arguments["board"], *more.values()]
        assert sorted(numbers) == sorted(pass_fds)
        request = json.dumps({"arguments": arguments, "more": list(more)}).encode()
        socket.send_fds(line, [request], numbers)
        return Rank(self, process, line)

    def back(self, process, line):
        """Return a process to the pool."""
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


class _Replaced:
    """A module of which some names are replaced."""

    def __init__(self, module, **names):
        self._module, self._names = module, names

    def __getattr__(self, name):
        return self._names.get(name) or getattr(self._module, name)


@contextmanager
def ranks_from(pool):
    """Within the block, ranks run in processes of the pool."""
    from gnnbench.distributed import rank_processes

    rank_processes.subprocess = _Replaced(subprocess, Popen=pool.start)
    try:
        yield
    finally:
        rank_processes.subprocess = subprocess


class _RankEndedError(BaseException):
    """Raised instead of the exit of a rank's process."""


def _serve(line):
    from gnnbench.core.heartbeat import TICK_S
    from gnnbench.systems.runtime import worker_rank

    def end_rank(code):
        raise _RankEndedError

    worker_rank.os = _Replaced(os, _exit=end_rank)
    made, first = [], worker_rank.WorkerRank.__init__

    def note(self, *args):
        made.append(self)
        first(self, *args)

    worker_rank.WorkerRank.__init__ = note

    class EndingPulse(worker_rank.Pulse):
        """A heartbeat whose thread ends with the rank."""

        def beats(self):
            stop = self.stop

            def run():
                while not stop.wait(TICK_S):
                    self.beat()

            threading.Thread(target=run, daemon=True).start()

    worker_rank.Pulse = EndingPulse
    stop = EndingPulse.stop = threading.Event()
    while True:
        request, numbers, _, _ = socket.recv_fds(line, REQUEST_BYTES, 8)
        if not request:
            return
        message = json.loads(request)
        connection, board, *others = numbers
        more = dict(zip(message["more"], others, strict=True))
        arguments = {**message["arguments"], "socket": connection, "board": board, "more": more}
        sys.argv[1:] = [json.dumps(arguments)]
        with suppress(_RankEndedError):
            worker_rank.main()
        stop.set()
        stop = EndingPulse.stop = threading.Event()
        for one in made:
            if hasattr(one, "_system"):
                one.close()
        made.clear()
        gc.collect()
        line.sendall(RANK_ENDED)


def main():
    """Serve as ranks; the last argument is the descriptor of the socket."""
    _serve(socket.socket(fileno=int(sys.argv[-1])))
