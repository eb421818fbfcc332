"""How models learn, from the samples of every life: accuracy by epoch and by second, and the time
to a stated accuracy.

A life trains one model from its first weights on; all of its epochs count, warm-up among them, and
nothing but epochs: evaluating is no part of the time. What stands for a life is one number, so a
ratio is over pairs of fresh processes as every other.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.harness.plan import Pair
from gnnbench.statistics.estimates import exponential, geometric_interval, mean_interval

if TYPE_CHECKING:
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Plan

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A model after ``epoch`` epochs, counted from 1, that took ``elapsed_s`` together."""

    epoch: int
    elapsed_s: float
    loss: float | None
    val_accuracy: float
    test_accuracy: float


def curve(samples: Iterable[Record]) -> list[Point]:
    """The points of a life, from all of its samples in order; empty where nothing was evaluated."""
    found: list[Point] = []
    seconds = 0.0
    for epoch, sample in enumerate(samples, start=1):
        seconds += sample["wall_s"]
        if sample.get("val_accuracy") is None:
            return []
        accuracies = sample["val_accuracy"], sample["test_accuracy"]
        found.append(Point(epoch, seconds, sample["loss"], *accuracies))
    return found


def reached(points: Sequence[Point], accuracy: float) -> Point | None:
    """The first point whose validation accuracy is at least ``accuracy``."""
    return next((p for p in points if p.val_accuracy >= accuracy), None)


def _curves(journal: JournalState, cell: Cell, pair: Pair) -> dict[int, list[Point]]:
    """The points of a cell's lives that count, of one pair."""
    lives = (record["life"] for record in journal.trials(pair))
    found = {life: curve(journal.trial_samples(pair, cell, life)) for life in lives}
    return {life: points for life, points in found.items() if points}


def _pairs(plan: Plan, journal: JournalState, cell: Cell) -> list[Pair]:
    """The pairs that a cell's numbers are of: its own, or of a reference all."""
    own = [p for p in plan.pairs if p.system.id == cell.id and not p.direct]
    beside = [p for p in plan.pairs if p.reference is not None and p.reference.id == cell.id]
    both = [*own, Pair(cell)]
    return next(([p] for p in both if journal.trials(p)), [p for p in beside if journal.trials(p)])


def convergence_rows(plan: Plan, journal: JournalState) -> list[Row]:
    """Rows of ``convergence.csv``: every point of every life that counts."""
    named = labels([asdict(c) for c in plan.cells])
    return [
        {"id": cell.id, "cell": named.of(asdict(cell)), "pair": pair.id, "life": life}
        | asdict(point)
        for cell in _evaluated(plan, journal)
        for pair in _pairs(plan, journal, cell)
        for life, points in _curves(journal, cell, pair).items()
        for point in points
    ]


def _evaluated(plan: Plan, journal: JournalState) -> list[Cell]:
    failed = plan.failures.keys() | journal.failures.keys()
    return [c for c in plan.cells if c.evaluate and c.id not in failed]


def learning_rows(plan: Plan, journal: JournalState, accuracy: Mapping[str, float]) -> list[Row]:
    """Rows of ``metrics.csv``; ``accuracy`` is what is stated for a dataset."""
    found: list[Row] = []
    for cell in _evaluated(plan, journal):
        pairs = _pairs(plan, journal, cell)
        curves = [_curves(journal, cell, p) for p in pairs]
        lives = [points for one in curves for points in one.values()]
        if not lives:
            continue
        for what in (m.VAL_ACCURACY, m.TEST_ACCURACY):
            # A reference trains on the same epochs beside each system: that is one training.
            last: dict[int, list[float]] = {}
            for life, points in (item for one in curves for item in one.items()):
                last.setdefault(life, []).append(getattr(points[-1], what.name))
            mean = mean_interval([statistics.fmean(values) for values in last.values()])
            found.append(m.metric(cell.id, m.LEARNING, what, mean))
        sample = next(s for s in journal.samples if s["id"] == cell.id)
        for what in (m.VAL_NODES, m.TEST_NODES):
            found.append(m.metric(cell.id, m.LEARNING, what, sample[what.name]))
        if (stated := accuracy.get(cell.dataset)) is not None:
            found += _stated(cell, pairs, lives, stated, journal)
    return found


def _stated(
    cell: Cell, pairs: Sequence[Pair], lives: Sequence[list[Point]], stated: float, journal: JournalState
) -> list[Row]:
    """What is known of a stated accuracy: a mean over some lives alone would favour the slow."""
    there = [reached(points, stated) for points in lives]
    came = [p for p in there if p is not None]
    numbers: list[tuple[m.Measure, Any]] = [(m.REACHED, len(came) / len(there))]
    if len(came) == len(there):
        numbers.append((m.EPOCHS_TO, mean_interval([float(p.epoch) for p in came])))
        numbers.append((m.TIME_TO, geometric_interval([p.elapsed_s for p in came])))
        own = next((p for p in pairs if p.reference is not None and p.system.id == cell.id), None)
        if own is not None and (ratios := _ratios(own, stated, journal)):
            numbers.append((m.TO_SPEEDUP, exponential(mean_interval(ratios))))
    where = f"{stated:g}"
    return [
        m.metric(cell.id, m.LEARNING, what, value, where=where, n=len(there))
        for what, value in numbers
    ]


def _ratios(pair: Pair, stated: float, journal: JournalState) -> list[float]:
    """Logarithms of the reference's time over the system's, life by life; none where a life of
    either did not come there."""
    assert pair.reference is not None
    sides = [_curves(journal, cell, pair) for cell in (pair.reference, pair.system)]
    found = []
    for life in sides[0].keys() & sides[1].keys():
        one, other = (reached(side[life], stated) for side in sides)
        if one is None or other is None:
            return []
        found.append(math.log(one.elapsed_s / other.elapsed_s))
    return found
