"""The gate of a composition: what it must get right before it is timed, and again afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from random import Random
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Hop
from gnnbench.models import gradient_check
from gnnbench.pipelines.order import Order
from gnnbench.pipelines.padded import PaddedStep
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.systems.runtime.determinism import same_bits
from gnnbench.systems.runtime.recipe import Recipe
from gnnbench.systems.runtime.stochastic import law_fault, tested
from gnnbench.systems.runtime.system import CheckReport
from gnnbench.systems.runtime.trainer import Trainer
from gnnbench.validation import gate
from gnnbench.validation.hops import digest
from gnnbench.validation.law import WALK

# Of each batch that is looked at after the gate: every edge of 8000 seeds takes seconds, and a
# verification epoch looks at batches of full size.
GLANCE_SEEDS = 1024
# By how much loss and gradients of a timed step may differ from those of the layers that the gate
# looked at: sums are in another order, and now and then a ReLU opens by it.
STEP_ERROR = 0.01
# Held against the reference then: a reservoir's goes through the whole rows of hubs in Python.
REFERENCE_SEEDS = 16


class Gated(Protocol):
    """What the gate looks at of a composition."""

    job: Job
    recipe: Recipe
    order: Order
    stages: Stages
    trainer: Trainer | None


def check(system: Gated) -> CheckReport:
    """Structure of consecutive batches; feature bits; forward and backward on a fixed block.

    And whether a step has the same bits again, which is told and no fault.

    An epoch that ends before features or compute leaves out what belongs to them.
    """
    sampler, job = system.stages.sampler, system.job
    cell, graph = job.cell, job.graph
    store, trainer = system.stages.store, system.trainer
    drawn = (sampler.pick, sampler.frontier, sampler.law.name)
    told = ("", "", "") if cell.gathers else drawn
    report = CheckReport(True, "", *told, "", 0.0, 0.0, {"batches": 0}, verified=True)
    all_seeds = gate.gate_seeds(system.order.batches(0))
    report.details["order_window"] = system.order.window
    report.details["batches_an_update"] = plan_of(system.recipe.schedule).batches_per_update
    all_hops: list[list[Hop]] = []
    try:
        batches = [sampler.checked(seeds, nth) for nth, seeds in enumerate(all_seeds)]
        sizes = [batch.sizes() for batch in batches]
        edges = [sum(n for _, n in s.hops) for s in sizes]
        report.details["edges_by_call"] = edges
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            looks = [
                threads.submit(_look, system, *each)
                for each in zip(all_seeds, batches, strict=True)
            ]
        for nth, look in enumerate(looks):
            try:
                all_hops.append(look.result())
            except gate.Fault as fault:
                counts = ", ".join(map(str, edges))
                raise gate.Fault(
                    f"call {nth + 1} of the sampler, {fault}; edges by call: {counts}"
                ) from None
            report.details["batches"] = nth + 1
        _check_law(system, all_seeds)
        if store is not None:
            _check_rows(system, batches)
        sampler.check(all_seeds[0])
        if trainer is not None:
            fixed = gradient_check.FixedBlock.of(
                graph, cell.model, cell.hidden, cell.fanouts, cell.seed, all_seeds[0],
                visits=sampler.law.name == WALK,
            )  # fmt: skip
            report.details["forward_error"] = gradient_check.check_forward(
                graph, fixed, trainer.forward
            )
            error, compared = gradient_check.check_backward(fixed, trainer.gradients)
            report.details["backward_error"] = error
            report.details["weight_gradients"] = compared
            report.details["step_error"] = _check_step(system, batches[0])
            del batches[1:]  # a step needs memory as well
            report.deterministic = same_bits(system.stages, trainer, batches[0])
    except gate.Fault as fault:
        report.ok, report.reason = False, str(fault)
        return report
    finally:
        sampler.gate_is_over()
    count = sum(seeds.numel() for seeds in all_seeds)
    report.details["seeds"] = count
    report.edges_per_seed = sum(edges) / count
    report.nodes_per_seed = sum(s.num_nodes for s in sizes) / count
    # A foreign sampler draws edges of its own, but none where there are none to draw.
    report.digest = digest(all_hops) if cell.gathers else sampler.digest(all_hops)
    if sampler.exact and not report.digest:
        report.ok, report.reason = False, "it is to draw the reference's edges and shows no digest"
    return report


def _check_law(system: Gated, batches: Sequence[Tensor]) -> None:
    """Raise ``gate.Fault`` unless a sampler with random numbers of its own picks by its law."""
    sampler = system.stages.sampler
    if tested(system.recipe.sampler, sampler) and (
        fault := law_fault(system.job, sampler, batches)
    ):
        raise gate.Fault(fault)


def _check_rows(system: Gated, batches: Sequence[Batch]) -> None:
    """Raise ``gate.Fault`` unless the rows of all batches are the table's.

    Each is looked at as late as a schedule may use it: when as many are valid as it holds.
    """
    store, most = system.stages.store, system.job.held
    assert store is not None
    held: deque[tuple[Batch, Tensor]] = deque()

    def look(least: int) -> None:
        while len(held) > least:
            batch, rows = held.popleft()
            gate.check_features(system.job.graph, batch.input_nodes, rows)

    # As epochs load them, none of more batches than an epoch has, the last window alone a short
    # one; for so long that all of a buffer is written again, by chance, so that what is written
    # there then is something else. Copies: a window knows its batches by which object they are.
    an_epoch = len(system.order.batches(0))
    count = max(min(an_epoch, len(batches) + most + 2 * store.window) - len(batches), 0)
    further = [copy(batch) for batch in Random(count).choices(batches, k=count)]
    loaded = [*batches, *further]
    for start in range(0, len(loaded), an_epoch):
        epoch = loaded[start : start + an_epoch]
        store.forget()
        for nth, batch in enumerate(epoch):
            look(most - 1)
            held.append((batch, system.stages.load(epoch, nth)))
        look(0)


def _check_step(system: Gated, batch: Batch) -> float:
    """How far a padded step, as it is timed, is from one of the layers that the gate has looked at,
    in loss and gradients; 0 where none is padded. Raises ``gate.Fault`` beyond ``STEP_ERROR``."""
    trainer, timed, store = system.trainer, system.stages.trainer, system.stages.store
    if not isinstance(timed, PaddedStep):
        return 0.0
    assert trainer is not None and store is not None
    rows = store.load(batch)
    kept, found = trainer.kept(), []
    for one in (trainer, timed):  # of a model that no update has reached: means are of this step
        one.step(batch, rows)
        found.append((trainer.losses.pop(), trainer.direction()))
        trainer.restore(kept)
    errors = [
        float((own - right).norm() / right.norm().clamp(min=1e-30))
        for right, own in zip(*found, strict=True)
    ]
    unlabelled = bool(found[0][0].isnan())
    if not unlabelled and not all(error <= STEP_ERROR for error in errors):
        raise gate.Fault(
            "a training step as it is timed is off by"
            f" {errors[0]:.2g} of the loss and {errors[1]:.2g} of the gradients"
        )
    return 0.0 if unlabelled else max(errors)


def glance(system: Gated) -> tuple[str, str]:
    """Digest of the gate's first seeds' edges, which are checked as the rows are; what is wrong."""
    sampler = system.stages.sampler
    try:
        seeds = gate.gate_seeds(system.order.batches(0))[0][:GLANCE_SEEDS]
        return sampler.digest([_right(system, seeds, 0)]), ""
    except gate.Fault as fault:
        return "", str(fault)
    finally:
        sampler.gate_is_over()


def _look(system: Gated, seeds: Tensor, batch: Batch) -> list[Hop]:
    """The hops of a batch, found right. Raises ``gate.Fault``."""
    hops = batch.hops()
    check_structure(system, seeds, hops)
    gate.check_inputs(seeds, hops, batch.input_nodes)
    return hops


def _right(system: Gated, seeds: Tensor, number: int) -> list[Hop]:
    """Draw a batch; its hops, found right as its rows are. Raises ``gate.Fault``."""
    store = system.stages.store
    batch = system.stages.sampler.checked(seeds, number)
    hops = _look(system, seeds, batch)
    if store is not None:
        gate.check_features(system.job.graph, batch.input_nodes, store.load(batch))
    return hops


def recheck(system: Gated, epoch: int, brief: bool = False) -> str:
    """Structure, law and feature bits of fresh seeds: a cache of old answers cannot know them."""
    sampler = system.stages.sampler
    try:
        all_seeds = gate.gate_seeds(system.order.batches(epoch))
        for nth, seeds in enumerate(all_seeds[:1] if brief else all_seeds):
            _right(system, seeds[:GLANCE_SEEDS], nth)
        _check_law(system, [seeds[:GLANCE_SEEDS] for seeds in all_seeds[: 1 if brief else None]])
        if brief:
            return ""
        sampler.check(all_seeds[-1][:REFERENCE_SEEDS])
    except gate.Fault as fault:
        return str(fault)
    finally:
        sampler.gate_is_over()
    return ""


def check_structure(system: Gated, seeds: Tensor, hops: list[Hop]) -> None:
    """Raise ``gate.Fault`` unless the hops obey the sampler's law."""
    sampler, job = system.stages.sampler, system.job
    gate.check_structure(
        job.graph, job.cell.fanouts, sampler.frontier, seeds, hops, sampler.law
    )  # fmt: skip
