"""Rows of ``roofline.csv``: measured peaks, kernels, and the share of a peak that each reaches."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from gnnbench.analysis.labels import labels
from gnnbench.core.cell import Cell
from gnnbench.harness.reduce.comparison import level, number
from gnnbench.measure import machine
from gnnbench.schema import RooflineRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Plan

Trials = Sequence[Sequence["Record"]]
Key = tuple[str | int | None, ...]

CEILING, KERNEL = "ceiling", "kernel"
OF_CEILING = ("name", "level", "row_bytes", "level_bytes", "unit")
OF_KERNEL = ("name", "direction", "layer", "mode", "width", "heads", "unit")
MEASURED = ("counters", "l1_hit", "l2_hit", "memory_bytes", "flops_run")
WORD_BYTES = 4  # of a single read
MEMORY, FMA, ROWS = "memory", "fma", "rows"


def roofline_rows(plan: Plan, journal: JournalState) -> list[RooflineRow]:
    """The peaks of every device and number of threads, then the kernels of every cell."""
    cells = [c for c in plan.cells if c.id not in journal.failures and _has_records(c, journal)]
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.device, machine.resolve_threads(cell.threads)), []).append(cell)
    label_of = labels([asdict(c) for c in plan.cells]).of
    rows: list[RooflineRow] = []
    for (device, threads), group in groups.items():
        trials = [trial for cell in group for trial in journal.by_trial(cell)]
        own = _ceilings(trials)
        for cell in group:
            for row in _kernels(cell, journal):
                own.append(replace(row, id=cell.id, cell=label_of(asdict(cell))))
        rows += [replace(row, device=device, threads=threads) for row in own]
    return sorted(rows, key=lambda r: r.kind)


def _has_records(cell: Cell, journal: JournalState) -> bool:
    return any(s.get("roofline") for s in journal.measured(cell))


def _ceilings(trials: Trials) -> list[RooflineRow]:
    rows = []
    for key in _keys(trials, CEILING, OF_CEILING):
        row = _rated(trials, CEILING, OF_CEILING, key)
        row.remark = next((r["remark"] for r in _matching(trials, key) if r["remark"]), "")
        rows.append(row)
    return rows


def _kernels(cell: Cell, journal: JournalState) -> list[RooflineRow]:
    trials = journal.by_trial(cell)
    profile = journal.profiles.get(cell.id, {})
    counters = {_key(r, OF_KERNEL[:-1]): r for r in profile.get("counters", ())}
    not_counted = {"counters": f"none: {profile.get('error', 'nobody looked')}"}
    rows = []
    for key in _keys(trials, KERNEL, OF_KERNEL):
        row = _rated(trials, KERNEL, OF_KERNEL, key)
        _add_work(row, _first_matches(trials, key))
        _add_bound(row, trials, key)
        measured = counters.get(key[:-1], not_counted)
        for name in MEASURED:
            setattr(row, name, measured.get(name, "" if name == "counters" else None))
        if row.flops and row.memory_bytes:
            row.memory_intensity = row.flops / row.memory_bytes
        rows.append(row)
    return rows


def _records(sample: Record) -> list[Record]:
    records: list[Record] = sample.get("roofline") or []
    return records


def _matching(trials: Trials, key: Key) -> list[Record]:
    """The records of a kernel or peak, of all samples."""
    return [r for trial in trials for s in trial for r in _records(s) if _is(r, key)]


def _key(record: Record, names: Sequence[str]) -> Key:
    return tuple(record[name] for name in names)


def _is(record: Record, key: Key) -> bool:
    names = OF_CEILING if record["kind"] == CEILING else OF_KERNEL
    return _key(record, names) == key


def _keys(trials: Trials, kind: str, names: Sequence[str]) -> list[Key]:
    """Keys of all kernels or peaks, in the order of their measurement."""
    records = (r for trial in trials for s in trial for r in _records(s) if r["kind"] == kind)
    return list(dict.fromkeys(_key(r, names) for r in records))


def _record_of(sample: Record, key: Key) -> Record | None:
    return next((r for r in _records(sample) if _is(r, key)), None)


def _rated(trials: Trials, kind: str, names: Sequence[str], key: Key) -> RooflineRow:
    """A row with the rate of a kernel or peak and its interval over trials."""
    records = _first_matches(trials, key)

    def rate(sample: Record) -> float | None:
        record = _record_of(sample, key)
        return None if record is None else _rate(record)

    value = level(trials, rate)
    row = RooflineRow(
        kind=kind, value=value.value, low=number(value.low), high=number(value.high), n=value.n,
        spread=statistics.median(r["spread"] for r in records),
        time_s=statistics.median(r["seconds"] for r in records),
    )  # fmt: skip
    for name, part in zip(names, key, strict=True):
        setattr(row, name, part)
    return row


def _first_matches(trials: Trials, key: Key) -> list[Record]:
    """The first record of a kernel or peak in each sample that has one."""
    records = (_record_of(s, key) for trial in trials for s in trial)
    return [r for r in records if r is not None]


def _rate(record: Record) -> float:
    return float(record["amount"] / record["seconds"])


def _add_work(row: RooflineRow, records: Sequence[Record]) -> None:
    """Add counted operations and bytes: medians over the measured batches."""
    flops, least, requested, reads = (
        round(statistics.median(r[name] for r in records))
        for name in ("flops", "bytes", "asked", "reads")
    )
    row.flops, row.least_bytes, row.asked_bytes, row.reads = flops, least, requested, reads
    row.intensity = flops / least if flops else None
    row.asked_intensity = flops / requested if flops else None


def _add_bound(row: RooflineRow, trials: Trials, key: Key) -> None:
    """Add the peak that bounds a kernel, and the share of it that the kernel reaches.

    The share is computed round by round: what slows both down is in neither.
    """
    bounds = [b for trial in trials for s in trial if (b := _bound(s, key)) is not None]
    if not bounds:
        return
    names = [name for name, _ in bounds]
    row.bound = max(dict.fromkeys(names), key=names.count)

    def share(sample: Record) -> float | None:
        record, bound = _record_of(sample, key), _bound(sample, key)
        return None if record is None or bound is None else _rate(record) / bound[1]

    of_ceiling = level(trials, share)
    low = number(of_ceiling.low)
    row.ceiling = statistics.median(value for _, value in bounds)
    row.of_ceiling, row.of_ceiling_low = of_ceiling.value, low
    row.of_ceiling_high = number(of_ceiling.high)
    # Random reads may share a cache line: their peak is a comparison, not a bound.
    if row.bound != ROWS and low is not None and low > 1:
        row.doubtful = _ABOVE.format(row.bound)


_ABOVE = "above its ceiling ({}) by more than the interval: count, ceiling or clock is wrong"


def _bound(sample: Record, key: Key) -> tuple[str, float] | None:
    """Name and value, in the kernel's unit, of the lowest peak over it in one round."""
    record = _record_of(sample, key)
    if record is None:
        return None
    peaks = {
        (r["name"], r["level"], r["row_bytes"]): _rate(r)
        for r in _records(sample)
        if r["kind"] == CEILING
    }
    if record["reads"]:
        single = peaks.get((ROWS, MEMORY, WORD_BYTES))
        return None if single is None else (ROWS, single / WORD_BYTES)
    bandwidth = max(
        (v for (n, place, _), v in peaks.items() if place == MEMORY and n != ROWS), default=0
    )
    if not bandwidth:
        return None
    if not record["flops"]:
        return MEMORY, bandwidth
    reached = record["flops"] / record["bytes"] * bandwidth
    peak = peaks.get((FMA, "", 0), reached)
    return (FMA, peak) if peak < reached else (MEMORY, reached)
