"""The short tables of a run that samples and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from gnnbench.cell import NO_MODEL
from gnnbench.results.labels import system_label
from gnnbench.results.schema import STAGE_NAMES
from gnnbench.results.table import half_width, ratio, seconds

Row = dict[str, Any]

WHOLE = "batch"
STAGES = tuple(name for name in STAGE_NAMES if name != WHOLE)


def is_sampling(rows: Sequence[Row]) -> bool:
    """Whether no cell of a run has a model."""
    return bool(rows) and all(r["model"] == NO_MODEL for r in rows)


def sampling_tables(
    rows: Sequence[Row], stages: Sequence[Row], kernels: Sequence[Row], narrow: bool = False
) -> list[Table]:
    """Times and comparison, then what was looked into; ``narrow``: each in 80 columns."""
    found = _narrow(rows) if narrow else [samples_table(rows)]
    if stages:
        found.append(stages_table(stages))
    if kernels:
        found.append(kernels_table(kernels))
    return found


def per_batch(row: Row, key: str = "sample_time_s") -> float | None:
    """A time of an epoch over its batches."""
    value, batches = row.get(key), row.get("batches")
    return value / batches if value is not None and batches else None


def edges_per_second(row: Row) -> float | None:
    """Sampled edges over the wall time of the samples."""
    time, edges = row.get("sample_time_s"), row.get("sampled_edges")
    return edges / time if time and edges is not None else None


WHAT = ("dataset", "batch", "fanouts", "threads")
TIMES = ("ms/batch", "+-", "device ms", "M edges/s")
COMPARED = ("speed-up", "work", "verdict")


def samples_table(rows: Sequence[Row]) -> Table:
    """One line per cell: time per batch, edges per second, ratio to the reference."""
    return _table((*WHAT, "system", "status", *TIMES, *COMPARED), [_line(r) for r in rows])


def _narrow(rows: Sequence[Row]) -> list[Table]:
    """Times, then comparison, for every dataset, batch size, fanouts and number of threads."""
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        line = _line(row)
        title = "{dataset}, batch {batch}, {fanouts}, {threads} threads".format(**line)
        groups.setdefault(title, []).append(line)
    found = []
    for title, lines in groups.items():
        found.append(_table(("system", "status", *TIMES), lines, title))
        compared = [line for line in lines if line["work"] or line["verdict"]]
        if len(compared) > 1:
            found.append(_table(("system", *COMPARED), compared))
    return found


def _line(row: Row) -> dict[str, str]:
    rate = edges_per_second(row)
    name = system_label(row)
    if row.get("stand_in_for"):
        name += f" (for {row['stand_in_for']})"
    return {
        "dataset": row["dataset"],
        "batch": str(row["batch_size"]),
        "fanouts": row["fanouts"],
        "threads": str(row["threads"]),
        "system": name + " (?)" * bool(row.get("doubtful")),
        "status": row["status"],
        "ms/batch": _milliseconds(per_batch(row)),
        "+-": half_width(row),
        "device ms": _milliseconds(per_batch(row, "device_time_s")),
        "M edges/s": "" if rate is None else f"{rate / 1e6:.3g}",
        "speed-up": ratio(row, "sample_speedup"),
        "work": row.get("work_class") or "",
        "verdict": row.get("verdict") or "",
    }


def stages_table(stages: Sequence[Row]) -> Table:
    """One line per cell: each stage's time per batch over all hops, and memory.

    Times are the device's where there is one, the host's else.
    """
    names = ("cell", "whole call", *(s.replace("_", " ") for s in STAGES), "memory", "ratio")
    lines = []
    for cell in dict.fromkeys(r["id"] for r in stages):
        own = [r for r in stages if r["id"] == cell]
        whole = next(r for r in own if r["stage"] == WHOLE)
        times = [seconds(stage_time(own, stage)) for stage in STAGES]
        extra, times_blocks = whole.get("extra_bytes"), whole.get("extra_ratio")
        memory = "" if extra is None else f"{extra / 2**20:.3g} MiB"
        share = "" if times_blocks is None else f"{times_blocks:.2f}"
        values = (own[0]["cell"], seconds(_time(whole)), *times, memory, share)
        lines.append(dict(zip(names, values, strict=True)))
    return _table(names, lines)


def stage_time(rows: Sequence[Row], stage: str) -> float | None:
    """Time of a stage over all hops of one cell, or None where it has no such stage."""
    found = [_time(r) or 0.0 for r in rows if r["stage"] == stage]
    return sum(found) if found else None


def _time(row: Row) -> float | None:
    device = row.get("device_s")
    return row.get("host_s") if device is None else device


def kernels_table(kernels: Sequence[Row], most: int = 3) -> Table:
    """The longest kernels of each cell; what the GPU does not tell says ``unknown``."""
    names = ("cell", "kernel", "calls", "device", "grid", "block", "registers", "occupancy")
    lines = []
    for cell in dict.fromkeys(r["id"] for r in kernels):
        for row in [r for r in kernels if r["id"] == cell][:most]:
            occupancy = row.get("occupancy")
            values = (
                row["cell"], _short(row["kernel"]), f"{row['calls']:g}", seconds(row["device_s"]),
                row["grid"] or "unknown", row["block"] or "unknown", _known(row.get("registers")),
                "unknown" if occupancy is None else f"{occupancy:.0%}",
            )  # fmt: skip
            lines.append(dict(zip(names, values, strict=True)))
    return _table(names, lines)


def ratio_lines(ratios: Sequence[Row]) -> list[str]:
    """The couples that the definition compares, one sentence each."""
    lines = []
    for r in ratios:
        device = f", {r['device_ratio']:.2f}x by events" if r.get("device_ratio") else ""
        per_edge = " per edge" if r["work_class"] == "different" else ""
        lines.append(
            f"{r['first']} / {r['second']} on {r['dataset']} (batch {r['batch_size']},"
            f" {r['fanouts']}): {ratio(r, 'ratio')}{per_edge}{device}; {r['work_class']} work,"
            f" {r['rounds']} rounds" + (f", {r['verdict']}" if r["verdict"] else "")
        )
    return lines


def _table(names: Sequence[str], lines: Sequence[dict[str, str]], title: str = "") -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", title=title or None, title_justify="left"
    )  # fmt: skip
    for name in names:
        left = name in ("dataset", "system", "status", "cell", "kernel", "work", "verdict")
        table.add_column(
            name, justify="left" if left else "right", overflow="fold",
            no_wrap=name not in ("system", "cell", "kernel", "grid"),
        )  # fmt: skip
    for line in lines:
        table.add_row(*(line[name] for name in names))
    return table


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value * 1e3:.4g}"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _short(name: str) -> str:
    """A kernel's name without its arguments and template."""
    head = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    for mark in ("<", "("):
        head = head.partition(mark)[0] or head
    return head.rpartition("::")[2] or head
