"""A worker process: one system on one graph, driven by JSON lines over its standard streams.

Commands are objects with ``op`` (``ask``, ``prepare``, ``hold``, ``open``, ``setup``, ``check``,
``glance``, ``foresee``, ``epoch``, ``audit``, ``evaluate``, ``copies``, ``roofline``, ``verify``,
``probe``, ``recheck``, ``profile``, ``memory``, ``kernels``, ``counters``, ``close``); each gets
one answer, ``{"ok": true, "result": ...}`` or ``{"ok": false, "status", "reason"}``. Before that of
``epoch`` comes the word that its work has ended, by itself on a line.
Between commands the worker is blocked in a read. What the system prints goes to standard error,
which is the worker's log.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from gnnbench.core.bootstrap import command as run_of
from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.cell import Cell
from gnnbench.core.errors import DataError, GnnbenchError, HostMemoryError
from gnnbench.harness.epoch_end import quiet_since, synchronize_devices
from gnnbench.harness.startup import (
    FrameworkClock,
    age_s,
    hold_garbage,
    memory_peaks,
    release_garbage,
    versions,
)

STOPPED = b"stopped\n"
OOM_SCORE = "800"


class Worker:
    """State between commands."""

    def __init__(
        self,
        stopped: Callable[[], None],
        stuck: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._stopped = stopped  # tells the runner at once: its clock decides
        self._stuck = stuck  # tells the runner why a command has no other answer
        self.clock = FrameworkClock()
        self.system: Any = None
        self.verified = False  # whether the suite's own gate and audit look at the work

    def open(self, command: dict[str, Any]) -> dict[str, Any]:
        """Import the system, open the graph, construct; returns the graph's ``facts``.

        ``open_s`` counts from the start of the process, without ``import_s``, the import of a
        framework (``gnnbench.harness.startup.FRAMEWORKS``).
        """
        if self.system is not None:  # a process may train the same cell several times
            self.system.close()
            self.system = None
            gc.collect()
        hold_garbage()
        from gnnbench.distributed.producer_consumer import start_early
        from gnnbench.systems.runtime.find import find

        cell = Cell.from_json(command["cell"])
        start_early(cell)
        found = find(cell.system)
        self.verified = found.composed
        graph: Any = None
        if found.needs_graph:
            graph = open_graph(cell.dataset, command.get("graph"))
            if cell.evaluate:
                graph = graph.with_splits()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(cell.threads)
        self.system = found.build(cell, graph)
        self.system.stuck = self._stuck
        facts = {} if graph is None else graph_facts(graph)
        import_s = self.clock.seconds
        return {"facts": facts, "open_s": age_s() - import_s, "import_s": import_s}

    def prepare(self, command: dict[str, Any]) -> dict[str, Any]:
        """Make a dataset ready on disk and check every byte, so that workers only map it.

        ``facts``: seconds since the process was started, and what memory it took.
        """
        from gnnbench.datasets.prepare import prepare_verified
        from gnnbench.datasets.store.layout import is_made, read_meta

        try:
            folder, verified = prepare_verified(command["dataset"])
        except HostMemoryError:
            raise
        except GnnbenchError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        made = [a for a, entry in read_meta(folder)["arrays"].items() if is_made(entry)]
        return {
            "graph": {"folder": str(folder), "verified": verified, "made": made},
            "facts": {"seconds": age_s(), **memory_peaks()},
        }

    def hold(self, command: dict[str, Any]) -> dict[str, Any]:
        """Copy files of a verified graph into memory that lasts as long as this process, or make
        what has no file there.

        Returns their addresses by array, and what they are like.
        """
        from gnnbench.datasets.shared_memory import address_of, array_holder, told
        from gnnbench.datasets.store.seal import stamp

        folder = Path(command["folder"])
        found, facts = {}, {}
        for array in command["arrays"]:
            holder = array_holder(folder, array)
            begin = time.perf_counter()
            descriptor = holder()
            found[array] = address_of(descriptor)
            facts[array] = {**told(descriptor), "seconds": time.perf_counter() - begin}
        if stamp(folder) != command["verified"]:
            raise DataError(f"{folder} changed while its graph was in use; run again")
        return {"held": found, "facts": facts}

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """What a plan asks of the environment that this process runs in."""
        from gnnbench.harness.remote_answers import ANSWERS

        return {"answer": ANSWERS[command["about"]](**command["arguments"])}

    def setup(self, command: dict[str, Any]) -> dict[str, Any]:
        """Build what the system needs; the time is part of the row, a framework's import apart."""
        start, before = time.perf_counter(), self.clock.seconds
        self.system.setup()
        import_s = self.clock.seconds - before
        release_garbage()
        seconds = time.perf_counter() - start - import_s
        counts = list(self.system.setup_counts)
        return {
            "seconds": seconds, "import_s": import_s, "counts": counts, "versions": versions(),
        }  # fmt: skip

    def check(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the correctness gate; whether it is the suite's is not for the system to say."""
        start = time.perf_counter()
        report = self.system.check()
        seconds = time.perf_counter() - start
        verified = self.verified and report.verified
        return {**report.to_json(), "verified": verified, "seconds": seconds}

    def foresee(self, command: dict[str, Any]) -> dict[str, Any]:
        """Tell an oracle which epoch is timed next; no other system is told."""
        self.system.foresee(command["epoch"])
        return {}

    def epoch(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one epoch under the harness's clock, until its work is done and all is quiet."""
        from gnnbench.measure.timeline import Timeline

        # The system is lent one timeline for its spans; the epoch is read off the other.
        own, lent = (Timeline.on(self.system.cell.device) for _ in range(2))
        own.start()
        self.system.run_epoch(command["epoch"], lent)
        own.stop()
        self._stopped()
        own.marks = list(lent.marks)
        return {**own.sweep().to_json(), "outer_s": quiet_since(own.begin) - own.begin}

    def audit(self, command: dict[str, Any]) -> dict[str, Any]:
        """Count and check what the last epoch did."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {**self.system.audit(command["epoch"]).to_json(), "peak_rss_bytes": peak}

    def evaluate(self, command: dict[str, Any]) -> dict[str, Any]:
        """Accuracies of the model after the last epoch, and what finding them took."""
        start = time.perf_counter()
        found: dict[str, float] = self.system.evaluate()
        return {**found, "evaluate_s": time.perf_counter() - start}

    def copies(self, command: dict[str, Any]) -> dict[str, Any]:
        """Copy as much as the last epoch of gathers served: their ceiling, measured beside them."""
        return {"counts": self.system.copies(command["served"], command["batches"])}

    def roofline(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run kernels of the last epoch by themselves, in turns with the machine's ceilings."""
        records, reason = self.system.roofline(command["epoch"])
        return {"records": records, "reason": reason}

    def counters(self, command: dict[str, Any]) -> dict[str, Any]:
        """Read hardware counters while the same kernels run, none of it timed."""
        told = {"cell": asdict(self.system.cell), "epoch": command["epoch"]}
        beside = run_of(sys.executable, "gnnbench.harness.profiled_process")
        beside.append(json.dumps({**told, "graph": command["graph"]}))
        return {"counters": self.system.counters(command["epoch"], beside)}

    def verify(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run an epoch as one that is timed and look at all of its batches."""
        from gnnbench.measure.timeline import Timeline

        timeline = Timeline.on(self.system.cell.device)
        timeline.start()
        found: dict[str, Any] = self.system.verify(command["epoch"], timeline).to_json()
        return found

    def probe(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the phases of some epochs one by one; seconds of each, batch by batch."""
        alone, reason = self.system.probe(command["epochs"])
        return {"alone": alone, "reason": reason}

    def glance(self, command: dict[str, Any]) -> dict[str, Any]:
        """One batch of the gate, of a cell whose first life passed it whole."""
        digest, reason = self.system.glance()
        return {"digest": digest, "reason": reason}

    def recheck(self, command: dict[str, Any]) -> dict[str, Any]:
        """Check again, after timing, on seeds that were not timed."""
        return {"reason": self.system.recheck(command["epoch"], command["brief"])}

    def profile(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look inside the samples of an epoch that was not timed."""
        found: dict[str, Any] = self.system.profile(command["epoch"])
        return found

    def kernels(self, command: dict[str, Any]) -> dict[str, Any]:
        """Name what the GPU runs in an epoch."""
        return {"kernels": self.system.kernels(command["epoch"])}

    def memory(self, command: dict[str, Any]) -> dict[str, Any]:
        """Set the system up and tell its memory by what holds it."""
        return {"facts": self.system.memory(command["epoch"])}

    def close(self, command: dict[str, Any]) -> dict[str, Any]:
        """Give everything back; the process ends after the answer."""
        if self.system is not None:
            self.system.close()
        return {}


def open_graph(name: str, prepared: Mapping[str, Any] | None = None) -> Any:
    """The graph, opened by mmap: where the run prepared it, else by its name."""
    if prepared is not None:
        from gnnbench.datasets.store.reader import open_graph

        return open_graph(prepared["folder"], prepared["verified"], prepared.get("held"))
    from gnnbench.datasets.prepare import load_dataset

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


def _settle(arguments: dict[str, Any]) -> None:
    """Limits of this process, before anything big is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent(arguments["parent"])
    with contextlib.suppress(OSError):  # a container may forbid it; the kernel's choice stands
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    limit = int(arguments.get("memory_limit_gib", 0) * 2**30)
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _end_of_work() -> None:
    """No kernel that a command launched runs on in the other system's turn."""
    with contextlib.suppress(RuntimeError):  # a GPU that failed: what was asked has said so
        synchronize_devices()


def serve(commands: IO[bytes], answers: IO[bytes]) -> None:
    """Answer commands until ``close`` or the end of the stream."""
    asked, answering = threading.Event(), threading.Lock()

    def stopped() -> None:
        answers.write(STOPPED)
        answers.flush()

    def failed(error: BaseException) -> dict[str, Any]:
        from gnnbench.harness.failures import from_exception

        return {"ok": False, **from_exception(error).to_json()}

    def answer_by(answer: dict[str, Any]) -> None:
        sys.stderr.flush()
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    def stuck(error: BaseException) -> None:
        """On any thread: the command in progress is answered, and the process, of no use, ends."""
        with answering:
            if asked.is_set():
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                answer_by(failed(error))
                os._exit(1)

    worker = Worker(stopped, stuck)
    ops = {
        "ask": worker.ask,
        "prepare": worker.prepare,
        "hold": worker.hold,
        "open": worker.open,
        "setup": worker.setup,
        "check": worker.check,
        "glance": worker.glance,
        "foresee": worker.foresee,
        "epoch": worker.epoch,
        "audit": worker.audit,
        "evaluate": worker.evaluate,
        "copies": worker.copies,
        "roofline": worker.roofline,
        "verify": worker.verify,
        "probe": worker.probe,
        "recheck": worker.recheck,
        "profile": worker.profile,
        "memory": worker.memory,
        "kernels": worker.kernels,
        "counters": worker.counters,
        "close": worker.close,
    }
    for line in commands:
        asked.set()
        command = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"ok": True, "result": ops[command["op"]](command)}
        except Exception as error:
            answer = failed(error)
            traceback.print_exc()
        _end_of_work()
        with answering:
            asked.clear()
            answer_by(answer)
        if command["op"] == "close":
            return


def main() -> None:
    """Entry point of ``python -m gnnbench.harness.worker '<json>'``."""
    _settle(json.loads(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints belongs into the log
    serve(sys.stdin.buffer, answers)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # all is closed: Python would take a third of a second to take torch to pieces


if __name__ == "__main__":
    main()
