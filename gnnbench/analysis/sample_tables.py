"""The short tables of a look inside samples: stages and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis.table_layout import Part
from gnnbench.core.units import significant, time
from gnnbench.schema import STAGE_NAMES

Row = Mapping[str, Any]

LONGEST = 40  # name of a kernel; cuBLAS's have 120 characters
WHOLE = "batch"
STAGES = tuple(name for name in STAGE_NAMES if name != WHOLE)


TITLE = "Inside a batch: its stages, looked at apart from the timed epochs"
NOTE = (
    "whole call: one batch sampled by itself, after the timed epochs (ms/batch is of whole epochs,"
    " and judged); stages are of another pass and need not add up to it"
)


def stages_table(stages: Sequence[Row]) -> Part:
    """One line per cell: each stage's time per batch over all hops, and memory.

    Times are the device's where there is one, the host's else.
    """
    names = ("cell", "whole call", *(s.replace("_", " ") for s in STAGES), "memory", "over blocks")
    lines = []
    for cell in dict.fromkeys(r["id"] for r in stages):
        own = [r for r in stages if r["id"] == cell]
        whole = next(r for r in own if r["stage"] == WHOLE)
        times = [time(stage_time(own, stage)) for stage in STAGES]
        extra, times_blocks = whole.get("extra_bytes"), whole.get("extra_ratio")
        memory = "" if extra is None else f"{significant(extra / 2**20)} MiB"
        share = "" if times_blocks is None else f"{times_blocks:.2f}"
        values = (own[0]["cell"], time(_time(whole)), *times, memory, share)
        lines.append(dict(zip(names, values, strict=True)))
    return Part([n for n in names if any(line[n] for line in lines)], lines, TITLE, NOTE)


def stage_time(rows: Sequence[Row], stage: str) -> float | None:
    """Time of a stage over all hops of one cell, or None where it has no such stage."""
    found = [_time(r) or 0.0 for r in rows if r["stage"] == stage]
    return sum(found) if found else None


def _time(row: Row) -> float | None:
    device = row.get("device_s")
    return row.get("host_s") if device is None else device


def kernels_table(kernels: Sequence[Row], most: int = 3) -> Part:
    """The longest kernels of each cell; what the GPU does not tell says ``unknown``."""
    names = ("cell", "kernel", "calls", "device", "grid", "block", "registers", "occupancy")
    lines = []
    for cell in dict.fromkeys(r["id"] for r in kernels):
        for row in [r for r in kernels if r["id"] == cell][:most]:
            occupancy = row.get("occupancy")
            values = (
                row["cell"], _short(row["kernel"]), f"{row['calls']:g}", time(row["device_s"]),
                row["grid"] or "unknown", row["block"] or "unknown", _known(row.get("registers")),
                "unknown" if occupancy is None else f"{occupancy:.0%}",
            )  # fmt: skip
            lines.append(dict(zip(names, values, strict=True)))
    return Part(names, lines)


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _short(name: str) -> str:
    """A kernel's name without its arguments and template; the beginning of a very long one."""
    head = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    for mark in ("<", "("):
        head = head.partition(mark)[0] or head
    name = head.rpartition("::")[2] or head
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
