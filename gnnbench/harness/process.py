"""Start a worker process, send it commands, and end it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import signal
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TypeVar, cast

import psutil

from gnnbench.core.cell import Cell
from gnnbench.harness import stray_processes
from gnnbench.harness.failures import Failure, from_death, see
from gnnbench.harness.interpreter import HERE, Environments
from gnnbench.harness.protocol import (
    CLOSE,
    OPEN,
    STOPPED,
    Command,
    EpochAnswer,
    GraphLocation,
    OpenAnswer,
    TimedEpoch,
)
from gnnbench.harness.template_pool import ForkedProcess, Template, TemplateFailed
from gnnbench.harness.thread_placement import IdleCpuMeter
from gnnbench.harness.worker_environment import worker_variables
from gnnbench.harness.worker_pipe import LineReader, WorkerFailed, WorkerStopped, parse_answer
from gnnbench.measure import contention, machine

A = TypeVar("A")
CLOSE_TIMEOUT_S = 10.0

_live: dict[int, float] = {}  # start times (s since the epoch) of the workers that run, by pid


def live_workers() -> tuple[list[int], float]:
    """Return the pids of the running workers, and when the first was started (epoch, s)."""
    return list(_live), min(_live.values(), default=math.inf)


class WorkerProcess:
    """One child process in its own process group; use as a context manager.

    ``environments`` has the one that the cell names. ``template`` forks the process; without one,
    or where it cannot, it is started anew (``is_forked``).
    """

    def __init__(
        self,
        cell: Cell,
        log: Path,
        timeout_s: float,
        memory_limit_gib: float = 0.0,
        environments: Environments = HERE,
        template: Template | None = None,
    ) -> None:
        self.cell = cell
        self.log = log
        self.timeout_s = timeout_s
        self._oom_kills = machine.oom_kills()
        self.idle_cpu = IdleCpuMeter()
        stray_processes.adopt_orphans()
        self.mark = secrets.token_hex(8)  # identifies its descendants
        self._threads = machine.resolve_threads(cell.threads)
        self._process: subprocess.Popen[bytes] | ForkedProcess
        self.is_forked = False
        with log.open("ab") as err:
            if template is not None:
                with contextlib.suppress(TemplateFailed):
                    self._process = template.fork(self.mark, memory_limit_gib, err)
                    self.is_forked = True
            if not self.is_forked:
                self._process = self._start(environments, memory_limit_gib, err)
        assert self._process.stdout is not None
        self._lines = LineReader(self._process.stdout.fileno(), self.pid, log)
        self._handle = psutil.Process(self.pid)
        _live[self.pid] = self._handle.create_time()
        self._ended = False

    def _start(
        self, environments: Environments, memory_limit_gib: float, err: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        arguments = {"parent": os.getpid(), "memory_limit_gib": memory_limit_gib}
        return subprocess.Popen(
            [*environments.command(self.cell.env), json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
            env=worker_variables(environments, self.cell.env, self._threads, self.mark),
            start_new_session=True,
        )

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    def open(self, graph: GraphLocation | None = None) -> OpenAnswer:
        """Construct the system; ``graph`` is where the run has prepared it. Raises as ``call``."""
        self.send_open(graph)
        return self.receive(OPEN)

    def send_open(self, graph: GraphLocation | None = None) -> None:
        """Send the command to construct the system."""
        self.send(OPEN, cell=asdict(replace(self.cell, threads=self._threads)), graph=graph)

    def call(self, op: Command[A], **arguments: object) -> A:
        """Send a command and wait for its answer.

        Raises ``WorkerFailed`` with the failure's status; after a time-out or a death the process
        group is gone.
        """
        self.send(op, **arguments)
        return self.receive(op)

    def timed(self, op: Command[EpochAnswer], **arguments: object) -> TimedEpoch:
        """Send a command that reports the end of its work, and measure it on the harness's clock.

        Raises as ``call``.
        """
        own_delay_s, worker_delay = contention.own_run_delay_s(), contention.run_delay(self.pid)
        cpu_s = self.cpu_seconds()
        self.send(op, **arguments)
        line = self._read_line(self._sent + self.timeout_s)
        parent_s = time.monotonic() - self._sent
        work_cpu_s = self.cpu_seconds() - cpu_s
        runner_wait_s = contention.own_run_delay_s() - own_delay_s
        worker_wait_s = contention.run_delay(self.pid).main - worker_delay.main
        if line == STOPPED.rstrip():
            line = self._read_line(self._sent + self.timeout_s)
        threads_wait_s = contention.run_delay(self.pid).total - worker_delay.total
        return {
            **self._answer(op, line),
            "parent_s": parent_s,
            "work_cpu_s": max(work_cpu_s, 0.0),
            "runner_wait_s": runner_wait_s,
            "worker_wait_s": max(worker_wait_s, 0.0),
            "threads_wait_s": max(threads_wait_s, 0.0),
        }

    def send(self, op: Command[A], **arguments: object) -> None:
        """Send a command; ``receive`` must follow before the next one."""
        assert self._process.stdin is not None
        command = json.dumps({"op": op, **arguments}).encode() + b"\n"
        self.idle_cpu.end(self._own_cpu_seconds())
        self._sent = time.monotonic()
        try:
            self._process.stdin.write(command)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(self._death()) from None

    def receive(self, op: Command[A]) -> A:
        """Return the answer to the command sent last. Raises as ``call``."""
        return self._answer(op, self._read_line(time.monotonic() + self.timeout_s))

    def _read_line(self, deadline: float) -> bytes | None:
        try:
            return self._lines.read(deadline)
        except WorkerStopped:
            self.kill()
            raise

    def _answer(self, op: Command[A], line: bytes | None) -> A:
        """Return the result in a line (None: time-out, empty: end of the stream)."""
        self.idle_cpu.begin(self._own_cpu_seconds())
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
            return cast(A, parse_answer(line, self.log))
        except ValueError:
            self.kill()
            reason = f"the worker's answer is malformed; {see(self.log)}"
            raise WorkerFailed(Failure("crash", reason)) from None

    def _own_cpu_seconds(self) -> float:
        """Return the CPU time of the worker without its children; this is quick."""
        try:
            times = self._handle.cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the worker and its children so far."""
        return stray_processes.tree_cpu_s(self.pid)

    def take_stopped_s(self) -> float:
        """Return for how long signals stopped the worker since the last call (s)."""
        return self._lines.take_stopped_s()

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
        """Ask the worker to end, then kill what is left of its process group."""
        if self.alive:
            timeout, self.timeout_s = self.timeout_s, CLOSE_TIMEOUT_S
            try:
                self.call(CLOSE)
                self._process.wait(timeout=CLOSE_TIMEOUT_S)
            except (WorkerFailed, subprocess.TimeoutExpired):
                pass
            finally:
                self.timeout_s = timeout
        self.kill()

    def kill(self) -> None:
        """Kill the process group and its orphans, and close the pipes; a second call is a no-op."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        stray_processes.kill_strays(stray_processes.find_strays(*live_workers()))
        del _live[self.pid]
        if not _live:  # do not adopt orphans of other subprocesses
            stray_processes.adopt_orphans(False)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
