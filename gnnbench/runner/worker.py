"""A worker process: one system on one graph, driven by JSON lines over its standard streams.

Commands are objects with ``op`` (``prepare``, ``open``, ``setup``, ``check``, ``epoch``,
``recheck``, ``profile``, ``close``); every command gets one answer, ``{"ok": true, "result": ...}``
or ``{"ok": false, "status", "reason"}``.
Between commands the worker is blocked in a read. What the system prints goes to standard error,
which is the worker's log.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any

from gnnbench.cell import Cell
from gnnbench.errors import DataError, GnnbenchError
from gnnbench.runner.quiet import OuterClock

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h
OOM_SCORE = "800"


class Worker:
    """State between commands."""

    def __init__(self) -> None:
        self.system: Any = None

    def open(self, command: dict[str, Any]) -> dict[str, Any]:
        """Import the system, open the graph, construct; returns the graph's facts."""
        from gnnbench.systems import registry

        cell = Cell.from_json(command["cell"])
        system = registry.get(cell.system)
        graph: Any = open_graph(cell.dataset) if system.needs_graph else None
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(cell.threads)
        self.system = system(cell, graph)
        return {} if graph is None else graph_facts(graph)

    def prepare(self, command: dict[str, Any]) -> dict[str, Any]:
        """Make a dataset ready on disk and check every byte, so that workers only map it."""
        from gnnbench.data.prepare import prepare
        from gnnbench.data.store.reader import verify

        try:
            report = verify(prepare(command["dataset"]))
            if not report.ok:
                raise DataError(report.message)
        except GnnbenchError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        return {}

    def setup(self, command: dict[str, Any]) -> dict[str, Any]:
        """Build what the system needs; the time is part of the row."""
        start = time.perf_counter()
        self.system.setup()
        return {"seconds": time.perf_counter() - start}

    def check(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the correctness gate."""
        start = time.perf_counter()
        report = self.system.check()
        return {**report.to_json(), "seconds": time.perf_counter() - start}

    def epoch(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one epoch, measured by the system and by the harness."""
        clock = OuterClock()
        self.system.on_clock_stopped = clock.stop
        sample = self.system.run_epoch(command["epoch"])
        outer_s = clock.seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {**sample.to_json(), "outer_s": outer_s, "peak_rss_bytes": peak}

    def recheck(self, command: dict[str, Any]) -> dict[str, Any]:
        """Check again, after timing, on seeds that were not timed."""
        return {"reason": self.system.recheck(command["epoch"])}

    def profile(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look inside the samples of an epoch that was not timed."""
        found: dict[str, Any] = self.system.profile(command["epoch"])
        return found

    def close(self, command: dict[str, Any]) -> dict[str, Any]:
        """Give everything back; the process ends after the answer."""
        if self.system is not None:
            self.system.close()
        return {}


def open_graph(name: str) -> Any:
    """The prepared graph by name, opened by mmap."""
    from gnnbench.data.prepare import load_dataset

    return load_dataset(name)


def graph_facts(graph: Any) -> dict[str, Any]:
    """What a row says of the graph."""
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "train_nodes": int(graph.train_idx.numel()),
        "feature_dim": graph.feature_dim,
        "features": str(graph.meta.get("features", "")),
    }


def _die_with_parent(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)


def _settle(arguments: dict[str, Any]) -> None:
    """Limits of this process, before anything big is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _die_with_parent(arguments["parent"])
    with contextlib.suppress(OSError):  # a container may forbid it; the kernel's choice stands
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    limit = int(arguments.get("memory_limit_gib", 0) * 2**30)
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def serve(commands: IO[bytes], answers: IO[bytes]) -> None:
    """Answer commands until ``close`` or the end of the stream."""
    worker = Worker()
    ops = {
        "prepare": worker.prepare,
        "open": worker.open,
        "setup": worker.setup,
        "check": worker.check,
        "epoch": worker.epoch,
        "recheck": worker.recheck,
        "profile": worker.profile,
        "close": worker.close,
    }
    for line in commands:
        command = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"ok": True, "result": ops[command["op"]](command)}
        except Exception as error:
            from gnnbench.runner.failures import from_exception

            answer = {"ok": False, **from_exception(error).to_json()}
            traceback.print_exc()
        sys.stderr.flush()
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
        if command["op"] == "close":
            return


def main() -> None:
    """Entry point of ``python -m gnnbench.runner.worker '<json>'``."""
    _settle(json.loads(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints belongs into the log
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
