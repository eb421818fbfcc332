"""The gate of a system that executes a recipe: checks before timing, and again afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from random import Random

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, Hop
from gnnbench.core.precision import FLOAT32, UNIT_ROUNDOFF
from gnnbench.models import gradient_check
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import layer_dims, make_weights
from gnnbench.pipelines.padded import PaddedStep
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.systems.runtime.built_system import BuiltSystem
from gnnbench.systems.runtime.determinism import is_deterministic
from gnnbench.systems.runtime.stochastic import law_fault, picks_are_tested
from gnnbench.systems.runtime.system import CheckReport
from gnnbench.systems.runtime.trainer_gradients import layer_gradients
from gnnbench.validation import gate
from gnnbench.validation.hops import digest
from gnnbench.validation.law import WALK

# Seeds of each batch that is checked after the gate: every edge of 8000 seeds takes seconds, and
# the copied batches of timed epochs have full size.
RECHECK_SEEDS = 1024
# Seeds of the batch by which the layers are checked after timing: its reference is in float64.
LAYER_SEEDS = 256
# Largest relative difference of loss and gradients between a padded step and the layers that the
# gate checked: sums run in another order, which now and then opens a ReLU.
MAX_STEP_ERROR = 0.01
STEP_ROUNDOFFS = 32  # the same in unit roundoffs of the precision, where that is more
# Seeds compared with the reference in a recheck: its reservoir reads whole rows of hubs in Python.
REFERENCE_SEEDS = 16


def check(system: BuiltSystem) -> CheckReport:
    """Check structure, edges and rows of consecutive batches, and values and gradients of a block.

    Also finds out whether a repeated step gives the same bits, which is reported and no fault.
    Epochs that end before features or compute leave out what belongs to them.
    """
    sampler, job = system.stages.sampler, system.job
    report = CheckReport(True, "", "", "", "", "", 0.0, 0.0, {"batches": 0}, verified=True)
    if not job.cell.gathers:
        report.pick, report.frontier = sampler.pick, sampler.frontier
        report.law = sampler.law.name
    system.gate_law = system.gate_law or sampler.law.name
    all_seeds = gate.gate_seeds(system.order.batches(0))
    report.details["order_window"] = system.order.window
    report.details["batches_an_update"] = plan_of(system.recipe.schedule).batches_per_update
    try:
        batches = [sampler.checked(seeds, number) for number, seeds in enumerate(all_seeds)]
        sizes = [batch.sizes() for batch in batches]
        all_hops = _check_batches(system, all_seeds, batches, report)
        _check_law(system, all_seeds)
        if system.stages.store is not None:
            _check_rows(system, batches)
        sampler.check(all_seeds[0])
        if system.trainer is not None:
            _check_training(system, all_seeds[0], batches, report)
    except gate.Fault as fault:
        report.ok, report.reason = False, str(fault)
        return report
    finally:
        sampler.gate_is_over()
    num_seeds = sum(seeds.numel() for seeds in all_seeds)
    report.details["seeds"] = num_seeds
    report.edges_per_seed = sum(report.details["edges_by_call"]) / num_seeds
    report.nodes_per_seed = sum(s.num_nodes for s in sizes) / num_seeds
    # Where epochs only gather, the digest identifies the batches, whatever sampler drew them.
    report.digest = digest(all_hops) if job.cell.gathers else sampler.digest(all_hops)
    if sampler.exact and not report.digest:
        report.ok, report.reason = False, "it is to draw the reference's edges and shows no digest"
    return report


def _check_batches(
    system: BuiltSystem, all_seeds: Sequence[Tensor], batches: Sequence[Batch], report: CheckReport
) -> list[list[Hop]]:
    """Check all batches concurrently; returns their hops. Raises ``gate.Fault``."""
    edges = [sum(count for _, count in batch.sizes().hops) for batch in batches]
    report.details["edges_by_call"] = edges
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        checks = [
            threads.submit(_check_batch, system, seeds, batch)
            for seeds, batch in zip(all_seeds, batches, strict=True)
        ]
    all_hops: list[list[Hop]] = []
    for number, checked in enumerate(checks, start=1):
        try:
            all_hops.append(checked.result())
        except gate.Fault as fault:
            counts = ", ".join(map(str, edges))
            raise gate.Fault(
                f"call {number} of the sampler, {fault}; edges by call: {counts}"
            ) from None
        report.details["batches"] = number
    return all_hops


def _check_law(system: BuiltSystem, batches: Sequence[Tensor]) -> None:
    """Raise ``gate.Fault`` unless a sampler with custom random numbers picks by its law."""
    sampler = system.stages.sampler
    if picks_are_tested(system.recipe.sampler, sampler) and (
        fault := law_fault(system.job, sampler, batches)
    ):
        raise gate.Fault(fault)


def _check_rows(system: BuiltSystem, batches: Sequence[Batch]) -> None:
    """Raise ``gate.Fault`` unless the rows of all batches are the table's.

    Each result is checked as late as a schedule may use it: while the most allowed are in flight.
    """
    store, max_in_flight = system.stages.store, system.job.max_in_flight
    assert store is not None
    in_flight: deque[tuple[Batch, Tensor]] = deque()

    def check_oldest(remaining: int) -> None:
        while len(in_flight) > remaining:
            batch, rows = in_flight.popleft()
            gate.check_features(system.job.graph, batch.input_nodes, rows)

    # Load enough batches that every buffer is written again, with other rows. Group them in epochs
    # as real ones, in which only the last window may be short. Batches are copied because a window
    # identifies them as objects.
    epoch_size = len(system.order.batches(0))
    num_loaded = min(epoch_size, len(batches) + max_in_flight + 2 * store.window)
    count = max(num_loaded - len(batches), 0)
    repeated = [copy(batch) for batch in Random(count).choices(batches, k=count)]
    loaded = [*batches, *repeated]
    for start in range(0, len(loaded), epoch_size):
        epoch = loaded[start : start + epoch_size]
        store.forget()
        for index, batch in enumerate(epoch):
            check_oldest(max_in_flight - 1)
            in_flight.append((batch, system.stages.load(epoch, index)))
        check_oldest(0)


def _check_training(
    system: BuiltSystem, seeds: Tensor, batches: list[Batch], report: CheckReport
) -> None:
    """Compare the layers with the float64 reference, and a timed step with the layers.

    Drops all batches but the first, because a step needs memory, too. Raises ``gate.Fault``.
    """
    trainer = system.trainer
    assert trainer is not None
    details = report.details
    details["forward_error"], details["backward_error"], details["weight_gradients"] = (
        _check_layers(system, seeds)
    )
    details["step_error"] = _step_error(system, batches[0])
    if system.job.cell.precision != FLOAT32:
        details["precision"] = system.job.cell.precision
    del batches[1:]
    report.deterministic = is_deterministic(system.stages, trainer, batches[0])


def _check_layers(system: BuiltSystem, seeds: Tensor) -> tuple[float, float, int]:
    """Compare values and gradients on a fixed block with float64, with initial weights.

    Returns the errors of both, and the number of weights. Raises ``gate.Fault``.
    """
    cell, graph, trainer = system.job.cell, system.job.graph, system.trainer
    assert trainer is not None
    visits = system.stages.sampler.law.name == WALK
    fixed = gradient_check.FixedBlock.of(
        graph, cell.model, cell.hidden, cell.fanouts, cell.seed, seeds, visits=visits
    )
    forward_error = gradient_check.check_forward(graph, fixed, trainer.forward, cell.precision)
    backward = gradient_check.check_backward(
        fixed, partial(layer_gradients, trainer), cell.precision
    )
    return forward_error, *backward


def _recheck_layers(system: BuiltSystem, seeds: Tensor) -> None:
    """Check the layers again, on the fixed block and on a sampled batch. Raises ``gate.Fault``.

    Layers could compute something else once the gate is over, or for batches of another size.
    """
    cell, graph, trainer = system.job.cell, system.job.graph, system.trainer
    store = system.stages.store
    if trainer is None or store is None:
        return
    with trainer.initial_weights():
        _check_layers(system, seeds)
        batch = system.stages.sampler.checked(seeds[:LAYER_SEEDS], 0)
        values = trainer.values(batch, store.load(batch))
    blocks = [block.mapped(Tensor.cpu) for block in batch.blocks]
    dims = layer_dims(graph.feature_dim, cell.hidden, graph.num_classes, len(cell.fanouts))
    weights = [w.mapped(Tensor.double) for w in make_weights(dims, MODELS[cell.model], cell.seed)]
    rows = graph.features[batch.input_nodes.cpu().long()]
    gradient_check.check_values(cell.model, weights, blocks, rows, values, cell.precision)


def _step_error(system: BuiltSystem, batch: Batch) -> float:
    """Return the relative difference of loss and gradients between a padded and an eager step.

    0 where steps are not padded. Raises ``gate.Fault`` above ``MAX_STEP_ERROR``.
    """
    trainer, timed, store = system.trainer, system.stages.trainer, system.stages.store
    if not isinstance(timed, PaddedStep):
        return 0.0
    assert trainer is not None and store is not None
    rows, saved = store.load(batch), trainer.kept()
    results: list[tuple[Tensor, Tensor]] = []
    for step in (trainer.step, timed.step):  # the first update: Adam's means are this gradient
        step(batch, rows)
        results.append((trainer.losses.pop(), trainer.mean_gradients()))
        trainer.restore(saved)
    (loss, _), _ = results
    if bool(loss.isnan()):  # no seed has a label
        return 0.0
    errors = [
        float((actual - expected).norm() / expected.norm().clamp(min=1e-30))
        for expected, actual in zip(*results, strict=True)
    ]
    allowed = max(MAX_STEP_ERROR, STEP_ROUNDOFFS * UNIT_ROUNDOFF[system.job.cell.precision])
    if not all(error <= allowed for error in errors):
        raise gate.Fault(
            "a training step as it is timed is off by"
            f" {errors[0]:.2g} of the loss and {errors[1]:.2g} of the gradients"
        )
    return max(errors)


def check_first_batch(system: BuiltSystem) -> tuple[str, str]:
    """Check the gate's first seeds; returns the digest of their edges, and what is wrong or ""."""
    sampler = system.stages.sampler
    system.gate_law = system.gate_law or sampler.law.name
    try:
        seeds = gate.gate_seeds(system.order.batches(0))[0][:RECHECK_SEEDS]
        return sampler.digest([_sample_and_check(system, seeds, 0)]), ""
    except gate.Fault as fault:
        return "", str(fault)
    finally:
        sampler.gate_is_over()


def _check_batch(system: BuiltSystem, seeds: Tensor, batch: Batch) -> list[Hop]:
    """Return the hops of a batch once they are checked. Raises ``gate.Fault``."""
    hops = batch.hops()
    sampler, job = system.stages.sampler, system.job
    gate.check_structure(job.graph, job.cell.fanouts, sampler.frontier, seeds, hops, sampler.law)
    gate.check_inputs(seeds, hops, batch.input_nodes)
    return hops


def _sample_and_check(system: BuiltSystem, seeds: Tensor, number: int) -> list[Hop]:
    """Sample a batch, check it and its rows; returns its hops. Raises ``gate.Fault``."""
    store = system.stages.store
    batch = system.stages.sampler.checked(seeds, number)
    hops = _check_batch(system, seeds, batch)
    if store is not None:
        gate.check_features(system.job.graph, batch.input_nodes, store.load(batch))
    return hops


def recheck(system: BuiltSystem, epoch: int, brief: bool = False) -> str:
    """Check structure, law, rows and layers by fresh seeds, whose batches no cache can have.

    Returns what is wrong, or "".
    """
    sampler = system.stages.sampler
    try:
        all_seeds = gate.gate_seeds(system.order.batches(epoch))
        some_seeds = [seeds[:RECHECK_SEEDS] for seeds in all_seeds[: 1 if brief else None]]
        for number, seeds in enumerate(some_seeds):
            _sample_and_check(system, seeds, number)
        _check_law(system, some_seeds)
        if not brief:
            sampler.check(all_seeds[-1][:REFERENCE_SEEDS])
            _recheck_layers(system, all_seeds[0])
    except gate.Fault as fault:
        return str(fault)
    finally:
        sampler.gate_is_over()
    return ""
