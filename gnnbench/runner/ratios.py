"""Rows of ``ratios.csv``: couples of cells that a definition compares directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnnbench.cell import Cell
from gnnbench.measure import judged, machine
from gnnbench.measure.noise import Calibration
from gnnbench.measure.stats import Estimate, paired_ratio, verdict
from gnnbench.measure.work import work_class
from gnnbench.results.labels import fits
from gnnbench.results.schema.measured import COUPLE
from gnnbench.stages.counts import DEVICE_TIME

if TYPE_CHECKING:
    from gnnbench.runner.ledger import Ledger, Record
    from gnnbench.runner.plan import Pair, Plan

Row = dict[str, Any]


def ratio_rows(
    plan: Plan,
    ledger: Ledger,
    compare: Sequence[Sequence[str]],
    calibrations: Mapping[str, Calibration],
) -> list[Row]:
    """One row per measured couple; the pair with the reference serves where it is one."""
    rows = []
    for first, second in compare:
        for pair in plan.pairs:
            if pair.reference is None:
                continue
            a, b = pair.reference, pair.system
            if _named(plan, a, first) and _named(plan, b, second):
                rows += _row(pair, first, second, False, ledger, calibrations)
            elif _named(plan, a, second) and _named(plan, b, first):
                rows += _row(pair, first, second, True, ledger, calibrations)
    return rows


def _named(plan: Plan, cell: Cell, label: str) -> bool:
    """Whether a label names a cell by any of its names."""
    values = asdict(cell)
    return any(fits({**values, "system": name}, label) for name in plan.names[cell.id])


def _row(
    pair: Pair,
    first: str,
    second: str,
    turned: bool,
    ledger: Ledger,
    calibrations: Mapping[str, Calibration],
) -> list[Row]:
    assert pair.reference is not None
    cells = [pair.reference, pair.system]
    if any(c.id in ledger.failures for c in cells):
        return []
    rounds: list[tuple[Record, Record]] = ledger.rounds(pair)
    if not rounds:
        return []
    if turned:
        cells.reverse()
        rounds = [(b, a) for a, b in rounds]
    a, b = cells
    work = work_class(*(ledger.reports[c.id]["check"] for c in cells))
    by = judged.of(b.until)

    def ratio(time: Callable[[Record], float]) -> Estimate:
        def of(sample: Record) -> float:
            per_edge = max(sample["sampled_edges"], 1) if work == "different" else 1
            return time(sample) / per_edge

        return paired_ratio([of(x) for x, _ in rounds], [of(y) for _, y in rounds], b.seed)

    found, device = ratio(by.value), ratio(_device_time)
    calibration = calibrations.get(b.device)
    floor = None if calibration is None else calibration.floor(len(rounds))
    row: Row = {
        "pair": f"{a.id}-{b.id}",
        "first": first,
        "second": second,
        **{name: getattr(b, name) for name in COUPLE},
        "fanouts": "/".join(map(str, b.fanouts)),
        "threads": machine.resolve_threads(b.threads),
        "rounds": len(rounds),
        "work_class": work,
        "judged": by.name,
        "ratio": found.median,
        "ratio_ci_low": found.low,
        "ratio_ci_high": found.high,
        "device_ratio": device.median,
        "noise_floor": floor,
        "verdict": verdict(found, floor or 0.0),
    }
    return [row]


def _device_time(sample: Record) -> float:
    """Time between events around the samples of an epoch (s); 0 where none was taken."""
    return sum(c[3] for c in sample.get("counts", ()) if c[1] == DEVICE_TIME.name)
