"""Read a worker's lines from its pipe, with a time-out, and notice when it is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from pathlib import Path

from gnnbench.core import process_activity
from gnnbench.core.process_activity import Stillness
from gnnbench.harness.failures import Failure, see

LOOK_S = 1.0  # between checks of a worker that does not answer
SHORT_STOP_S = 0.001  # counts for a stop whose length was not measured


class WorkerFailed(Exception):
    """A command did not succeed; the worker is unusable or has ended."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class WorkerStopped(WorkerFailed):
    """A signal stopped the worker, and it did not continue."""


class LineReader:
    """Lines of a worker's standard output; ``descriptor`` is the reading end of the pipe."""

    def __init__(self, descriptor: int, pid: int, log: Path) -> None:
        self._descriptor, self._pid, self._log = descriptor, pid, log
        self._buffer = b""
        self._stopped_s = 0.0

    def read(self, deadline: float) -> bytes | None:
        """Return one line; empty at the end of the stream, None at the deadline.

        ``deadline`` is a time of ``monotonic``. Raises ``WorkerStopped``.
        """
        stillness, stopped_s = Stillness(self._pid), 0.0
        while b"\n" not in self._buffer:
            if (left_s := deadline - time.monotonic()) <= 0:
                return None
            if not select.select([self._descriptor], [], [], min(left_s, LOOK_S))[0]:
                before_s, stopped_s = stopped_s, stillness.look()[1]
                self._stopped_s += max(stopped_s - before_s, 0.0)
                if stopped_s > process_activity.SILENCE_S:
                    raise WorkerStopped(Failure("crash", _stopped(self._log)))
                continue
            chunk = os.read(self._descriptor, 1 << 16)
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def take_stopped_s(self) -> float:
        """Return for how long the worker was stopped by signals since the last call (s).

        A stop shorter than ``LOOK_S``, or between two commands, counts as ``SHORT_STOP_S``.
        """
        changed = False
        with contextlib.suppress(ChildProcessError):  # the kernel reports each change once
            while os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG):
                changed = True
        seconds, self._stopped_s = self._stopped_s, 0.0
        return max(seconds, SHORT_STOP_S if changed else 0.0)


def _stopped(log: Path) -> str:
    seconds = process_activity.SILENCE_S
    return f"the worker was stopped by a signal for {seconds:g} s, and ended; {see(log)}"


def parse_answer(line: bytes, log: Path) -> object:
    """Return the ``result`` of an answer.

    Raises ``WorkerFailed`` with the failure that the answer names, ``ValueError`` for a line that
    is no answer.
    """
    answer = json.loads(line)
    try:
        if answer["ok"]:
            return answer["result"]
        failure = Failure(answer["status"], answer["reason"])
    except (KeyError, TypeError):
        raise ValueError(f"no answer: {line[:80]!r}") from None
    if failure.status == "crash":
        failure = Failure("crash", f"{failure.reason}; {see(log)}")
    raise WorkerFailed(failure)
