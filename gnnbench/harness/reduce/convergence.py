"""Learning curves: accuracy by epoch and by time, and the time to a target accuracy.

A trial trains one model from its initial weights; all of its epochs count, with warm-up. Evaluation
is not part of the time. Each trial gives one number, so a ratio is over pairs of processes as every
other.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.harness.plan import CellPair
from gnnbench.schema import ConvergenceRow, MetricRow
from gnnbench.statistics.estimates import (
    Estimate,
    exponential,
    geometric_interval,
    mean_interval,
)

if TYPE_CHECKING:
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan
    from gnnbench.schema.samples import EpochSample


@dataclass(frozen=True)
class EvaluatedEpoch:
    """A model after ``epoch`` epochs, counted from 1, that took ``elapsed_s`` together."""

    epoch: int
    elapsed_s: float
    loss: float | None
    val_accuracy: float
    test_accuracy: float


Curve = list[EvaluatedEpoch]


def curve(samples: Iterable[EpochSample]) -> Curve:
    """The learning curve of a trial, from all of its samples; empty if it was not evaluated."""
    epochs: Curve = []
    elapsed_s = 0.0
    for epoch, sample in enumerate(samples, start=1):
        elapsed_s += sample.wall_s
        if sample.val_accuracy is None or sample.test_accuracy is None:
            return []
        accuracies = sample.val_accuracy, sample.test_accuracy
        epochs.append(EvaluatedEpoch(epoch, elapsed_s, sample.loss, *accuracies))
    return epochs


def reached(epochs: Sequence[EvaluatedEpoch], accuracy: float) -> EvaluatedEpoch | None:
    """The first epoch whose validation accuracy is at least ``accuracy``."""
    return next((e for e in epochs if e.val_accuracy >= accuracy), None)


def _curves(journal: JournalState, cell: Cell, pair: CellPair) -> dict[int, Curve]:
    """Learning curves of a cell's trials of one pair that count, by trial."""
    trials = [trial["life"] for trial in journal.trials(pair)]
    curves = {trial: curve(journal.trial_samples(pair, cell, trial)) for trial in trials}
    return {trial: epochs for trial, epochs in curves.items() if epochs}


def _pairs(plan: Plan, journal: JournalState, cell: Cell) -> list[CellPair]:
    """The pairs behind a cell's numbers: its own one, or for a reference all."""
    own = [p for p in plan.pairs if p.system.id == cell.id and not p.direct]
    others = [p for p in plan.pairs if p.reference is not None and p.reference.id == cell.id]
    for pair in [*own, CellPair(cell)]:
        if journal.trials(pair):
            return [pair]
    return [p for p in others if journal.trials(p)]


def convergence_rows(plan: Plan, journal: JournalState) -> list[ConvergenceRow]:
    """Rows of ``convergence.csv``: every epoch of every trial that counts."""
    label_of = labels([asdict(c) for c in plan.cells]).of
    return [
        ConvergenceRow(
            id=cell.id, cell=label_of(asdict(cell)), pair=pair.id, life=trial, **asdict(epoch)
        )
        for cell in _evaluated(plan, journal)
        for pair in _pairs(plan, journal, cell)
        for trial, epochs in _curves(journal, cell, pair).items()
        for epoch in epochs
    ]


def _evaluated(plan: Plan, journal: JournalState) -> list[Cell]:
    failed = plan.failures.keys() | journal.failures.keys()
    return [c for c in plan.cells if c.evaluate and c.id not in failed]


def learning_rows(
    plan: Plan, journal: JournalState, accuracy: Mapping[str, float]
) -> list[MetricRow]:
    """Rows of ``metrics.csv``; ``accuracy`` has the target accuracies by dataset."""
    rows: list[MetricRow] = []
    for cell in _evaluated(plan, journal):
        pairs = _pairs(plan, journal, cell)
        curves = [(p, n, c) for p in pairs for n, c in _curves(journal, cell, p).items()]
        if not curves:
            continue
        for measured in (m.VAL_ACCURACY, m.TEST_ACCURACY):
            # In older runs a reference trained on the same epochs in each of its comparisons:
            # that is one training.
            last: dict[int, list[float]] = {}
            for pair, trial, epochs in curves:
                first = journal.trial_samples(pair, cell, trial)[0].epoch
                last.setdefault(first, []).append(getattr(epochs[-1], measured.name))
            mean = mean_interval([statistics.fmean(values) for values in last.values()])
            rows.append(m.metric(cell.id, m.LEARNING, measured, mean))
        sample = next(s for s in journal.samples if s.id == cell.id)
        for measured, nodes in ((m.VAL_NODES, sample.val_nodes), (m.TEST_NODES, sample.test_nodes)):
            rows.append(m.metric(cell.id, m.LEARNING, measured, nodes or 0))
        if (target := accuracy.get(cell.dataset)) is not None:
            rows += _target_metrics(cell, pairs, [c for _, _, c in curves], target, journal)
    return rows


def _target_metrics(
    cell: Cell,
    pairs: Sequence[CellPair],
    trials: Sequence[Curve],
    target: float,
    journal: JournalState,
) -> list[MetricRow]:
    """Metrics of a target accuracy.

    Times need all trials to reach it: means over the others would favour the slow system.
    """
    epochs = [reached(trial, target) for trial in trials]
    successes = [e for e in epochs if e is not None]
    values: list[tuple[m.Metric, float | Estimate]] = [(m.REACHED, len(successes) / len(epochs))]
    if len(successes) == len(epochs):
        values.append((m.EPOCHS_TO, mean_interval([float(e.epoch) for e in successes])))
        values.append((m.TIME_TO, geometric_interval([e.elapsed_s for e in successes])))
        own = next((p for p in pairs if p.reference is not None and p.system.id == cell.id), None)
        if own is not None and (ratios := _log_ratios(own, target, journal)):
            values.append((m.TO_SPEEDUP, exponential(mean_interval(ratios))))
    where = f"{target:g}"
    return [
        m.metric(cell.id, m.LEARNING, measured, value, where=where, n=len(epochs))
        for measured, value in values
    ]


def _log_ratios(pair: CellPair, target: float, journal: JournalState) -> list[float]:
    """log(reference's time to the target / system's), by trial; empty if any trial missed it."""
    assert pair.reference is not None
    reference, system = (_curves(journal, cell, pair) for cell in (pair.reference, pair.system))
    ratios = []
    for trial in reference.keys() & system.keys():
        one, other = reached(reference[trial], target), reached(system[trial], target)
        if one is None or other is None:
            return []
        ratios.append(math.log(one.elapsed_s / other.elapsed_s))
    return ratios
