"""Rows of ``ratios.csv``: pairs of cells that a definition compares directly."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnnbench.analysis.labels import parse_label
from gnnbench.core import precision
from gnnbench.core.cell import flat
from gnnbench.core.counters import DEVICE_TIME
from gnnbench.core.option import plain_text
from gnnbench.harness.doubt import own_doubts
from gnnbench.harness.plan import rest
from gnnbench.harness.reduce.comparison import compared, number, ratio, steady, without_verdict
from gnnbench.measure import machine
from gnnbench.schema import RatioColumns, RatioRow
from gnnbench.schema.measured import COUPLE
from gnnbench.statistics import primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.work_class import work_class

if TYPE_CHECKING:
    from gnnbench.config.experiment import Experiment, MeasureLimits
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair, Plan
    from gnnbench.schema.samples import EpochSample


def ratio_rows(
    plan: Plan,
    journal: JournalState,
    experiment: Experiment,
    calibrations: Sequence[Calibration],
) -> list[RatioRow]:
    """One row per measured pair of ``compare``, in the order and direction of the definition."""
    rows = []
    for first, second in [*experiment.compare, *plan.couples]:
        for pair in plan.pairs:
            if pair.reference is None:
                continue
            a, b = pair.reference, pair.system
            if plan.fits(a, first) and plan.fits(b, second):
                names, is_inverse = (apart(plan, a, first), apart(plan, b, second)), False
            elif plan.fits(a, second) and plan.fits(b, first):
                names, is_inverse = (apart(plan, b, first), apart(plan, a, second)), True
            else:
                continue
            if _is_measured(pair, journal):
                rows.append(
                    _row(pair, names, is_inverse, journal, experiment.measure, calibrations)
                )
    return rows


def apart(plan: Plan, cell: Cell, label: str) -> str:
    """The label of a cell, with the settings that distinguish it from others of this label."""
    alike = [flat(c.recipe) for c in plan.cells if plan.fits(c, label) and rest(c) == rest(cell)]
    named = parse_label(label)[1]
    settings = [
        f"{key}={plain_text(value)}"
        for key, value in flat(cell.recipe).items()
        if key not in named and any(other.get(key) != value for other in alike)
    ]
    return " ".join([label, *settings])


def _is_measured(pair: CellPair, journal: JournalState) -> bool:
    assert pair.reference is not None
    failed = any(c.id in journal.failures for c in (pair.reference, pair.system))
    return not failed and bool(journal.trials(pair))


def _row(
    pair: CellPair,
    names: tuple[str, str],
    is_inverse: bool,
    journal: JournalState,
    measure: MeasureLimits,
    calibrations: Sequence[Calibration],
) -> RatioRow:
    assert pair.reference is not None
    cells = [pair.reference, pair.system]
    a, b = reversed(cells) if is_inverse else cells
    work = work_class(*(journal.reports[c.id]["check"] for c in cells))
    metric = primary_metric.of(b.until)

    def per_edge(sample: EpochSample) -> float:
        return metric.value(sample) / max(sample.sampled_edges, 1)

    columns = compared(
        journal, pair, measure, calibrations, per_edge if work == "different" else None
    )
    doubts = [*journal.pair_doubts(pair.id)]
    doubts += [f"{c.who}: {text}" for c in cells for text in own_doubts(c, pair, journal)]
    if not steady(journal, pair, measure):
        doubts.append("a time is not steady")
    if doubts:
        columns = without_verdict(columns)
    device = ratio(journal, pair, _device_time).value
    settings = {name: getattr(b, name) for name in COUPLE}
    settings["fanouts"] = "/".join(map(str, b.fanouts))
    settings["precision"] = precision.named(b.precision)
    settings["threads"] = machine.resolve_threads(b.threads)
    return RatioRow(
        pair=f"{a.id}-{b.id}",
        first=names[0],
        second=names[1],
        work_class=work,
        judged=metric.name,
        device_ratio=number(1 / device if is_inverse else device),
        doubtful="; ".join(dict.fromkeys(doubts)),
        **settings,
        **(inverted(columns) if is_inverse else columns),
    )


def inverted(columns: RatioColumns) -> RatioColumns:
    """The columns of the comparison in the other direction."""
    low, high = columns.ratio_ci_low, columns.ratio_ci_high
    opposite = {"faster": "slower", "slower": "faster"}
    return dataclasses.replace(
        columns,
        ratio=columns.ratio and 1 / columns.ratio,
        ratio_ci_low=high and 1 / high,
        ratio_ci_high=low and 1 / low,
        verdict=opposite.get(columns.verdict, columns.verdict),
    )


def _device_time(sample: EpochSample) -> float:
    """Time between events around the samples of an epoch (s); 0 where none was taken."""
    return sum(c.value for c in sample.counts if c.name == DEVICE_TIME.name)
