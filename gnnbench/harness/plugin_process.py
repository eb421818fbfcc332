"""A process that imports plug-ins and answers the plan's queries about them.

The runner imports no plug-in: its code could then change what the runner measures and writes. The
answers are data, which are validated. The process has ended before anything is timed.
"""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from pydantic import TypeAdapter

from gnnbench.core import registry
from gnnbench.core.cell import Cell
from gnnbench.core.errors import GnnbenchError, MissingError, SettingError, UsageError
from gnnbench.harness.failures import last_line
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import ASK, PlanAnswer

ANSWER_S = 300.0  # a cold import of a framework takes a minute
A = TypeVar("A")
# Making one takes 5 ms.
_adapter: Callable[[object], TypeAdapter[object]] = cache(TypeAdapter)


def checked(answer: PlanAnswer, kind: type[A]) -> A:
    """Return the content of an answer. Raises the ``GnnbenchError`` that it reports instead."""
    if answer.get("error"):
        if answer["key"]:
            raise SettingError(answer["error"], answer["key"])
        classes: dict[int, type[GnnbenchError]] = {
            error.exit_code: error for error in (UsageError, MissingError)
        }
        raise classes.get(answer["exit_code"], GnnbenchError)(answer["error"])
    return cast(A, _adapter(kind).validate_python(answer["answer"]))


@dataclass
class PluginProcess:
    """The helper process; it starts at the first query, and each query is sent once.

    Plug-ins may be registered by variables, so answers hold for one set of environment variables.
    """

    _worker: WorkerProcess | None = None
    _variables: dict[str, str] = field(default_factory=dict)
    _answers: dict[str, PlanAnswer] = field(default_factory=dict)

    def ask(self, kind: type[A], about: str, **arguments: object) -> A:
        """Return an answer of ``gnnbench.harness.remote_answers``.

        Raises ``MissingError`` where the process ends, and errors of the query itself.
        """
        if self._variables != dict(os.environ):
            self.close()
            self._answers, self._variables = {}, dict(os.environ)
        key = json.dumps([about, arguments], sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._send(about, arguments)
        return checked(self._answers[key], kind)

    def _send(self, about: str, arguments: dict[str, object]) -> PlanAnswer:
        if self._worker is None:
            descriptor, log = tempfile.mkstemp(prefix="gnnbench-plugins-", suffix=".log")
            os.close(descriptor)
            self._worker = WorkerProcess(Cell("", "", "", ""), Path(log), ANSWER_S)
        try:
            return self._worker.call(ASK, about=about, arguments=arguments)
        except WorkerFailed as failed:
            reason = failed.failure.reason.partition("; see logs/")[0]
            line = last_line(self._worker.log)
            self.close()
            raise MissingError(
                f"the plug-ins cannot be inspected: {reason}"
                + (f", its last line '{line}'" if line else "")
                + f"; mend or uninstall one of: {', '.join(registry.plugins()) or 'none'}"
            ) from None

    def close(self) -> None:
        """End the process; its answers are kept."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.log.unlink(missing_ok=True)


_process = PluginProcess()
atexit.register(_process.close)
ask = _process.ask


@contextmanager
def plugin_process() -> Iterator[None]:
    """Import no plug-in in this process within the block; end the helper process after it."""
    try:
        with registry.without_plugins():
            yield
    finally:
        _process.close()
