"""Builds the stages of a recipe and prepares them before the first epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.errors import UsageError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.policies.policy import PROBED
from gnnbench.pipelines.cuda_graph import training_step
from gnnbench.pipelines.order import Order
from gnnbench.pipelines.padded import no_buffers
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.pipelines.training_step import GRAPH
from gnnbench.systems.runtime.built_system import BuildWatch, BuiltSystem
from gnnbench.systems.runtime.recipe import Recipe
from gnnbench.systems.runtime.trainer import ModelTrainer

FIRST_BATCHES = 8  # sampled at least, for what is measured before the first epoch
CountRow = list[str | float]  # stage, measure, where, value


def build_stages(
    recipe: Recipe,
    job: Job,
    until: Until,
    order: Order,
    keep: Callable[[Batch, Tensor | None], None],
    watch: BuildWatch,
) -> Stages:
    """Build the sampler and, where epochs load features, the feature store.

    Raises ``UsageError`` where a third party's features build no store.
    """
    with watch("sampler"):
        sampler = recipe.sampler.stage_of(job)
    stages = Stages(sampler, None, None, keep, order)
    if until >= Until.MEMORY_IO:
        assert recipe.features is not None
        with watch("features"):
            stages.store = recipe.features.build(job)
        if not hasattr(stages.store, "load"):
            kind = type(stages.store).__name__
            raise UsageError(f"features '{recipe.features.name}' must build a store, not {kind}")
    return stages


def build_training(system: BuiltSystem) -> None:
    """Build the model with its initial weights, and its training step."""
    if system.until < Until.COMPUTE:
        return
    recipe, store = system.recipe, system.stages.store
    assert recipe.aggregate is not None and store is not None
    step = recipe.schedule.step
    framework = recipe.aggregate.build_for(system.job)
    system.trainer = ModelTrainer(system.job, framework, capturable=step == GRAPH)
    reserve = store.reserve if plan_of(recipe.schedule).loads_in_trainer else no_buffers
    system.stages.trainer = training_step(step, system.job, system.trainer, reserve)


def prepare_stages(system: BuiltSystem, watch: BuildWatch) -> list[CountRow]:
    """Fill caches and choose the shape of padded steps.

    Returns what this took: rows of (stage, measure, where, value).
    """
    counts: list[CountRow] = []
    stages = system.stages
    if stages.store is not None:
        with watch("features"):
            counts += prepare_store(system)
    if stages.trainer is not None:
        with watch("training"):
            spent = stages.trainer.prepare(_first_batches(system))
        counts += [["schedule", measure.name, "", value] for measure, value in spent.items()]
    return counts


def prepare_store(system: BuiltSystem) -> list[CountRow]:
    """Fit the feature store into memory and fill it; returns what this took."""
    store = system.stages.store
    assert store is not None
    spent = store.fit(lambda: epoch_peak_bytes(system)) | store.prepare(system.stages.footprint)
    return [["features", measure.name, "", value] for measure, value in spent.items()]


def epoch_peak_bytes(system: BuiltSystem) -> int:
    """Measure the peak of device memory in an epoch with the stages as they are now, in bytes.

    The epoch stops once memory has reached steady state. With fanout -1 it runs to its end, because
    some batches are then many times as large as others. The model is rebuilt afterwards. Of several
    ranks each one measures alone, by the schedule that its plan names.
    """
    device, schedule = system.job.device, system.schedule
    alone = plan_of(system.recipe.schedule).alone()
    if alone is not system.recipe.schedule:
        system.schedule = alone.build(system.job)
    max_batches = plan_of(alone).steady_after(system.stages.window)
    if max_batches is not None:
        max_batches = max(max_batches, FIRST_BATCHES)
    if any(fanout < 0 for fanout in system.job.cell.fanouts):
        max_batches = None
    try:
        with system.job.peak.apart():
            torch.cuda.reset_peak_memory_stats(device)
            system.run_unmeasured(PROBED, max_batches)
            torch.cuda.synchronize(device)
            system.trainer = system.stages.trainer = None
            peak = int(torch.cuda.max_memory_allocated(device))
    finally:
        system.schedule = schedule  # it ends the other ranks, whatever failed
    build_training(system)
    return peak


def _first_batches(system: BuiltSystem) -> Iterator[Batch]:
    """Sample a few batches of an epoch that is never timed."""
    seeds = system.order.batches(PROBED, system.job.device)[:FIRST_BATCHES]
    yield from (system.stages.sampler.sample(s, PROBED, n) for n, s in enumerate(seeds))
