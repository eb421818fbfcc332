"""Rows of ``cells.csv``, and of ``metrics.csv`` for the same cells."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gnnbench.analysis import metrics as m
from gnnbench.core import precision
from gnnbench.core.cell import PHASES, Cell, flat
from gnnbench.core.units import plural
from gnnbench.harness.reduce.cell_metrics import (
    cpu_metrics,
    epoch_metrics,
    profile_metrics,
    setup_metrics,
    trials_value,
)
from gnnbench.harness.reduce.comparison import Value, compared, level, number, ratio
from gnnbench.harness.reduce.gather_rates import request_rows
from gnnbench.harness.reduce.reliability import cell_doubtful, unreliable, unstable
from gnnbench.measure import machine
from gnnbench.schema import VERSION, CellRow, MetricRow, RatioColumns
from gnnbench.schema.reports import CellReport, GraphFacts, Profile
from gnnbench.schema.samples import EpochSample
from gnnbench.statistics import primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.work_class import work_class

if TYPE_CHECKING:
    from gnnbench.config.experiment import MeasureLimits
    from gnnbench.harness.failures import Failure
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair, Plan

UNCOMPARED = "no gradient of its weights was compared: it keeps all in a form of its own"
BY_CHANCE = "not deterministic: a training step may have other bits when it is computed again"


def cell_rows(
    plan: Plan,
    journal: JournalState,
    measure: MeasureLimits,
    calibrations: Sequence[Calibration] = (),
) -> tuple[list[CellRow], list[MetricRow]]:
    """Rows of ``cells.csv`` and of ``metrics.csv``.

    A cell that was measured or failed has its metrics once, and a row for every name of the plan.
    """
    pairs = {p.system.id: p for p in plan.pairs if not p.direct}
    rows: list[CellRow] = []
    metrics: list[MetricRow] = []
    for cell in plan.cells:
        failure = plan.failures.get(cell.id) or journal.failures.get(cell.id)
        if failure is None and not journal.measured(cell):
            continue
        row = _identity(cell, plan, journal)
        metrics += [*setup_metrics(cell, journal), *profile_metrics(cell, journal)]
        metrics += request_rows(cell, journal.reports.get(cell.id, CellReport()).get("facts", {}))
        pair = _compared_pair(cell, plan, pairs, journal)
        _add_times(row, cell, journal, pair)
        metrics += epoch_metrics(cell, journal, pair)
        if failure is None:
            row.doubtful = cell_doubtful(cell, pair, journal, measure)
            metrics += _add_comparison(row, cell, pair, journal, measure, calibrations)
            metrics += cpu_metrics(cell, pair, journal)
            if cell.id == plan.references[cell.id].id:
                row.verdict = "reference"
            _add_outcome(row, cell, pair, journal)
            failure = unreliable(cell, pair, journal, measure) or unstable(
                cell, pair, journal, measure
            )
        _add_check_remarks(row, journal)
        _set_status(row, failure)
        rows.append(row)
    named = [dataclasses.replace(r, system=name) for r in rows for name in plan.names[r.id]]
    return named, metrics


def _set_status(row: CellRow, failure: Failure | None) -> None:
    row.status = failure.status if failure else "ok"
    row.reason = failure.reason if failure else ""


def _add_outcome(row: CellRow, cell: Cell, pair: CellPair | None, journal: JournalState) -> None:
    """Why measuring ended, trials that were repeated, and a failed profiling run."""
    key = pair.id if pair else cell.id
    row.stopped = journal.done[key]["why"] if key in journal.done else ""
    void = journal.void_doubts(key)
    if void and not row.doubtful:
        _remark(row, f"{plural(len(void), 'pair')} void and measured again: {void[0]}")
    if error := journal.profiles.get(cell.id, Profile()).error:
        _remark(row, f"its samples could not be looked into: {error}")


def _add_check_remarks(row: CellRow, journal: JournalState) -> None:
    check = journal.reports.get(row.id, CellReport()).get("check", {})
    if check.get("deterministic") is False:
        _remark(row, BY_CHANCE)
    details = check.get("details", {})
    if details.get("weight_gradients") == 0:
        _remark(row, UNCOMPARED)
    if uncertified := details.get("uncertified"):
        _remark(row, f"different work: {uncertified} ({details.get('certificate')})")
    elif (certificate := details.get("certificate")) and not row.digest:
        # It draws random numbers of its own: the certificate says what they are.
        _remark(row, f"certificate: {certificate}")


def _remark(row: CellRow, text: str) -> None:
    row.remark = "; ".join(filter(None, [row.remark, text]))


def _compared_pair(
    cell: Cell, plan: Plan, pairs: Mapping[str, CellPair], journal: JournalState
) -> CellPair | None:
    """The comparison of a row; None for a reference and for a system that was measured alone.

    If a reference failed later, a finished comparison stays, unless the reference is incorrect.
    """
    pair = pairs.get(cell.id)
    if pair is None or pair.reference is None:
        return None
    failure = journal.failures.get(plan.references[cell.id].id)
    if failure is not None and (failure.status == "incorrect" or pair.id not in journal.done):
        return None
    return pair if journal.trials(pair) else None


def _identity(cell: Cell, plan: Plan, journal: JournalState) -> CellRow:
    """A row with all that is known of a cell without its times."""
    report = journal.reports.get(cell.id, CellReport())
    check = report.get("check", {})
    facts = report.get("facts") or _dataset_facts(cell, plan, journal)
    paths = flat(cell.recipe)
    row = CellRow(
        id=cell.id,
        experiment=cell.experiment,
        system=cell.system,
        env=cell.env,
        reference=plan.reference_label(cell),
        reference_id=plan.references[cell.id].id,
        dataset=cell.dataset,
        until=cell.until,
        model=cell.model,
        device=cell.device,
        pick=str(check.get("pick", paths.get("sampler.pick", ""))),
        frontier=str(check.get("frontier", paths.get("sampler.frontier", ""))),
        law=check.get("law", ""),
        batch_size=cell.batch_size,
        fanouts="/".join(map(str, cell.fanouts)),
        hidden=cell.hidden if cell.trains else None,
        learning_rate=cell.learning_rate if cell.trains else None,
        dropout=cell.dropout or None,
        precision=precision.named(cell.precision),
        threads=machine.resolve_threads(cell.threads),
        seed=cell.seed,
        max_batches=cell.max_batches,
        evaluate=cell.evaluate,
        gpus=cell.gpus if cell.device == "cuda" or cell.gpus > 1 else None,
        recipe=json.dumps(cell.recipe, sort_keys=True),
        judged=primary_metric.of(cell.until).name,
        verified=check.get("verified", None if cell.composed else False),
        digest=check.get("digest", ""),
        stand_in_for=plan.stand_ins.get(cell.id, ""),
        schema_version=VERSION,
        **facts,
    )
    if row.train_nodes:
        row.epoch_batches = math.ceil(row.train_nodes / cell.batch_size)
    versions = report.get("setup", {}).get("versions", {})
    row.versions = ", ".join(f"{name} {version}" for name, version in versions.items())
    return row


def _dataset_facts(cell: Cell, plan: Plan, journal: JournalState) -> GraphFacts:
    """Sizes of the cell's dataset as another cell reported them."""
    for other in plan.cells:
        facts = journal.reports.get(other.id, CellReport()).get("facts")
        if other.dataset == cell.dataset and facts:
            return facts
    return {}


def _add_times(row: CellRow, cell: Cell, journal: JournalState, pair: CellPair | None) -> None:
    """Times and counts of an epoch; with a ratio, those of its own rounds."""
    samples, trials = journal.measured(cell, pair), journal.by_trial(cell, pair)
    row.n = len(samples)
    if not samples:
        return
    time = level(trials, primary_metric.of(cell.until).value)
    row.epoch_wall_s = level(trials, lambda s: s.wall_s).value
    row.judged_s, row.ci_low_s, row.ci_high_s = time.value, number(time.low), number(time.high)
    row.lives = len(trials)
    row.loss = samples[-1].loss
    row.batches = round(statistics.median(s.batches for s in samples))
    row.seeds = round(statistics.median(s.seeds for s in samples))
    row.sampled_edges = round(statistics.median(s.sampled_edges for s in samples))
    row.unique_nodes = round(statistics.median(s.unique_nodes for s in samples))
    row.sample_time_s = trials_value(trials, lambda s: s.sample_time_s)
    row.memory_io_time_s = trials_value(trials, lambda s: s.memory_io_time_s)
    row.compute_time_s = trials_value(trials, lambda s: s.compute_time_s)
    row.overlap_s = trials_value(trials, lambda s: s.overlap_s)
    row.idle_s = trials_value(trials, lambda s: s.idle_s)


def _add_comparison(
    row: CellRow,
    cell: Cell,
    pair: CellPair | None,
    journal: JournalState,
    measure: MeasureLimits,
    calibrations: Sequence[Calibration],
) -> list[MetricRow]:
    """Add work class and ratio to a row; return the ratios of its phases."""
    if pair is None or (reference := pair.reference) is None:
        return []
    checks = (journal.reports[c.id]["check"] for c in (reference, cell))
    row.work_class = work_class(*checks)
    metric = primary_metric.of(cell.until)
    row.reference_s = number(level(journal.by_trial(reference, pair), metric.value).value)
    ran = PHASES[1 if cell.gathers else 0 :]  # gathers sample no seeds
    times: dict[str, Value] = {m.EPOCH: lambda s: s.wall_s}
    times |= {phase: partial(EpochSample.time_s, phase=phase) for phase in ran}
    counts: tuple[tuple[m.Metric, Callable[[EpochSample], int]], ...] = (
        (m.PER_EDGE, lambda s: s.sampled_edges), (m.PER_BATCH, lambda s: s.batches),
    )  # fmt: skip
    metrics = [
        m.metric(cell.id, stage, measured, ratio(journal, pair, _per(count, times[stage])))
        for stage in (() if cell.gathers else (m.EPOCH, PHASES[0]))
        for measured, count in counts
    ]
    columns = compared(journal, pair, measure, calibrations, doubtful=bool(row.doubtful))
    if row.work_class == "different":
        row.pairs, row.rounds = columns.pairs, columns.rounds
        return metrics
    for name in RatioColumns.columns():
        setattr(row, name.name, columns[name.name])
    for stage, time in times.items() if columns.ratio is not None else ():
        speedup = ratio(journal, pair, time)
        if speedup.n:
            metrics.append(m.metric(cell.id, stage, m.SPEEDUP, speedup))
    return metrics


def _per(count: Callable[[EpochSample], int], time: Value) -> Value:
    """Time of a sample over a count; None where the count is 0."""
    return lambda s: (time(s) or 0.0) / count(s) if count(s) else None
