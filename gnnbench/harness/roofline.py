"""Rows of ``roofline.csv``: rates of ceilings and kernels, and how near one comes to the other."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnnbench.analysis.labels import labels
from gnnbench.core.cell import Cell
from gnnbench.harness.pair_columns import level, number
from gnnbench.measure import machine

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan

Record = dict[str, Any]
Row = dict[str, Any]
Key = tuple[Any, ...]

CEILING, KERNEL = "ceiling", "kernel"
OF_CEILING = ("name", "level", "row_bytes", "level_bytes", "unit")
OF_KERNEL = ("name", "direction", "layer", "mode", "width", "heads", "unit")
MEASURED = ("counters", "l1_hit", "l2_hit", "memory_bytes", "flops_run")
WORD = 4  # bytes of a single read
MEMORY, FMA, ROWS = "memory", "fma", "rows"


def roofline_rows(plan: Plan, journal: JournalState) -> list[Row]:
    """The ceilings of every device and number of threads, then the kernels of every cell."""
    cells = [c for c in plan.cells if c.id not in journal.failures and _told(c, journal)]
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.device, machine.resolve_threads(cell.threads)), []).append(cell)
    named = labels([asdict(c) for c in plan.cells])
    found: list[Row] = []
    for (device, threads), group in groups.items():
        where = {"device": device, "threads": threads}
        lives = [life for cell in group for life in journal.by_trial(cell)]
        found += [{**row, **where} for row in _ceilings(lives)]
        for cell in group:
            about = {"id": cell.id, "cell": named.of(asdict(cell)), **where}
            found += [{**row, **about} for row in _kernels(cell, journal)]
    return sorted(found, key=lambda r: r["kind"])


def _told(cell: Cell, journal: JournalState) -> bool:
    return any(s.get("roofline") for s in journal.measured(cell))


def _ceilings(lives: Sequence[Sequence[Record]]) -> list[Row]:
    found = []
    for key in _keys(lives, CEILING, OF_CEILING):
        row, _ = _rated(lives, CEILING, OF_CEILING, key)
        remarks = [r["remark"] for life in lives for s in life for r in _records(s) if _is(r, key)]
        found.append({**row, "remark": next((text for text in remarks if text), "")})
    return found


def _kernels(cell: Cell, journal: JournalState) -> list[Row]:
    lives = journal.by_trial(cell)
    told = journal.profiles.get(cell.id, {})
    seen = {_key(r, OF_KERNEL[:-1]): r for r in told.get("counters", ())}
    unseen = {"counters": f"none: {told.get('error', 'nobody looked')}"}
    found = []
    for key in _keys(lives, KERNEL, OF_KERNEL):
        row, own = _rated(lives, KERNEL, OF_KERNEL, key)
        row |= _counted(own)
        row |= _below(lives, key, row)
        counters = seen.get(key[:-1], unseen)
        row |= {name: counters.get(name) for name in MEASURED}
        if row["flops"] and row["memory_bytes"]:
            row["memory_intensity"] = row["flops"] / row["memory_bytes"]
        found.append(row)
    return found


def _records(sample: Record) -> list[Record]:
    found: list[Record] = sample.get("roofline") or []
    return found


def _key(record: Mapping[str, Any], names: Sequence[str]) -> Key:
    return tuple(record[name] for name in names)


def _is(record: Record, key: Key) -> bool:
    names = OF_CEILING if record["kind"] == CEILING else OF_KERNEL
    return _key(record, names) == key


def _keys(lives: Sequence[Sequence[Record]], kind: str, names: Sequence[str]) -> list[Key]:
    """What was measured, in its order."""
    return list(
        dict.fromkeys(
            _key(r, names) for life in lives for s in life for r in _records(s) if r["kind"] == kind
        )
    )


def _found(sample: Record, key: Key) -> Record | None:
    return next((r for r in _records(sample) if _is(r, key)), None)


def _rated(
    lives: Sequence[Sequence[Record]], kind: str, names: Sequence[str], key: Key
) -> tuple[Row, list[Record]]:
    """Rate with its interval over lives, and the records that it is of."""
    own = [r for life in lives for s in life if (r := _found(s, key)) is not None]

    def rate(sample: Record) -> float | None:
        record = _found(sample, key)
        return None if record is None else _rate(record)

    value = level(lives, rate)
    row: Row = {
        "kind": kind, **dict(zip(names, key, strict=True)), "value": value.value,
        "low": number(value.low), "high": number(value.high), "n": value.n,
        "spread": statistics.median(r["spread"] for r in own),
        "time_s": statistics.median(r["seconds"] for r in own),
    }  # fmt: skip
    return row, own


def _rate(record: Record) -> float:
    return float(record["amount"] / record["seconds"])


def _counted(own: Sequence[Record]) -> Row:
    """Medians over the batches that were looked at."""
    flops, least, asked, reads = (
        round(statistics.median(r[name] for r in own))
        for name in ("flops", "bytes", "asked", "reads")
    )
    return {
        "flops": flops, "least_bytes": least, "asked_bytes": asked, "reads": reads,
        "intensity": flops / least if flops else None,
        "asked_intensity": flops / asked if flops else None,
    }  # fmt: skip


def _below(lives: Sequence[Sequence[Record]], key: Key, row: Row) -> Row:
    """The ceiling that a kernel is held against, and how near it comes: round by round, so that
    what slows both is in neither."""
    bounds = [b for life in lives for s in life if (b := _bound(s, key)) is not None]
    if not bounds:
        return {"bound": "", "doubtful": ""}
    names = [name for name, _ in bounds]
    bound = max(dict.fromkeys(names), key=names.count)

    def share(sample: Record) -> float | None:
        record, found = _found(sample, key), _bound(sample, key)
        return None if record is None or found is None else _rate(record) / found[1]

    found = level(lives, share)
    low = number(found.low)
    # Random reads may share a line: they have a ceiling to be seen beside, not a bound.
    above = bound != ROWS and low is not None and low > 1
    return {
        "bound": bound,
        "ceiling": statistics.median(value for _, value in bounds),
        "of_ceiling": found.value,
        "of_ceiling_low": low,
        "of_ceiling_high": number(found.high),
        "doubtful": _ABOVE.format(bound) if above else "",
    }


_ABOVE = "above its ceiling ({}) by more than the interval: count, ceiling or clock is wrong"


def _bound(sample: Record, key: Key) -> tuple[str, float] | None:
    """Name and value, in the kernel's unit, of the lowest roof over it in one round."""
    record = _found(sample, key)
    if record is None:
        return None
    roofs = {
        (r["name"], r["level"], r["row_bytes"]): _rate(r)
        for r in _records(sample)
        if r["kind"] == CEILING
    }
    if record["reads"]:
        single = roofs.get((ROWS, MEMORY, WORD))
        return None if single is None else (ROWS, single / WORD)
    bandwidth = max((v for (n, at, _), v in roofs.items() if at == MEMORY and n != ROWS), default=0)
    if not bandwidth:
        return None
    if not record["flops"]:
        return MEMORY, bandwidth
    reached = record["flops"] / record["bytes"] * bandwidth
    peak = roofs.get((FMA, "", 0), reached)
    return (FMA, peak) if peak < reached else (MEMORY, reached)
