"""The parent's side of a worker process."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import select
import signal
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil

from gnnbench.core import process_activity
from gnnbench.core.cell import Cell
from gnnbench.core.process_activity import Stillness
from gnnbench.harness import isolation
from gnnbench.harness.failures import Failure, from_death, see
from gnnbench.harness.interpreter import HERE, Environments
from gnnbench.harness.worker import STOPPED
from gnnbench.measure import contention, machine

CLOSE_TIMEOUT_S = 10.0
LOOK_S = 1.0  # between looks at a worker that does not answer
SHORT_STOP_S = 0.001  # stands for a stop whose length was not seen


class WorkerFailed(Exception):
    """A command did not succeed; the worker is unusable or already gone."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


# What stands in every worker, whatever framework it runs; a setting of the user's gives way.
WORKER_ENVIRONMENT = {
    # glibc gives large blocks back to the kernel at once, and every batch then pays page faults
    # for its feature rows and gradients anew. Workers keep what they have touched.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    # A thread that waits for others sleeps: one that spins keeps a core from those it waits for
    # where another process runs, and a call of 4 ms takes 50. libgomp (torch, DGL and our library
    # share the one that torch brings) reads the first two, LLVM's and Intel's the first and last.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "KMP_BLOCKTIME": "0",
}


def overridden_environment() -> dict[str, str]:
    """What the user set otherwise and workers do not see."""
    return {
        name: os.environ[name]
        for name, value in WORKER_ENVIRONMENT.items()
        if os.environ.get(name, value) != value
    }


_started: dict[int, float] = {}  # when the workers that live were started, by pid


def started() -> tuple[list[int], float]:
    """The pids of the workers that live, and when the first of them was started (epoch, s)."""
    return list(_started), min(_started.values(), default=math.inf)


class WorkerProcess:
    """One child process in its own process group; use as a context manager.

    ``environments`` has the one that the cell names.
    """

    def __init__(
        self,
        cell: Cell,
        log: Path,
        timeout_s: float,
        memory_limit_gib: float = 0.0,
        environments: Environments = HERE,
    ) -> None:
        self.cell = cell
        self.log = log
        self.timeout_s = timeout_s
        self._oom_kills = machine.oom_kills()
        self._buffer = b""
        self.rest = isolation.Rest()
        self._stopped_s = 0.0
        isolation.adopt()
        self.mark = secrets.token_hex(8)  # what its descendants are known by
        threads = machine.resolve_threads(cell.threads)
        arguments = {"parent": os.getpid(), "memory_limit_gib": memory_limit_gib}
        with log.open("ab") as err:
            self._process = subprocess.Popen(
                [*environments.command(cell.env), json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env={
                    **environments.variables(cell.env),
                    **WORKER_ENVIRONMENT,
                    "OMP_NUM_THREADS": str(threads),
                    isolation.MARK: self.mark,
                },
                start_new_session=True,
            )
        self._handle = psutil.Process(self._process.pid)
        _started[self.pid] = self._handle.create_time()
        self._threads = threads
        self._ended = False

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    def open(self, graph: dict[str, Any] | None = None) -> dict[str, Any]:
        """Construct the system; returns the graph's ``facts`` and how long it took.

        ``graph`` says where the run prepared it (``gnnbench.harness.shared_cache``).
        """
        self.send_open(graph)
        return self.receive("open")

    def send_open(self, graph: dict[str, Any] | None = None) -> None:
        """The command to construct the system, its answer still to be received."""
        self.send("open", cell=asdict(replace(self.cell, threads=self._threads)), graph=graph)

    def prepare(self) -> dict[str, Any]:
        """Make the cell's dataset ready on disk, without a system."""
        return self.call("prepare", dataset=self.cell.dataset)

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for its answer.

        Raises ``WorkerFailed`` with the failure's status; after a time-out or a death the process
        group is gone.
        """
        self.send(op, **arguments)
        return self.receive(op)

    def timed(self, op: str, **arguments: Any) -> dict[str, Any]:
        """The same of a command that says when its work has ended.

        The answer has ``parent_s`` beside it: from the command to that word, by this process's
        clock (s). ``runner_wait_s`` and ``worker_wait_s`` are the run-queue delay of this thread
        and of the worker's main thread meanwhile, ``threads_wait_s`` that of all the worker's
        threads until the answer. Raises as ``call`` does.
        """
        own, theirs = contention.own_run_delay_s(), contention.run_delay(self.pid)
        self.send(op, **arguments)
        line = self._read_line(self._sent + self.timeout_s)
        ended = time.monotonic()
        waits = {
            "runner_wait_s": contention.own_run_delay_s() - own,
            "worker_wait_s": max(contention.run_delay(self.pid).main - theirs.main, 0.0),
        }
        if line == STOPPED.rstrip():
            line = self._read_line(self._sent + self.timeout_s)
        waits["threads_wait_s"] = max(contention.run_delay(self.pid).total - theirs.total, 0.0)
        return {**self._answer(op, line), "parent_s": ended - self._sent, **waits}

    def send(self, op: str, **arguments: Any) -> None:
        """Send a command; its answer is to be received before the next."""
        assert self._process.stdin is not None
        command = json.dumps({"op": op, **arguments}).encode() + b"\n"
        self.rest.end(self._own_cpu_seconds())
        self._sent = time.monotonic()
        try:
            self._process.stdin.write(command)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(self._death()) from None

    def receive(self, op: str) -> dict[str, Any]:
        """The answer to the command that was sent last. Raises as ``call``."""
        return self._answer(op, self._read_line(time.monotonic() + self.timeout_s))

    def _answer(self, op: str, line: bytes | None) -> dict[str, Any]:
        """What a line says of a command."""
        self.rest.begin(self._own_cpu_seconds())
        if line is None:
            self.kill()
            raise WorkerFailed(
                Failure(
                    "timeout",
                    f"'{op}' took longer than {self.timeout_s:g} s; raise it with"
                    " -o cell_timeout_s=... or take a smaller @scale",
                )
            )
        if not line:
            raise WorkerFailed(self._death())
        try:
            answer = json.loads(line)
            fine = answer.pop("ok")
        except (ValueError, KeyError, AttributeError):
            self.kill()
            raise WorkerFailed(
                Failure("crash", f"the worker did not answer in its form; {see(self.log)}")
            ) from None
        if not fine:
            failure = Failure(**answer)
            if failure.status == "crash":
                failure = Failure("crash", f"{failure.reason}; {see(self.log)}")
            raise WorkerFailed(failure)
        result: dict[str, Any] = answer["result"]
        return result

    def _read_line(self, deadline: float) -> bytes | None:
        """One line; empty at the end of the stream, None at the deadline. Raises ``WorkerFailed``
        where the worker is stopped by a signal and does not go on."""
        assert self._process.stdout is not None
        descriptor, still, stopped = self._process.stdout.fileno(), Stillness(self.pid), 0.0
        while b"\n" not in self._buffer:
            if (left := deadline - time.monotonic()) <= 0:
                return None
            if not select.select([descriptor], [], [], min(left, LOOK_S))[0]:
                before, stopped = stopped, still.look()[1]
                self._stopped_s += max(stopped - before, 0.0)
                if stopped > process_activity.SILENCE_S:
                    self.kill()
                    raise WorkerFailed(Failure("crash", _stopped(self.log)))
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _own_cpu_seconds(self) -> float:
        """CPU time of the worker without its children: quickly told, before and after commands."""
        try:
            times = self._handle.cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def cpu_seconds(self) -> float:
        """CPU time of the worker and its children so far (10 ms steps)."""
        return isolation.family_cpu_s(self.pid)

    def take_stopped_s(self) -> float:
        """Seconds for which the worker was stopped by signals since the last call.

        A stop shorter than a look apart, or between two commands, counts as ``SHORT_STOP_S``.
        """
        found = False
        with contextlib.suppress(ChildProcessError):  # the kernel reports each change once
            while os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG):
                found = True
        seconds, self._stopped_s = self._stopped_s, 0.0
        return max(seconds, SHORT_STOP_S if found else 0.0)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def _death(self) -> Failure:
        try:
            code = self._process.wait(timeout=CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return Failure("crash", f"the worker closed its pipe; {see(self.log)}")
        return from_death(code, machine.oom_kills() - self._oom_kills, self.log)

    def close(self) -> None:
        """End the worker, politely first; leaves no process of its group behind."""
        if self.alive:
            timeout, self.timeout_s = self.timeout_s, CLOSE_TIMEOUT_S
            try:
                self.call("close")
                self._process.wait(timeout=CLOSE_TIMEOUT_S)
            except (WorkerFailed, subprocess.TimeoutExpired):
                pass
            finally:
                self.timeout_s = timeout
        self.kill()

    def kill(self) -> None:
        """Kill the process group and what left it, and close the pipes; again does nothing."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        isolation.end(isolation.strays(*started()))
        del _started[self.pid]
        if not _started:  # what others leave behind is theirs again
            isolation.adopt(False)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _stopped(log: Path) -> str:
    seconds = process_activity.SILENCE_S
    return f"the worker was stopped by a signal for {seconds:g} s, and ended; {see(log)}"
