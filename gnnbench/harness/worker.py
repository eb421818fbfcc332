"""Worker process: one system on one graph, driven by JSON lines over its standard streams.

Commands and answers are those of ``gnnbench.harness.protocol``. Each command has one answer. Before
that of ``epoch``, a line by itself says that the epoch's work has ended. Between commands the
worker is blocked in a read. What the system prints goes to standard error: the worker's log.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import IO, NoReturn, TypedDict

from gnnbench.core import integrity
from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.cell import Cell, CellValues
from gnnbench.harness.epoch_end import synchronize_devices
from gnnbench.harness.protocol import CLOSE, OPEN, STOPPED
from gnnbench.harness.startup import NOTHING_INHERITED, Inherited
from gnnbench.harness.worker_commands import SystemCommands
from gnnbench.harness.worker_datasets import copy_to_memory, prepare

OOM_SCORE = "800"


class WorkerArguments(TypedDict):
    """The argument of the process: pid of the harness, limit of the address space (0: none)."""

    parent: int
    memory_limit_gib: float


def _ask(about: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Answer a question of the plan about the Python environment of this process."""
    from gnnbench.core.errors import GnnbenchError
    from gnnbench.harness.remote_answers import ANSWERS

    try:
        return {"answer": _call(ANSWERS[about], arguments)}
    except GnnbenchError as error:
        key = getattr(error, "key", "")
        return {"error": str(error), "exit_code": error.exit_code, "key": key}


def _call(operation: object, arguments: Mapping[str, object]) -> object:
    """Call an operation with the arguments of a message, which it checks itself."""
    if not callable(operation):
        raise TypeError(f"{operation!r} is no operation")
    return operation(**arguments)


def _hold(folder: str, arrays: list[str], verified: object, **_: object) -> Mapping[str, object]:
    return copy_to_memory(Path(folder), arrays, verified)  # type: ignore[arg-type]


def _import_checks(cell: CellValues) -> None:
    """Import what checks a recipe, before a plug-in is imported."""
    if Cell.from_json(cell).composed:
        from gnnbench.systems.runtime import runner  # noqa: F401


def _set_limits(arguments: WorkerArguments) -> None:
    """Set limits of this process, before large packages are imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent(arguments["parent"])
    with contextlib.suppress(OSError):  # a container may forbid it; the kernel's choice applies
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    limit = int(arguments["memory_limit_gib"] * 2**30)
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _finish_kernels() -> None:
    """Wait for kernels that a command launched, so that none runs in the other side's turn."""
    with contextlib.suppress(RuntimeError):  # a GPU that failed: the command has reported it
        synchronize_devices()


class Server:
    """Answers commands, from one stream to another, until ``close`` or the end of the stream."""

    def __init__(
        self, commands: IO[bytes], answers: IO[bytes], inherited: Inherited = NOTHING_INHERITED
    ) -> None:
        self._commands, self._answers = commands, answers
        self._in_progress, self._answering = threading.Event(), threading.Lock()
        self._system = system = SystemCommands(self._report_end, self._report_stuck, inherited)
        operations: dict[str, object] = {
            "ask": _ask,
            "prepare": prepare,
            "hold": _hold,
            "open": system.open,
            "setup": system.setup,
            "check": system.check,
            "glance": system.glance,
            "foresee": system.foresee,
            "epoch": system.epoch,
            "audit": system.audit,
            "evaluate": system.evaluate,
            "copies": system.copies,
            "roofline": system.roofline,
            "verify": system.verify,
            "probe": system.probe,
            "recheck": system.recheck,
            "profile": system.profile,
            "trace": system.trace,
            "memory": system.memory,
            "kernels": system.kernels,
            "counters": system.counters,
            "close": system.close,
        }
        self._operations = MappingProxyType(operations)

    def serve(self) -> None:
        """Answer commands in turn; from ``open`` on, none may have replaced code of gnnbench."""
        check_code: Callable[[], None] | None = None
        for line in self._commands:
            self._in_progress.set()
            command = json.loads(line)
            op = command.pop("op")
            try:
                if op == OPEN and check_code is None:
                    _import_checks(command["cell"])
                    check_code = integrity.record(self, self._system)
                answer = {"ok": True, "result": _call(self._operations[op], command)}
                if check_code is not None:
                    check_code()
            except Exception as error:
                answer = _failure(error)
                traceback.print_exc()
            _finish_kernels()
            with self._answering:
                self._in_progress.clear()
                self._send(answer)
            if op == CLOSE:
                return

    def _send(self, answer: Mapping[str, object]) -> None:
        sys.stderr.flush()
        self._answers.write(json.dumps(answer, default=asdict).encode() + b"\n")
        self._answers.flush()

    def _report_end(self) -> None:
        self._answers.write(STOPPED)
        self._answers.flush()

    def _report_stuck(self, error: BaseException) -> None:
        """On any thread: answer the command in progress with the error, then end the process."""
        with self._answering:
            if self._in_progress.is_set():
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                self._send(_failure(error))
                os._exit(1)


def _failure(error: BaseException) -> dict[str, object]:
    from gnnbench.harness.failures import from_exception

    return {"ok": False, **from_exception(error).to_json()}


def run_worker(arguments: WorkerArguments, inherited: Inherited = NOTHING_INHERITED) -> NoReturn:
    """Answer commands on the standard streams, then end the process."""
    _set_limits(arguments)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries belongs to the log
    Server(os.fdopen(0, "rb", closefd=False), answers, inherited).serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # everything is closed: Python would take a third of a second to unload torch


def main() -> None:
    """Run ``python -m gnnbench.harness.worker '<json>'``."""
    run_worker(json.loads(sys.argv[1]))


if __name__ == "__main__":
    main()
