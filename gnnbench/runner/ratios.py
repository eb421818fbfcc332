"""Rows of ``ratios.csv``: couples of cells that a definition compares directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gnnbench.cell import NO_MODEL
from gnnbench.measure.noise import Calibration
from gnnbench.measure.stats import paired_ratio, verdict
from gnnbench.measure.work import work_class
from gnnbench.results.labels import fits
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
            a, b = asdict(pair.reference), asdict(pair.system)
            if fits(a, first) and fits(b, second):
                rows += _row(pair, first, second, False, ledger, calibrations)
            elif fits(a, second) and fits(b, first):
                rows += _row(pair, first, second, True, ledger, calibrations)
    return rows


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
    time = "sample_time_s" if b.model == NO_MODEL else "wall_s"

    def values(side: int, key: str) -> list[float]:
        own = [r[side] for r in rounds]
        per = [max(s["sampled_edges"], 1) if work == "different" else 1 for s in own]
        return [(s.get(key) or 0.0) / n for s, n in zip(own, per, strict=True)]

    found = paired_ratio(values(0, time), values(1, time), b.seed)
    device = paired_ratio(values(0, "device_time_s"), values(1, "device_time_s"), b.seed)
    calibration = calibrations.get(b.device)
    floor = None if calibration is None else calibration.floor(len(rounds))
    row: Row = {
        "pair": f"{a.id}-{b.id}",
        "first": first,
        "second": second,
        "dataset": b.dataset,
        "model": b.model,
        "device": b.device,
        "batch_size": b.batch_size,
        "fanouts": "/".join(map(str, b.fanouts)),
        "rounds": len(rounds),
        "work_class": work,
        "ratio": found.median,
        "ratio_ci_low": found.low,
        "ratio_ci_high": found.high,
        "device_ratio": device.median,
        "noise_floor": floor,
        "verdict": verdict(found, floor or 0.0),
    }
    return [row]
