"""Rows of ``roofline.csv``: measured peaks, kernels, and the share of a peak that each reaches."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import labels
from gnnbench.core.cell import Cell
from gnnbench.harness.reduce.comparison import level, number
from gnnbench.measure import machine
from gnnbench.schema import RooflineRow
from gnnbench.schema.reports import Profile
from gnnbench.schema.roofline import CeilingRecord, KernelRecord, RooflineRecord

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan
    from gnnbench.schema.samples import EpochSample

Trials = Sequence[Sequence["EpochSample"]]
Key = tuple[str | int | None, ...]
R = TypeVar("R", CeilingRecord, KernelRecord)

CEILING: Final = "ceiling"
OF_CEILING = ("name", "level", "row_bytes", "level_bytes", "unit")
OF_KERNEL = ("name", "direction", "layer", "mode", "width", "heads", "unit")
_ceiling_key, _kernel_key = itemgetter(*OF_CEILING), itemgetter(*OF_KERNEL)  # a ``Key`` of a record
COUNTED = (
    "counters", "l1_hit", "l2_hit", "memory_bytes", "flops_run", "compute_throughput",
    "memory_throughput",
)  # fmt: skip
WORD_BYTES = 4  # of a single read
MEMORY, FMA, ROWS = "memory", "fma", "rows"


def roofline_rows(plan: Plan, journal: JournalState) -> list[RooflineRow]:
    """The peaks of every device and number of threads, then the kernels of every cell."""
    cells = [
        cell
        for cell in plan.cells
        if cell.id not in journal.failures and any(s.roofline for s in journal.measured(cell))
    ]
    groups = group_by(cells, lambda c: (c.device, machine.resolve_threads(c.threads)))
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


def _ceilings(trials: Trials) -> list[RooflineRow]:
    rows = []
    for key in dict.fromkeys(_ceiling_key(r) for r in _each(trials, _ceilings_of)):
        row = _rated(trials, key)
        matching = (r for r in _each(trials, _ceilings_of) if _ceiling_key(r) == key)
        row.remark = next((r["remark"] for r in matching if r["remark"]), "")
        rows.append(row)
    return rows


def _kernels(cell: Cell, journal: JournalState) -> list[RooflineRow]:
    trials = journal.by_trial(cell)
    profile = journal.profiles.get(cell.id, Profile())
    counters = {tuple(getattr(r, name) for name in OF_KERNEL[:-1]): r for r in profile.counters}
    not_counted = RooflineRow(counters=f"none: {profile.error or 'not counted'}")
    rows = []
    for key in dict.fromkeys(_kernel_key(r) for r in _each(trials, _kernels_of)):
        row = _rated(trials, key)
        _add_work(row, [r for trial in trials for s in trial if (r := _kernel(s, key))])
        _add_bound(row, trials, key)
        measured = counters.get(key[:-1], not_counted)
        row = replace(row, **{name: getattr(measured, name) for name in COUNTED})
        if row.flops and row.memory_bytes:
            row.memory_intensity = row.flops / row.memory_bytes
        rows.append(row)
    return rows


def _ceilings_of(sample: EpochSample) -> list[CeilingRecord]:
    return [r for r in sample.roofline or () if r["kind"] == CEILING]


def _kernels_of(sample: EpochSample) -> list[KernelRecord]:
    return [r for r in sample.roofline or () if r["kind"] != CEILING]


def _each(trials: Trials, records: Callable[[EpochSample], list[R]]) -> Iterator[R]:
    """All records in the order of their measurement."""
    return (r for trial in trials for s in trial for r in records(s))


def _kernel(sample: EpochSample, key: Key) -> KernelRecord | None:
    return next((r for r in _kernels_of(sample) if _kernel_key(r) == key), None)


def _record(sample: EpochSample, key: Key) -> RooflineRecord | None:
    """The first record of a kernel or peak in a sample."""
    if len(key) == len(OF_KERNEL):
        return _kernel(sample, key)
    return next((r for r in _ceilings_of(sample) if _ceiling_key(r) == key), None)


def _rated(trials: Trials, key: Key) -> RooflineRow:
    """A row with the rate of a kernel or peak and its interval over trials."""
    records = [r for trial in trials for s in trial if (r := _record(s, key))]

    def rate(sample: EpochSample) -> float | None:
        record = _record(sample, key)
        return None if record is None else _rate(record)

    value = level(trials, rate)
    row = RooflineRow(
        kind=records[0]["kind"], value=value.value, low=number(value.low), high=number(value.high),
        n=value.n, spread=statistics.median(r["spread"] for r in records),
        time_s=statistics.median(r["seconds"] for r in records),
    )  # fmt: skip
    for name, part in zip(
        OF_KERNEL if len(key) == len(OF_KERNEL) else OF_CEILING, key, strict=True
    ):
        setattr(row, name, part)
    return row


def _rate(record: RooflineRecord) -> float:
    return record["amount"] / record["seconds"]


def _add_work(row: RooflineRow, records: Sequence[KernelRecord]) -> None:
    """Add counted operations and bytes: medians over the measured batches."""
    row.flops = flops = round(statistics.median(r["flops"] for r in records))
    row.least_bytes = least = round(statistics.median(r["bytes"] for r in records))
    row.asked_bytes = requested = round(statistics.median(r["asked"] for r in records))
    row.reads = round(statistics.median(r["reads"] for r in records))
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

    def share(sample: EpochSample) -> float | None:
        record, bound = _kernel(sample, key), _bound(sample, key)
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


def _bound(sample: EpochSample, key: Key) -> tuple[str, float] | None:
    """Name and value, in the kernel's unit, of the lowest peak over it in one round."""
    record = _kernel(sample, key)
    if record is None:
        return None
    peaks = {(r["name"], r["level"], r["row_bytes"]): _rate(r) for r in _ceilings_of(sample)}
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
