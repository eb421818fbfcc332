"""The short tables of a roofline: the machine's ceilings, and the kernels below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis.table_layout import Part
from gnnbench.core.units import half_width, percent, significant, time

Row = Mapping[str, Any]

CEILINGS = "Ceilings of this machine"
KERNELS = "Kernels, from empty caches, below them"
WORD = 4  # bytes of a single random read
UNITS = {"flop/s": (1e9, "GFLOP/s"), "B/s": (1e9, "GB/s"), "read/s": (1e6, "M reads/s")}


def roofline_tables(rows: Sequence[Row]) -> list[Part]:
    """One line per ceiling, one per kernel; no table of what there is none of."""
    parts = [_ceilings(rows), _kernels(rows)]
    return [part for part in parts if part.lines]


def rate(value: float | None, unit: str) -> str:
    """A rate with its unit, three significant digits."""
    if value is None:
        return ""
    factor, words = UNITS[unit]
    return f"{significant(value / factor)} {words}"


def what(row: Row) -> str:
    """A kernel in words: ``aggregate forward``."""
    return f"{row['name']} {row['direction']}".rstrip()


def _ceilings(rows: Sequence[Row]) -> Part:
    lines = []
    for row in rows:
        if row["kind"] != "ceiling":
            continue
        size = f" of {row['row_bytes']} B" if row["row_bytes"] else ""
        single = row["row_bytes"] == WORD  # told as what it is: reads
        value = row["value"] / WORD if single else row["value"]
        lines.append(
            {
                "name": f"{row['name']}{size}", "level": row["level"],
                "holds": _size(row["level_bytes"]), "device": row["device"],
                "threads": str(row["threads"]),
                "rate": rate(value, "read/s" if single else row["unit"]), "+-": _half(row),
                "turn to turn": percent(row["spread"]), "remark": row["remark"],
            }
        )  # fmt: skip
    heads = ["name", "level", "holds", "device", "threads", "rate", "+-", "turn to turn", "remark"]
    return Part([h for h in heads if any(line[h] for line in lines)], lines, CEILINGS)


def _kernels(rows: Sequence[Row]) -> Part:
    lines = []
    for row in rows:
        if row["kind"] != "kernel":
            continue
        intensity = row["intensity"]
        lines.append(
            {
                "cell": row["cell"] + " (?)" * bool(row["doubtful"]), "kernel": what(row),
                "layer": str(row["layer"] or ""), "width": str(row["width"] or ""),
                "time": time(row["time_s"]), "rate": rate(row["value"], row["unit"]),
                "+-": _half(row), "flop/B": "" if intensity is None else f"{intensity:.3g}",
                "bound": row["bound"], "of bound": percent(row["of_ceiling"]),
                "L1 hits": percent(row["l1_hit"]), "L2 hits": percent(row["l2_hit"]),
            }
        )  # fmt: skip
    heads = [
        "cell", "kernel", "layer", "width", "time", "rate", "+-", "flop/B", "bound", "of bound",
        "L1 hits", "L2 hits",
    ]  # fmt: skip
    return Part([h for h in heads if any(line[h] for line in lines)], lines, KERNELS)


def remarks(rows: Sequence[Row]) -> list[str]:
    """What a reader must know: kernels above their ceilings, and why there are no counters."""
    found = [
        f"{row['cell']}: {what(row)}, layer {row['layer']}: {row['doubtful']}"
        for row in rows
        if row["doubtful"]
    ]
    reasons = dict.fromkeys(
        row["counters"].partition(": ")[2]
        for row in rows
        if (row["counters"] or "").startswith("none")
    )
    return [*found, *(f"no hardware counters: {reason}" for reason in reasons)]


def _half(row: Row) -> str:
    return half_width(row, "value", ("low", "high"))


def _size(count: int | None) -> str:
    if not count:
        return ""
    return f"{count / 2**20:.4g} MiB" if count < 2**30 else f"{count / 2**30:.4g} GiB"
