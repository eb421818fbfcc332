"""Measurements of a built system apart from its timed epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from gnnbench.core.cell import Until
from gnnbench.core.counters import KERNEL_OVERLAP, KERNEL_TIME
from gnnbench.measure.kernel_overlap import Kernel, busy_s, gather_shares, kernels_in
from gnnbench.systems.runtime.built_system import BuiltSystem, foresee_untimed
from gnnbench.systems.runtime.cache_curves import cache_curves
from gnnbench.systems.runtime.copy_ceiling import CopyCeiling
from gnnbench.systems.runtime.system import FactRow, ProfileTables

if TYPE_CHECKING:
    from gnnbench.measure.kernels import KernelRow
    from gnnbench.measure.timeline import Timeline
    from gnnbench.roofline.bench import Bench
    from gnnbench.roofline.counters import CounterRecord
    from gnnbench.schema.roofline import RooflineRecord


class Diagnostics:
    """Kernels, hardware counters, memory, copy times and profiles of one system.

    Nothing here is part of an epoch's time or of the system's peak memory.
    """

    def __init__(self, system: BuiltSystem) -> None:
        self._system = system

    def memory(self, plain: BuiltSystem, epoch: int) -> list[FactRow]:
        """Set the system up and measure the memory of each component.

        ``plain`` is the same system, not set up either; on a CPU it gives the peak of an epoch.
        """
        from gnnbench.systems.runtime.memory import memory_facts

        facts = memory_facts(self._system, plain, epoch)
        return [FactRow(stage=s, name=n, value=v, where=w, samples=()) for s, n, v, w in facts]

    def kernels(self, epoch: int) -> list[KernelRow]:
        """Return rows of ``kernels.csv``: what the GPU runs in a warm epoch, as it is timed."""
        from gnnbench.measure.kernels import kernels_of

        system = self._system
        for warm_up in (epoch + 2, epoch + 1):  # until graphs are captured and buffers have grown
            self._run_unmeasured(warm_up)
        batches = len(system.seeds(epoch))
        return kernels_of(lambda: self._run_unmeasured(epoch), batches, system.job.device)

    def trace(self, epoch: int, path: Path) -> list[FactRow]:
        """Write a trace of a warm epoch for Perfetto.

        Returns how much of a producer's gathers ran next to kernels of this process, if any.
        """
        from gnnbench.measure.trace import write_trace

        cell = self._system.job.cell

        def warm_up() -> None:
            for earlier in (epoch + 2, epoch + 1):
                self._run_unmeasured(earlier)

        traces = write_trace(
            lambda timeline: self._run_unmeasured(epoch, timeline), warm_up,
            self._system.job.device, path, f"{cell.system} on {cell.dataset}",
        )  # fmt: skip
        return _overlap_facts(*map(kernels_in, traces)) if len(traces) == 2 else []

    def _run_unmeasured(self, epoch: int, timeline: Timeline | None = None) -> None:
        foresee_untimed(self._system, epoch)
        self._system.run_unmeasured(epoch, timeline=timeline)

    def copies(self, served: Mapping[str, int], batches: int) -> list[list[str | float]]:
        """Copy as many bytes as an epoch served, batch by batch; rows of counts (seconds)."""
        with self._system.job.peak.apart():
            return self._copy_ceiling.counts(served, batches)

    @cached_property
    def _copy_ceiling(self) -> CopyCeiling:
        return CopyCeiling(self._system.job)

    def roofline(self, epoch: int) -> tuple[list[RooflineRecord], str]:
        """Run the kernels of an epoch's first batch and the machine's ceilings, one by one.

        Returns records (``gnnbench.roofline.bench``), and what is wrong with a result, or "".
        """
        with self._system.job.peak.apart():
            return self._bench.run(self._system.seeds(epoch)[0], epoch)

    def counters(self, epoch: int, program: Sequence[str]) -> list[CounterRecord]:
        """Read hardware counters of these kernels; the command ``program`` calls ``run_marked``."""
        records = self._bench.counters(self._system.seeds(epoch)[0], epoch, program)
        self._system.job.counts.clear()
        return records

    def run_marked(self, epoch: int) -> None:
        """Run these kernels, marked for a GPU's profiler."""
        self._bench.run_marked(self._system.seeds(epoch)[0], epoch)

    @cached_property
    def _bench(self) -> Bench:
        from gnnbench.roofline.bench import Bench

        assert self._system.trainer is not None
        return Bench(self._system.job, self._system.stages, self._system.trainer.framework)

    def profile(self, epoch: int) -> ProfileTables:
        """Profile an epoch that has not run.

        Where cells only sample: stages by hop, memory and kernels. Where they end with memory IO:
        hit ratios of other cache sizes, and the overlap of batches. Else nothing.
        """
        system = self._system
        if system.until is Until.COMPUTE:
            return {}
        if system.until is Until.SAMPLE:
            from gnnbench.systems.runtime.profile import profile_samples

            return profile_samples(system.job, system.stages.sampler, system.order, epoch)
        store = system.stages.store
        assert store is not None
        curves, facts = cache_curves(store, system.stages.footprint, epoch, system.job.graph)
        if store.overlaps:
            from gnnbench.systems.runtime.batch_overlap import overlap_facts

            facts += overlap_facts(system.stages, system.seeds(epoch), epoch)
        system.job.counts.clear()
        tables: ProfileTables = {}
        if facts:
            tables["facts"] = [
                FactRow(stage=s, name=n, value=v, where="", samples=()) for s, n, v in facts
            ]
        if curves:
            tables["curves"] = curves
        return tables


def _overlap_facts(consumer: Sequence[Kernel], producer: Sequence[Kernel]) -> list[FactRow]:
    """Kernel times of both processes and the mean share over gathers; empty without gathers."""
    if not (shares := gather_shares(producer, consumer)):
        return []
    times = [
        FactRow(stage="schedule", name=KERNEL_TIME.name, value=busy_s(own), where=where, samples=())
        for where, own in (("producer", producer), ("consumer", consumer))
    ]
    overlap = FactRow(
        stage="schedule", name=KERNEL_OVERLAP.name, value=fmean(shares), where="", samples=shares
    )  # fmt: skip
    return [*times, overlap]
