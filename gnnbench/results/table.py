"""The short table of a run, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from gnnbench.results.labels import system_label
from gnnbench.results.schema import PHASES

Row = dict[str, Any]


def seconds(value: float | None) -> str:
    """A time with a unit, three significant digits."""
    if value is None:
        return ""
    if value == 0:
        return "0 s"
    if value >= 600:
        return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value >= 1 / factor:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.2g} us"


def ratio(row: Row, name: str) -> str:
    """``1.32x [1.29, 1.36]``."""
    if row.get(name) is None:
        return ""
    low, high = row.get(f"{name}_ci_low"), row.get(f"{name}_ci_high")
    interval = f" [{low:.2f}, {high:.2f}]" if low is not None and low == low else ""
    return f"{row[name]:.2f}x{interval}"


def half_width(row: Row) -> str:
    """Half of the epoch time's interval over its median."""
    wall, low, high = (row.get(k) for k in ("epoch_wall_s", "ci_low_s", "ci_high_s"))
    if not wall or low is None or high is None or low != low:
        return ""
    return f"{(high - low) / 2 / wall:.1%}"


HEAD = ("dataset", "model", "system", "status")
TIMES = ("epoch", "+-", *(p.replace("_", " ") for p in PHASES), "other", "sample/batch")
RATIOS = ("speed-up", "sample speed-up")
COLUMNS = (*HEAD, *TIMES, *RATIOS, "work", "verdict")


def cells_table(rows: Sequence[Row], show_different: bool = False) -> Table:
    """One line per cell. For ``different`` work ratios appear only when asked for, as such."""
    return _table(
        COLUMNS, [dict(zip(COLUMNS, _line(r, show_different), strict=True)) for r in rows]
    )


def narrow_tables(rows: Sequence[Row], show_different: bool = False) -> list[Table]:
    """The same in 80 columns: times, then comparison, for every dataset and model.

    Sampling time per batch is left out.
    """
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        line = dict(zip(COLUMNS, _line(row, show_different), strict=True))
        groups.setdefault(f"{row['dataset']}, {row['model']}", []).append(line)
    found = []
    for title, lines in groups.items():
        found.append(_table(("system", "status", *TIMES[:-1]), lines, gap=1, title=title))
        compared = [line for line in lines if line["work"] or line["verdict"]]
        if len(compared) > 1:
            found.append(_table(("system", *RATIOS, "work", "verdict"), compared, gap=1))
    return found


def _table(
    columns: Sequence[str], lines: Sequence[dict[str, str]], gap: int = 2, title: str = ""
) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0), title=title or None,
        title_justify="left",
    )  # fmt: skip
    for name in columns:
        right = name in TIMES[2:] or name in RATIOS
        table.add_column(
            name, justify="right" if right else "left", overflow="fold",
            no_wrap=name not in ("dataset", "system"),
        )  # fmt: skip
    for line in lines:
        table.add_row(*(line[name] for name in columns))
    return table


def _line(row: Row, show_different: bool) -> list[str]:
    system = system_label(row)
    if row.get("stand_in_for"):
        system += f" (for {row['stand_in_for']})"
    if row.get("doubtful"):
        system += " (?)"
    head = [row["dataset"], row["model"], system, row["status"]]
    wall = row.get("epoch_wall_s")
    if wall is None:
        return [*head, *[""] * (len(COLUMNS) - len(head))]
    half = half_width(row)
    sample = row.get("sample_time_s")
    per_batch = sample / row["batches"] if sample is not None and row.get("batches") else None
    speedups = [ratio(row, "speedup"), ratio(row, "sample_speedup")]
    if row.get("work_class") == "different" and show_different:
        speedups = [
            f"{row[f'{p}speedup_per_edge']:.2f}x/edge {row[f'{p}speedup_per_batch']:.2f}x/batch"
            for p in ("", "sample_")
        ]
    times = [seconds(row.get(f"{phase}_time_s")) for phase in PHASES]
    return [
        *head, seconds(wall), half, *times, seconds(row.get("residual_s")), seconds(per_batch),
        *speedups, row.get("work_class") or "", row.get("verdict") or "",
    ]  # fmt: skip


def remarks(rows: Sequence[Row], show_different: bool = False) -> list[str]:
    """What the table cannot say: reasons, doubts, limits."""
    failed: dict[tuple[str, str, str, str], list[str]] = {}
    for r in rows:
        if r["reason"]:
            key = (r["dataset"], r["model"], r["status"], r["reason"])
            failed.setdefault(key, []).append(system_label(r))
    found = [
        f"{', '.join(systems)} on {dataset} ({model}): {status}: {reason}"
        for (dataset, model, status, reason), systems in failed.items()
    ]
    found += [
        f"{system_label(r)} on {r['dataset']} ({r['model']}) is doubtful: {r['doubtful']}"
        for r in rows
        if r.get("doubtful")
    ]
    found += [
        f"{system_label(r)} on {r['dataset']} ({r['model']}): {r['remark']}"
        for r in rows
        if r.get("remark")
    ]
    if any(0 < (r.get("batches") or 0) < (r.get("epoch_batches") or 0) for r in rows):
        found.append("epochs were cut to their first batches (max_batches)")
    judged = [r for r in rows if r.get("speedup") is not None]
    if bare := sorted({r["device"] for r in judged if r.get("noise_floor") is None}):
        found.append(
            f"never calibrated for {', '.join(bare)}, so the interval decides alone;"
            " 'gnnbench calibrate' measures this machine's noise floor"
        )
    hidden = [r for r in rows if r.get("work_class") == "different"]
    if hidden and not show_different:
        names = ", ".join(dict.fromkeys(system_label(r) for r in hidden))
        found.append(
            f"{names}: different work, so no ratio; --show-different gives it per edge and batch"
        )
    return list(dict.fromkeys(found))
