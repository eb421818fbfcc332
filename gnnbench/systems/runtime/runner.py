"""A recipe at work: built from its stages, gated, run epoch by epoch and audited."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Sizes
from gnnbench.datasets.graph import Graph
from gnnbench.features.policies.policy import PROBED
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.cuda_graph import training_step
from gnnbench.pipelines.padded import no_buffers
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.pipelines.training_step import GRAPH
from gnnbench.systems.runtime import checks as gates
from gnnbench.systems.runtime.cache_curves import look_at_curves
from gnnbench.systems.runtime.copy_ceiling import Copies
from gnnbench.systems.runtime.epoch_audit import as_drawn, mean_loss, misordered, recount, reread
from gnnbench.systems.runtime.evaluate import Evaluator
from gnnbench.systems.runtime.phases import probe
from gnnbench.systems.runtime.recipe import Recipe, from_plain
from gnnbench.systems.runtime.stochastic import verifier
from gnnbench.systems.runtime.system import CheckReport, EpochReport, System
from gnnbench.systems.runtime.trainer import Trainer
from gnnbench.systems.runtime.verification import Verifier, digest_of, joined
from gnnbench.validation.gate import gate_seeds

if TYPE_CHECKING:
    from gnnbench.distributed.merge import MergedEpoch
    from gnnbench.roofline.bench import Bench

FACT = ("stage", "name", "value", "where")
Watch = Callable[[str], contextlib.AbstractContextManager[None]]  # of what is built for a stage
FIRST_BATCHES = 8  # that are looked at, at least, for what is to be known before the first epoch
WORTH_LEARNING = 1e-3  # loss; a single class has nothing to learn


class SystemRunner(System):
    """The one system behind all recipes: one epoch loop, one gate, one audit.

    On a GPU labels and model live there. Where the device's memory is exhausted,
    ``torch.OutOfMemoryError`` or a ``RuntimeError`` with "CUDA out of memory" in its text is
    raised, by any method.
    """

    stages: Stages
    schedule: Schedule
    trainer: Trainer | None = None

    def __init__(self, cell: Cell, graph: Graph, recipe: Recipe | None = None) -> None:
        super().__init__(cell, graph)
        self.recipe = recipe or from_plain(cell.system, cell.recipe)
        self.until = cell.goes_until
        self.counts = Counts()
        in_flight = plan_of(self.recipe.schedule).outputs_in_flight
        self.job = Job(
            cell, graph, self.counts, in_flight, stuck=lambda e: self.stuck(e)
        )
        self.order = self.recipe.order.build(self.job)
        self._kept: list[tuple[int, Sizes]] = []
        self._last: tuple[Batch, Tensor] | None = None
        self._verifier: Verifier | None = None
        self._united: MergedEpoch | None = None  # the last epoch of all ranks, where there are several

    def setup(self, watch: Watch = lambda stage: contextlib.nullcontext()) -> None:
        """Build the stages; on a GPU the peak of memory counts from here.

        ``watch`` is around what is built: ``sampler``, ``features``, ``training``.
        """
        recipe, job, until = self.recipe.of_rank(0), self.job, self.until
        job.peak.begin(job.device)
        self.schedule = recipe.schedule.build(job)
        if self.schedule.peers is not None:
            job = self.job = replace(job, peers=self.schedule.peers)
        with watch("sampler"):
            sampler = recipe.sampler.stage_of(job)
        self.stages = Stages(sampler, None, None, self._keep, self.order)
        if until >= Until.MEMORY_IO:
            assert recipe.features is not None
            with watch("features"):
                self.stages.store = recipe.features.build(job)
            if not hasattr(self.stages.store, "load"):
                kind = type(self.stages.store).__name__
                raise UsageError(
                    f"features '{recipe.features.name}' must build a store, not {kind}"
                )
        with watch("training"):
            self._begin_training()
        if (store := self.stages.store) is not None:
            with watch("features"):
                spent = store.fit(self._peak_of_an_epoch) | store.prepare(self.stages.footprint)
            self.setup_counts = [["features", m.name, "", value] for m, value in spent.items()]
        if self.stages.trainer is not None:
            with watch("training"):
                spent = self.stages.trainer.prepare(self._first_batches())
            told = [["schedule", m.name, "", value] for m, value in spent.items()]
            self.setup_counts = [*self.setup_counts, *told]
        self.counts.clear()
        self.schedule.start(self.stages)
        self.setup_counts = [*self.setup_counts, *self.schedule.setup_counts]

    def _first_batches(self) -> Iterator[Batch]:
        """A few batches of an epoch that no harness numbers."""
        seeds = self.order.batches(PROBED, self.job.device)[:FIRST_BATCHES]
        yield from (self.stages.sampler.sample(s, PROBED, n) for n, s in enumerate(seeds))

    def _begin_training(self) -> None:
        """The model as it is at first."""
        if self.until >= Until.COMPUTE:
            assert self.recipe.aggregate is not None
            step = self.recipe.schedule.step
            self.trainer = Trainer(
                self.job, self.recipe.aggregate.build_for(self.job), step == GRAPH
            )
            store = self.stages.store
            assert store is not None
            plan = plan_of(self.recipe.schedule)
            reserve = store.reserve if plan.loads_in_trainer else no_buffers
            self.stages.trainer = training_step(step, self.job, self.trainer, reserve)

    def _peak_of_an_epoch(self) -> int:
        """Run an epoch that no harness numbers, as the stages stand; its peak of device memory.

        It is cut where nothing more piles up, unless batches of all neighbours are drawn: of those
        some are many times as large as others. The model is made anew: it has not seen that epoch.
        """
        device, most = self.job.device, plan_of(self.recipe.schedule).steady_after(self.stages.window)
        if any(fanout < 0 for fanout in self.cell.fanouts):
            most = None
        with self.job.peak.apart():
            torch.cuda.reset_peak_memory_stats(device)
            self.run_unmeasured(PROBED, most and max(most, FIRST_BATCHES))
            torch.cuda.synchronize(device)
            self.trainer = self.stages.trainer = None
            peak = int(torch.cuda.max_memory_allocated(device))
        self._begin_training()
        return peak

    def run_unmeasured(self, epoch: int, most: int | None = None) -> int:
        """Run an epoch that nobody times and nobody audits, ``most`` batches of it at most; the
        schedule's peak elsewhere."""
        timeline = Timeline.on(self.cell.device)
        timeline.start()
        self._run(epoch, self.seeds(epoch)[:most], timeline)
        timeline.stop()
        self._kept, self._last = [], None
        self._forget_steps()
        self.counts.clear()
        return self.schedule.peak_bytes

    def _forget_steps(self) -> None:
        """Training steps that no audit asks for leave nothing to the next one."""
        if self.trainer is not None:
            self.trainer.take_losses()
            self.trainer.moved()

    def memory(self, epoch: int) -> list[dict[str, Any]]:
        """Set up, and tell the memory by what holds it (``gnnbench.systems.runtime.memory``):
        facts."""
        from gnnbench.systems.runtime.memory import look_at_memory

        facts = look_at_memory(self, SystemRunner(self.cell, self.graph, self.recipe), epoch)
        return [dict(zip(FACT, fact, strict=True)) for fact in facts]

    def kernels(self, epoch: int) -> list[dict[str, Any]]:
        """Rows of ``kernels.csv``: what the GPU runs in an epoch as it is timed, once warm."""
        from gnnbench.measure.kernels import kernels_of

        for before in (epoch + 2, epoch + 1):  # steps are captured, buffers have their sizes
            self._unseen(before)
        return kernels_of(lambda: self._unseen(epoch), len(self.seeds(epoch)), self.job.device)

    def _unseen(self, epoch: int) -> None:
        if self.recipe.features is not None and self.recipe.features.foresees:
            self.foresee(epoch)
        self.run_unmeasured(epoch)

    def _keep(self, batch: Batch, rows: Tensor | None) -> None:
        if self._verifier is not None:
            self._verifier.look(batch, rows)
        self._kept.append((batch.number, batch.sizes()))
        if rows is not None:
            self._last = batch, rows

    def check(self) -> CheckReport:
        """The gate; an oracle is told its epoch first, as before one that is timed."""
        if self.recipe.features is not None and self.recipe.features.foresees:
            self.foresee(0)
        with self.job.peak.apart():
            report = gates.check(self)
            if report.ok:
                seeds = gate_seeds(self.order.batches(0, self.job.device))
                report.reason = self.schedule.rank_audit.compare(0, seeds)
                report.ok = not report.reason
                audit = self.schedule.rank_audit
                if drawn := audit.sampled_per_seed(self.stages.sampler, seeds):
                    report.edges_per_seed, report.nodes_per_seed = drawn
        report.dtype = self.recipe.dtype if self.until >= Until.MEMORY_IO else ""
        aggregate = self.recipe.aggregate
        if report.deterministic and aggregate and self.cell.device in aggregate.by_chance:
            report.deterministic = False  # it was luck
        self.counts.clear()
        return report

    def glance(self) -> tuple[str, str]:
        """The gate's first batch."""
        with self.job.peak.apart():
            found = gates.glance(self)
        self.counts.clear()
        return found

    def recheck(self, epoch: int, brief: bool = False) -> str:
        """The gate again, on fresh seeds."""
        few = gate_seeds(self.order.batches(epoch))[: 1 if brief else None]
        with self.job.peak.apart():
            fault = gates.recheck(self, epoch, brief)
            fault = fault or self.schedule.rank_audit.compare(epoch, few)
        self.counts.clear()
        return fault

    @cached_property
    def _train(self) -> Tensor:
        """The training nodes, sorted."""
        train = self.graph.train_idx  # of the store's graphs sorted already
        return train if bool((train[1:] > train[:-1]).all()) else train.sort().values

    def run_epoch(self, epoch: int, timeline: Timeline) -> None:
        """The schedule's epoch, the batch order included."""
        self._run(epoch, self.seeds(epoch), timeline)

    def _run(self, epoch: int, seeds: list[Tensor], timeline: Timeline) -> None:
        if self.until is Until.SAMPLE:
            timeline.settle()
        self.stages.sampler.expect(epoch, seeds)
        if self.stages.store is not None:
            self.stages.store.forget()
        self.schedule.epoch(epoch, seeds, self.stages, timeline, self.until)

    def seeds(self, epoch: int) -> list[Tensor]:
        """The epoch's batches; one that is only drawn begins with ids of the graph's type."""
        seeds = self.order.batches(epoch, self.job.device)
        if self.until is Until.SAMPLE:
            seeds = [s.to(self.graph.indices.dtype) for s in seeds]
        return seeds

    def foresee(self, epoch: int) -> None:
        """Fill the cache of an oracle for the epoch that is timed next."""
        assert self.stages.store is not None
        self.stages.store.foresee(self.stages.footprint, epoch)
        self.schedule.foresee(epoch)
        self.counts.clear()

    def verify(self, epoch: int, timeline: Timeline) -> EpochReport:
        """An epoch whose every batch is looked at by the hook that keeps the timed ones too.

        The model is then as it was: those of a comparison learn from the epochs that they share.
        """
        kept = None if self.trainer is None else self.trainer.kept()
        sampler = self.stages.sampler
        looking = self._verifier = verifier(self.job, self.recipe.sampler, sampler)
        with self.job.peak.apart():
            self.schedule.rank_audit.record_edges(True)
            try:
                self.run_epoch(epoch, timeline)
            finally:
                self._verifier = None
                self.schedule.rank_audit.record_edges(False)
            report = self._audited(epoch)
            if self.trainer is not None and kept is not None:
                self.trainer.restore(kept)
        reason = looking.fault or report.reason
        digest = looking.digest
        if self._united is not None:
            whole = self._united
            digest = digest_of(whole.drawn.values()) or joined([*looking.seen, *whole.seen])
        return replace(report, ok=not reason, reason=reason, digest=digest)

    def probe(self, epochs: Sequence[int]) -> tuple[dict[str, list[float]], str]:
        """Seconds of each phase of batches by itself, on the harness's clock."""
        device, sampler = self.job.device, self.stages.sampler
        faults: list[str] = []

        def look(batch: Batch, seeds: Tensor) -> None:
            law = sampler.law.on(device)
            faults.append(recount([batch.sizes()], [seeds], law, self.cell.fanouts))

        oracle = self.recipe.features is not None and self.recipe.features.foresees
        alone: dict[str, list[float]] = {}
        for epoch in epochs:
            if oracle and self.stages.store is not None:  # else it would miss more than when timed
                self.foresee(epoch)
            todo = [(epoch, self.seeds(epoch))]
            found = probe(self.stages, todo, device, self.until.word, look)
            alone = {phase: alone.get(phase, []) + times for phase, times in found.items()}
        # A stage may call itself anything: the cell says whose it is, if it has a recipe.
        named = self.cell.recipe.get(registry.SAMPLER, {"name": sampler.name})["name"]
        if sampler.ahead and named in registry.OURS[registry.SAMPLER]:
            alone.pop("sample")  # alone nothing is drawn ahead: it takes longer than it waits
        for phase in self.recipe.leaner(
            0
        ):  # of leaner stages than an epoch goes by: it may take longer
            alone.pop(phase, None)
        self._forget_steps()
        self.counts.clear()
        return alone, next((f for f in faults if f), "")

    def audit(self, epoch: int) -> EpochReport:
        """Counts of the last epoch, and whether what was timed was right."""
        with self.job.peak.apart():
            return self._audited(epoch)

    def _audited(self, epoch: int) -> EpochReport:
        run, self._kept = self._kept, []
        sampler, trainer = self.stages.sampler, self.trainer
        seeds = self.order.batches(epoch, self.job.device)
        reason = misordered(seeds, self._train)
        window = self.order.window if self.until > Until.SAMPLE else 1
        kept, fault = as_drawn(run, window)
        reason = reason or fault
        parts = self.schedule.rank_audit.own_seeds(seeds)
        reason = reason or recount(kept, parts, sampler.law.on(self.job.device), self.cell.fanouts)
        if self._last is not None:
            reason = reason or reread(self.graph, *self._last)
            self._last = None
        loss = norm = None
        moved: list[float] = []
        if trainer is not None:
            losses, moved, norm = trainer.take_losses(), trainer.moved(), trainer.norm()
            loss = mean_loss(losses, seeds, self.graph.labels)
            due = self.schedule.rank_audit.trained_batches(len(seeds))
            if not reason and len(losses) != due:
                reason = f"the model was trained on {len(losses)} batches of {due}"
            if not reason and (loss or 0.0) > WORTH_LEARNING and not any(moved):
                reason = "the epoch changed no parameter of the model: nothing was trained"
        batches, drawn_for = len(kept), sum(s.seeds.numel() for s in kept)
        edges, nodes = sum(s.num_edges for s in kept), sum(s.num_nodes for s in kept)
        whole = self._united = self.schedule.rank_audit.merge(epoch, reason)
        if whole is not None:
            batches, drawn_for, reason = whole.batches, whole.seeds, whole.reason
            edges, nodes = whole.edges, whole.nodes
            if whole.losses is not None:
                loss = mean_loss(whole.losses, seeds, self.graph.labels)
        counts = self.counts.rows()
        self.counts.clear()
        return EpochReport(
            epoch=epoch,
            batches=batches,
            seeds=drawn_for,
            sampled_edges=edges,
            unique_nodes=nodes,
            loss=loss,
            counts=counts,
            peak_alloc_bytes=self._peak_bytes() + self.schedule.peak_bytes,
            ok=not reason,
            reason=reason,
            param_norm=norm,
            param_moved=moved,
        )

    def evaluate(self) -> dict[str, float]:
        """Accuracies of the model by the evaluator that all systems have in common."""
        assert self.trainer is not None
        with self.job.peak.apart():
            return self._evaluator.run(self.trainer)

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.job)

    def copies(self, served: Mapping[str, int], batches: int) -> list[list[Any]]:
        """What copying took of as many bytes as an epoch served, batch by batch; rows of counts."""
        with self.job.peak.apart():
            return self._copies.counts(served, batches)

    def roofline(self, epoch: int) -> tuple[list[dict[str, Any]], str]:
        """The kernels of an epoch's first batch and the machine's ceilings, each by itself.

        Records (``gnnbench.roofline.bench``), and what is wrong with a result, or "".
        """
        with self.job.peak.apart():
            return self._bench.run(self.seeds(epoch)[0], epoch)

    def counters(self, epoch: int, program: Sequence[str]) -> list[dict[str, Any]]:
        """Hardware counters of such kernels; ``program``: a command that calls ``run_marked``."""
        found = self._bench.counters(self.seeds(epoch)[0], epoch, program)
        self.counts.clear()
        return found

    def run_marked(self, epoch: int) -> None:
        """Run such kernels for a GPU's profiler."""
        self._bench.run_marked(self.seeds(epoch)[0], epoch)

    @cached_property
    def _bench(self) -> Bench:
        from gnnbench.roofline.bench import Bench

        assert self.trainer is not None
        return Bench(self.job, self.stages, self.trainer.framework)

    @cached_property
    def _copies(self) -> Copies:
        return Copies(self.job)

    def _peak_bytes(self) -> int:
        """Bytes of the device's memory, without those of other processes."""
        if self.job.device.type == "cuda":
            return self.stages.peak_bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def profile(self, epoch: int) -> dict[str, list[dict[str, Any]]]:
        """What was not timed: stages by hop, memory and kernels of a cell that only samples; of one
        that ends with memory IO a cache's curves, and the overlap of its batches."""
        if self.until is Until.COMPUTE:
            return {}
        if self.until is Until.SAMPLE:
            from gnnbench.systems.runtime.profile import profile_samples

            return profile_samples(self.job, self.stages.sampler, self.order, epoch)
        store = self.stages.store
        assert store is not None
        curves, facts = look_at_curves(store, self.stages.footprint, epoch, self.graph)
        if store.overlaps:
            from gnnbench.systems.runtime.batch_overlap import look_at_overlap

            facts += look_at_overlap(self.stages, self.seeds(epoch), epoch)
        told = [dict(zip(FACT, (*fact, ""), strict=True)) for fact in facts]
        found = {"facts": told, "curves": curves}
        self.counts.clear()
        return {table: rows for table, rows in found.items() if rows}

    def close(self) -> None:
        """Give back the memory of the sampler and of the feature store, and end the schedule."""
        if hasattr(self, "schedule"):
            self.schedule.close()
        if hasattr(self, "stages"):
            self.stages.sampler.close()
            if self.stages.store is not None:
                self.stages.store.close()
