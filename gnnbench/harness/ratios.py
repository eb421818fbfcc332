"""Rows of ``ratios.csv``: couples of cells that a definition compares directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gnnbench.analysis.labels import parse_label
from gnnbench.core.cell import flat
from gnnbench.core.counters import DEVICE_TIME
from gnnbench.core.option import plain_text
from gnnbench.harness.doubt import own_doubts
from gnnbench.harness.pair_columns import compared, number, ratio, steady
from gnnbench.harness.plan import rest
from gnnbench.measure import machine
from gnnbench.schema.measured import COUPLE
from gnnbench.statistics import primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.work_class import work_class

if TYPE_CHECKING:
    from gnnbench.config.experiment import Experiment, Measure
    from gnnbench.core.cell import Cell
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Pair, Plan

Row = dict[str, Any]


def ratio_rows(
    plan: Plan,
    journal: JournalState,
    experiment: Experiment,
    calibrations: Sequence[Calibration],
) -> list[Row]:
    """One row per measured couple; the pair with the reference serves where it is one."""
    rows = []
    for first, second in [*experiment.compare, *plan.couples]:
        for pair in plan.pairs:
            if pair.reference is None:
                continue
            a, b = pair.reference, pair.system
            if plan.fits(a, first) and plan.fits(b, second):
                labels, turn = (apart(plan, a, first), apart(plan, b, second)), False
            elif plan.fits(a, second) and plan.fits(b, first):
                labels, turn = (apart(plan, b, first), apart(plan, a, second)), True
            else:
                continue
            rows += _row(pair, *labels, turn, journal, experiment.measure, calibrations)
    return rows


def apart(plan: Plan, cell: Cell, label: str) -> str:
    """The label of a cell, and the settings that set it apart from others alike that it fits."""
    alike = [flat(c.recipe) for c in plan.cells if plan.fits(c, label) and rest(c) == rest(cell)]
    said = parse_label(label)[1]
    more = [
        f"{key}={plain_text(value)}"
        for key, value in flat(cell.recipe).items()
        if key not in said and any(other.get(key) != value for other in alike)
    ]
    return " ".join([label, *more])


def _row(
    pair: Pair,
    first: str,
    second: str,
    turn: bool,
    journal: JournalState,
    measure: Measure,
    calibrations: Sequence[Calibration],
) -> list[Row]:
    assert pair.reference is not None
    cells = [pair.reference, pair.system]
    if any(c.id in journal.failures for c in cells) or not journal.trials(pair):
        return []
    a, b = reversed(cells) if turn else cells
    work = work_class(*(journal.reports[c.id]["check"] for c in cells))
    by = primary_metric.of(b.until)

    def value(sample: Record) -> float:
        return by.value(sample) / (max(sample["sampled_edges"], 1) if work == "different" else 1)

    found = compared(journal, pair, measure, calibrations, value)
    doubts = [*journal.pair_doubts(pair.id)]
    doubts += [f"{c.who}: {text}" for c in cells for text in own_doubts(c, pair, journal)]
    if not steady(journal, pair, measure):
        doubts.append("a time is not steady")
    if doubts:
        found |= {"pairs_needed": None, "verdict": ""}
    device = ratio(journal, pair, _device_time).value
    row: Row = {
        "pair": f"{a.id}-{b.id}",
        "first": first,
        "second": second,
        **{name: getattr(b, name) for name in COUPLE},
        "fanouts": "/".join(map(str, b.fanouts)),
        "threads": machine.resolve_threads(b.threads),
        "work_class": work,
        "judged": by.name,
        **(turned(found) if turn else found),
        "device_ratio": number(1 / device if turn else device),
        "doubtful": "; ".join(dict.fromkeys(doubts)),
    }
    return [row]


def turned(found: Row) -> Row:
    """A comparison the other way round."""
    low, high = found["ratio_ci_low"], found["ratio_ci_high"]
    other = {"faster": "slower", "slower": "faster"}
    return found | {
        "ratio": found["ratio"] and 1 / found["ratio"],
        "ratio_ci_low": high and 1 / high,
        "ratio_ci_high": low and 1 / low,
        "verdict": other.get(found["verdict"], found["verdict"]),
    }


def _device_time(sample: Record) -> float:
    """Time between events around the samples of an epoch (s); 0 where none was taken."""
    return float(sum(c[3] for c in sample.get("counts", ()) if c[1] == DEVICE_TIME.name))
