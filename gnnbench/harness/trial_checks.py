"""Checks of a trial's workers around and after its timed epochs."""

from __future__ import annotations

from functools import partial

from gnnbench.core.cell import Cell
from gnnbench.harness import report_audit, timing_anomalies
from gnnbench.harness.background_load import BackgroundLoad
from gnnbench.harness.epoch_numbers import foresee_epoch, random_epoch
from gnnbench.harness.failures import Failure
from gnnbench.harness.probe_run import link_copy, probe_phases
from gnnbench.harness.probing import shared_by_ranks
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import RECHECK, VERIFY
from gnnbench.harness.retraining import TrainingCheck
from gnnbench.harness.timing_anomalies import TimingAnomaly
from gnnbench.harness.training_check import REPEATS, Excess, divergence
from gnnbench.harness.trial_context import TrialContext
from gnnbench.harness.trial_workers import TrialWorkers
from gnnbench.measure import machine
from gnnbench.schema.events import LinkCopy
from gnnbench.schema.samples import EpochSample


def verify_every_batch(context: TrialContext, workers: TrialWorkers) -> None:
    """Run one untimed epoch of each worker and check all of its batches. Raises ``CellFailed``.

    Nothing is done for recipes of one process, whose timed epochs are checked (``spot_checks`` of
    the runtime). Ranks share the batches of an epoch, and a step may combine several of them.
    """
    if all(cell.composed and not shared_by_ranks(cell) for cell in context.cells):
        return
    epoch = random_epoch()
    digests = {}
    with context.timing("verify"):
        for cell, worker in workers:
            foresee_epoch(context, cell, worker, epoch)
        for cell, worker, report in workers.run_untimed(VERIFY, epoch=epoch):
            context.journal.record("verified", cell=cell.id, worker=worker.pid, **report)
            if not report["ok"]:
                context.fail_if(cell, f"when every batch was checked: {report['reason']}")
            digests[cell.id] = report["digest"]
        if context.pair.reference is not None:
            reference, system = (digests[c.id] for c in context.cells)
            fault = report_audit.epoch_digest_fault(reference, system, context.work_class)
            context.fail_if(context.pair.system, fault)


def check_after_timing(context: TrialContext, workers: TrialWorkers) -> None:
    """Check the measured epochs for consistency, and each worker again on other seeds.

    Raises ``CellFailed``.
    """
    with context.timing("probe"):
        for cell, worker in workers:
            _check_samples(context, cell, worker)
    with context.timing("recheck"):
        epoch, brief = random_epoch(), not context.thorough
        for cell, _, answer in workers.run_untimed(RECHECK, epoch=epoch, brief=brief):
            if answer["reason"]:
                context.fail_if(cell, f"after timing: {answer['reason']}")
    if context.pair.reference is not None:
        rounds = zip(*(context.samples_of(c) for c in context.cells), strict=True)
        fault = report_audit.edges_fault(list(rounds), context.work_class)
        context.fail_if(context.pair.system, fault)


def _check_samples(context: TrialContext, cell: Cell, worker: WorkerProcess) -> None:
    samples = context.samples_of(cell)
    context.fail_if(cell, report_audit.loss_fault(samples))
    anomaly = timing_anomalies.of_clocks(samples)
    if anomaly is not None:
        _note_anomaly(context, cell, anomaly)
    elif context.thorough:
        _probe(context, cell, worker, samples)


def _note_anomaly(
    context: TrialContext, cell: Cell, anomaly: TimingAnomaly, load: EpochSample | None = None
) -> None:
    """Note a timing anomaly, or fail the cell where it is confirmed.

    ``load`` is the CPU use while phases were probed.
    """
    samples = context.journal.trial_samples(context.pair, cell, context.number)
    fault = timing_anomalies.confirmed(
        anomaly, cell, context.previous, samples, context.free_cores(), load
    )
    context.fail_if(cell, fault)
    context.anomalies[cell.id] = anomaly


def _probe(
    context: TrialContext, cell: Cell, worker: WorkerProcess, samples: list[EpochSample]
) -> None:
    """Run the phases one by one and compare them with the phase times of the epochs."""
    load = BackgroundLoad(worker)
    probed = context.attempt(cell, partial(probe_phases, cell, worker, samples))
    context.fail_if(cell, probed.wrong)
    used = EpochSample(**load.read())
    context.journal.record(
        "probed", cell=cell.id, worker=worker.pid, alone=probed.alone, median=probed.median,
        cores=machine.usable_cores(), copied=copy_over_link(context, cell, worker, samples),
    )  # fmt: skip
    if probed.fault:
        anomaly = TimingAnomaly(timing_anomalies.PROBE, probed.fault)
        _note_anomaly(context, cell, anomaly, used)


def copy_over_link(
    context: TrialContext, cell: Cell, worker: WorkerProcess, samples: list[EpochSample]
) -> LinkCopy | None:
    """Measure a copy over the worker's link; None where there is none, or no GPU memory for it."""
    try:
        return link_copy(cell, worker, samples)
    except WorkerFailed as failed:
        if failed.failure.status != "oom_gpu":
            context.fail(cell, failed.failure)
        return None


def training_excess(context: TrialContext) -> Excess | None:
    """Return by what both sides' training differs, if correct systems do not differ by as much.

    Raises ``CellFailed`` where ``REPEATS`` earlier trials had the same excess, and where the
    training of the reference, or of a system alone, diverged.
    """
    pair, journal = context.pair, context.journal
    first = context.cells[0]
    if diverged := divergence(journal.trial_samples(pair, first, context.number)):
        context.fail(first, Failure("unstable", diverged))
    if pair.reference is None:
        return None
    check = TrainingCheck(
        pair, journal, context.measure, context.shared_cache, context.show_progress
    )
    context.fail_if(pair.system, check.fault(context.number))
    with context.timing("training"):
        excess = check.excess(context.number)
    earlier = list(journal.excesses(pair).values())
    if excess is not None and earlier.count(excess.quantity) >= REPEATS:
        context.fail_if(pair.system, f"again in {excess.text}")
    return excess
