"""Executes a recipe: builds its stages, checks them, runs epochs and audits them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.batch_choice import NO_BATCHES, BatchChoice
from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.datasets.graph import Graph
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.systems.runtime import checks, phases, stage_setup
from gnnbench.systems.runtime.built_system import BuildWatch, is_oracle
from gnnbench.systems.runtime.diagnostics import Diagnostics
from gnnbench.systems.runtime.epoch_auditor import EpochAuditor
from gnnbench.systems.runtime.epoch_recorder import EpochRecorder
from gnnbench.systems.runtime.evaluate import Evaluator
from gnnbench.systems.runtime.recipe import Recipe, from_plain
from gnnbench.systems.runtime.stochastic import verifier
from gnnbench.systems.runtime.system import CheckReport, EpochReport, FactRow, ProfileTables, System
from gnnbench.systems.runtime.trainer import ModelTrainer
from gnnbench.systems.runtime.verification import digest_of, joined
from gnnbench.validation.gate import gate_seeds


class SystemRunner(System):
    """Runs any recipe, so that gate, audit, memory and phase times are the same code for all.

    On a GPU, labels and model are on the device. Where device memory is exhausted, every method may
    raise ``torch.OutOfMemoryError``, or ``RuntimeError`` with "CUDA out of memory" in its text.
    """

    stages: Stages
    schedule: Schedule
    trainer: ModelTrainer | None = None

    def __init__(self, cell: Cell, graph: Graph, recipe: Recipe | None = None) -> None:
        super().__init__(cell, graph)
        self.recipe = recipe or from_plain(cell.system, cell.recipe)
        self.until = cell.goes_until
        self.counts = Counts()
        in_flight = plan_of(self.recipe.schedule).outputs_in_flight
        self.job = Job(cell, graph, self.counts, in_flight, stuck=lambda e: self.stuck(e))
        self.order = self.recipe.order.build(self.job)
        self.recorder = EpochRecorder()
        self.auditor = EpochAuditor(self)
        self.gate_law = ""
        self.diagnostics = Diagnostics(self)
        self._copied = NO_BATCHES

    def setup(self, watch: BuildWatch = lambda stage: contextlib.nullcontext()) -> None:
        """Build and prepare the stages; on a GPU the peak of memory counts from here.

        ``watch`` wraps what is built for ``sampler``, ``features`` and ``training``.
        """
        recipe, job = self.recipe.of_rank(0), self.job
        job.peak.begin(job.device)
        self.schedule = recipe.schedule.build(job)
        if self.schedule.peers is not None:
            job = self.job = replace(job, peers=self.schedule.peers)
        self.recorder.reads_blocks = recipe.sampler.name not in registry.OURS[registry.SAMPLER]
        keep = self.recorder.record
        self.stages = stage_setup.build_stages(recipe, job, self.until, self.order, keep, watch)
        with watch("training"):
            stage_setup.build_training(self)
        counts = stage_setup.prepare_stages(self, watch)
        self.counts.clear()
        self.schedule.start(self.stages)
        self.setup_counts = [*counts, *self.schedule.setup_counts]

    def seeds(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches of seeds; in the graph's dtype if only sampled."""
        seeds = self.order.batches(epoch, self.job.device)
        if self.until is Until.SAMPLE:
            seeds = [s.to(self.graph.indices.dtype) for s in seeds]
        return seeds

    def run_epoch(self, epoch: int, timeline: Timeline) -> None:
        """Run the epoch by the recipe's schedule, batch reordering included."""
        self._run(epoch, self.seeds(epoch), timeline)

    def copy_batches(self, choice: BatchChoice) -> None:
        """Copy these batches of the next epoch aside for its audit."""
        self._copied = choice
        self.schedule.rank_audit.copy_batches(choice)

    def _run(self, epoch: int, seeds: list[Tensor], timeline: Timeline) -> None:
        self.recorder.begin(self._copied, len(seeds))
        if self.until is Until.SAMPLE:
            timeline.settle()
        self.stages.sampler.expect(epoch, seeds)
        if self.stages.store is not None:
            self.stages.store.forget()
        if self.trainer is not None:
            self.trainer.epoch = epoch
        self.schedule.epoch(epoch, seeds, self.stages, timeline, self.until)
        self.copy_batches(NO_BATCHES)

    def run_unmeasured(
        self, epoch: int, max_batches: int | None = None, timeline: Timeline | None = None
    ) -> int:
        """Run an epoch, or its first batches, without a record of it.

        ``timeline`` gets the spans. Returns the peak memory of the schedule's other processes, in
        bytes.
        """
        timeline = timeline or Timeline.on(self.cell.device)
        timeline.start()
        self._run(epoch, self.seeds(epoch)[:max_batches], timeline)
        timeline.stop()
        self.recorder.clear()
        self._forget_steps()
        self.counts.clear()
        return self.schedule.peak_bytes

    def _forget_steps(self) -> None:
        """Drop losses and parameter movement that belong to no audited epoch."""
        if self.trainer is not None:
            self.trainer.take_losses()
            self.trainer.take_movement()

    def foresee(self, epochs: Sequence[int]) -> None:
        """Fill the cache of an oracle for the epochs that are timed next."""
        assert self.stages.store is not None
        self.stages.store.foresee(self.stages.footprint, epochs)
        self.schedule.foresee(epochs)
        self.counts.clear()

    def check(self) -> CheckReport:
        """Run the correctness gate; an oracle is given the epoch first, as before a timed one."""
        if is_oracle(self):
            self.foresee((0,))
        with self.job.peak.apart():
            report = checks.check(self)
            if report.ok:
                seeds = gate_seeds(self.order.batches(0, self.job.device))
                report.reason = self.schedule.rank_audit.compare(0, seeds)
                report.ok = not report.reason
                if sizes := self.schedule.rank_audit.sampled_per_seed(self.stages.sampler, seeds):
                    report.edges_per_seed, report.nodes_per_seed = sizes
        report.dtype = self.recipe.dtype if self.until >= Until.MEMORY_IO else ""
        aggregate = self.recipe.aggregate
        if report.deterministic and aggregate and aggregate.adds_by_chance(self.cell.device):
            report.deterministic = False  # equal bits were a coincidence
        self.counts.clear()
        return report

    def glance(self) -> tuple[str, str]:
        """Check the gate's first batch; returns its digest and what is wrong, or ""."""
        with self.job.peak.apart():
            digest, fault = checks.check_first_batch(self)
        self.counts.clear()
        return digest, fault

    def recheck(self, epoch: int, brief: bool = False) -> str:
        """Run the gate's checks again on the seeds of ``epoch``; returns what is wrong, or ""."""
        seeds = gate_seeds(self.order.batches(epoch))[: 1 if brief else None]
        with self.job.peak.apart():
            fault = checks.recheck(self, epoch, brief)
            fault = fault or self.schedule.rank_audit.compare(epoch, seeds)
        self.counts.clear()
        return fault

    def audit(self, epoch: int) -> EpochReport:
        """Check and count the epoch that ran last."""
        with self.job.peak.apart():
            return self._audit_epoch(epoch)

    def _audit_epoch(self, epoch: int) -> EpochReport:
        return self.auditor.audit(epoch)

    def verify(self, epoch: int, timeline: Timeline) -> EpochReport:
        """Run an epoch and check every batch in the hook that records timed batches, too.

        The model is restored afterwards: compared systems train on the epochs they share only.
        """
        saved = None if self.trainer is None else self.trainer.kept()
        every_batch = verifier(self.job, self.recipe.sampler, self.stages.sampler)
        self.recorder.verifier = every_batch
        with self.job.peak.apart():
            self.schedule.rank_audit.record_edges(True)
            try:
                self.run_epoch(epoch, timeline)
            finally:
                self.recorder.verifier = None
                self.schedule.rank_audit.record_edges(False)
            report = self._audit_epoch(epoch)
            if self.trainer is not None and saved is not None:
                self.trainer.restore(saved)
        reason = every_batch.fault or report.reason
        digest, merged = every_batch.digest, self.auditor.merged
        if merged is not None:
            digest = digest_of(merged.drawn.values())
            digest = digest or joined([*every_batch.digests, *merged.seen])
        return replace(report, ok=not reason, reason=reason, digest=digest)

    def probe(self, epochs: Sequence[int]) -> tuple[dict[str, list[float]], str]:
        """Run the phases of these epochs one by one, on the harness's clock.

        Returns the seconds of each phase by batch, and what is wrong with a batch, or "".
        """
        times, fault = phases.probe_system(self, epochs)
        self._forget_steps()
        self.counts.clear()
        return times, fault

    def evaluate(self) -> dict[str, float]:
        """Return accuracies of the model, by the evaluator that all systems share."""
        assert self.trainer is not None
        with self.job.peak.apart():
            return self.evaluator.run(self.trainer)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Computes accuracies on validation and test nodes."""
        return Evaluator(self.job)

    def profile(self, epoch: int) -> ProfileTables:
        """Profile an epoch, apart from timing (``Diagnostics.profile``)."""
        return self.diagnostics.profile(epoch)

    def memory(self, epoch: int) -> list[FactRow]:
        """Set the system up and measure the memory of each component."""
        return self.diagnostics.memory(SystemRunner(self.cell, self.graph, self.recipe), epoch)

    def close(self) -> None:
        """End the schedule, then free sampler and feature store."""
        if hasattr(self, "schedule"):
            self.schedule.close()
        if hasattr(self, "stages"):
            self.stages.sampler.close()
            if self.stages.store is not None:
                self.stages.store.close()
