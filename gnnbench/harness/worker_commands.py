"""Commands of a worker on its system, from ``open`` to ``close``."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gnnbench.core.batch_choice import BatchChoice
from gnnbench.core.bootstrap import command as python_command
from gnnbench.core.cell import Cell, CellValues
from gnnbench.harness.epoch_end import wait_until_quiescent
from gnnbench.harness.startup import (
    NOTHING_INHERITED,
    FrameworkClock,
    Inherited,
    age_s,
    hold_garbage,
    release_garbage,
    versions,
)
from gnnbench.harness.worker_datasets import graph_facts, open_graph

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.harness import protocol
    from gnnbench.systems.runtime.runner import SystemRunner
    from gnnbench.systems.runtime.system import System


class SystemCommands:
    """The system of a worker, and what commands do with it. Answers are types of ``protocol``.

    ``report_end`` signals the end of an epoch's work to the harness, whose clock decides.
    ``report_stuck`` answers the command in progress from any thread if the system cannot go on.
    """

    def __init__(
        self,
        report_end: Callable[[], None],
        report_stuck: Callable[[BaseException], None] = lambda error: None,
        inherited: Inherited = NOTHING_INHERITED,
    ) -> None:
        self._report_end = report_end
        self._report_stuck = report_stuck
        self._clock = FrameworkClock()
        self._inherited = inherited
        self._opened: System | None = None
        self._is_recipe = False  # only recipes are checked by gnnbench's own gate and audit

    @property
    def _system(self) -> System:
        assert self._opened is not None
        return self._opened

    @property
    def _runner(self) -> SystemRunner:
        """The system of a recipe, which has diagnostics."""
        return cast("SystemRunner", self._system)

    def open(
        self, cell: CellValues, graph: protocol.GraphLocation | None = None
    ) -> protocol.OpenAnswer:
        """Import the system, open the graph, construct the system."""
        self.close()  # a process may train the same cell several times
        hold_garbage()
        from gnnbench.distributed.producer_consumer import start_early
        from gnnbench.systems.runtime.find import find

        opened = Cell.from_json(cell)
        start_early(opened)
        registered = find(opened.system)
        self._is_recipe = registered.composed
        mapped: Graph | None = None
        if registered.needs_graph:
            mapped = open_graph(opened.dataset, graph)
            if opened.evaluate:
                mapped = mapped.with_splits()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(opened.threads)
        self._opened = registered.build(opened, cast("Graph", mapped))
        self._opened.stuck = self._report_stuck  # type: ignore[method-assign,assignment]
        facts: protocol.GraphFacts = {} if mapped is None else graph_facts(mapped)
        inherited, import_s = self._inherited, self._clock.seconds
        return {
            "facts": facts,
            "open_s": inherited.start_s + age_s() - import_s,
            "import_s": inherited.import_s + import_s,
        }

    def setup(self) -> protocol.SetupAnswer:
        """Set the system up; its seconds are part of the row, without a framework's import."""
        start, imports_before_s = time.perf_counter(), self._clock.seconds
        self._system.setup()
        import_s = self._clock.seconds - imports_before_s
        release_garbage()
        return {
            "seconds": time.perf_counter() - start - import_s,
            "import_s": import_s,
            "counts": [list(row) for row in self._system.setup_counts],
            "versions": versions(),
        }

    def check(self) -> protocol.CheckAnswer:
        """Run the correctness gate. A system cannot claim that gnnbench's own gate verified it."""
        start = time.perf_counter()
        report = self._system.check()
        seconds = time.perf_counter() - start
        verified = self._is_recipe and report.verified
        answer = {**report.to_json(), "verified": verified, "seconds": seconds}
        return cast("protocol.CheckAnswer", answer)

    def glance(self) -> protocol.FirstBatchAnswer:
        """Check one batch of the gate, of a cell that passed the whole gate in its first trial."""
        digest, reason = self._system.glance()
        return {"digest": digest, "reason": reason}

    def foresee(self, epochs: Sequence[int]) -> protocol.NoAnswer:
        """Give an oracle the numbers of the epochs that are timed next; others do not get them."""
        self._runner.foresee(epochs)
        return {}

    def epoch(self, epoch: int, key: str = "", copies: float = 0.0) -> protocol.EpochAnswer:
        """Run one epoch until its work is done and the process is idle.

        ``key`` chooses ``copies`` batches on average, which are copied aside for the audit.
        """
        from gnnbench.measure.timeline import Timeline

        if self._is_recipe:
            self._runner.copy_batches(BatchChoice(key, copies))

        # The system gets one timeline for its spans; the epoch's time is read from the other.
        device = self._system.cell.device
        own, spans = Timeline.on(device), Timeline.on(device)
        own.start()
        self._system.run_epoch(epoch, spans)
        own.stop()
        self._report_end()
        own.marks = list(spans.marks)
        times = own.sweep()
        return {
            "wall": times.wall,
            "busy": times.busy,
            "alone": times.alone,
            "overlap": times.overlap,
            "idle": times.idle,
            "outer_s": wait_until_quiescent(own.begin) - own.begin,
        }

    def audit(self, epoch: int) -> protocol.AuditAnswer:
        """Count and check what the last epoch did."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer = {**self._system.audit(epoch).to_json(), "peak_rss_bytes": peak}
        return cast("protocol.AuditAnswer", answer)

    def evaluate(self) -> dict[str, float]:
        """Return accuracies of the model after the last epoch, and how long this took."""
        start = time.perf_counter()
        accuracies = self._system.evaluate()
        return {**accuracies, "evaluate_s": time.perf_counter() - start}

    def copies(self, served: Mapping[str, int], batches: int) -> protocol.CountsAnswer:
        """Copy as many bytes as the last epoch of gathers served: its measured peak."""
        return {"counts": self._runner.diagnostics.copies(served, batches)}

    def roofline(self, epoch: int) -> protocol.RooflineAnswer:
        """Run kernels of the last epoch by themselves, alternating with the machine's peaks."""
        records, reason = self._runner.diagnostics.roofline(epoch)
        return {"records": records, "reason": reason}

    def counters(
        self, epoch: int, graph: protocol.GraphLocation | None = None
    ) -> protocol.ProfileAnswer:
        """Read hardware counters while the same kernels run untimed in another process."""
        settings = {"cell": asdict(self._system.cell), "epoch": epoch, "graph": graph}
        program = python_command(sys.executable, "gnnbench.harness.profiled_process")
        program.append(json.dumps(settings))
        return {"counters": self._runner.diagnostics.counters(epoch, program)}

    def verify(self, epoch: int) -> protocol.EpochReportAnswer:
        """Run an epoch like a timed one and check all of its batches."""
        from gnnbench.measure.timeline import Timeline

        timeline = Timeline.on(self._system.cell.device)
        timeline.start()
        report = self._system.verify(epoch, timeline)
        return cast("protocol.EpochReportAnswer", report.to_json())

    def probe(self, epochs: Sequence[int]) -> protocol.ProbeAnswer:
        """Run the phases of some epochs one by one."""
        alone, reason = self._system.probe(epochs)
        return {"alone": alone, "reason": reason}

    def recheck(self, epoch: int, brief: bool) -> protocol.RecheckAnswer:
        """Run the gate's checks again, after timing, on seeds that were not timed."""
        return {"reason": self._system.recheck(epoch, brief)}

    def profile(
        self, epoch: int, graph: protocol.GraphLocation | None = None
    ) -> protocol.ProfileAnswer:
        """Profile an epoch that is not timed."""
        return {**self._system.profile(epoch)}

    def kernels(
        self, epoch: int, graph: protocol.GraphLocation | None = None
    ) -> protocol.ProfileAnswer:
        """List the kernels that the GPU runs in an epoch."""
        return {"kernels": self._runner.diagnostics.kernels(epoch)}

    def trace(
        self, epoch: int, path: str, graph: protocol.GraphLocation | None = None
    ) -> protocol.ProfileAnswer:
        """Write a trace of an epoch to a file."""
        return {"facts": self._runner.diagnostics.trace(epoch, Path(path))}

    def memory(
        self, epoch: int, graph: protocol.GraphLocation | None = None
    ) -> protocol.ProfileAnswer:
        """Set the system up and measure the memory of each component."""
        return {"facts": self._runner.memory(epoch)}

    def close(self) -> protocol.NoAnswer:
        """Close the system and free its memory."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
            gc.collect()
        return {}
