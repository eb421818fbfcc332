"""Epoch time by phase and system, one panel per dataset and model; failures are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.plots import style
from gnnbench.results.labels import system_label
from gnnbench.results.reader import Run
from gnnbench.results.schema import PHASES

Row = dict[str, Any]
PARTS = (*PHASES, "other")


def figure(run: Run) -> Figure | None:
    """Stacked phases, a marker for the measured wall time with its 95 % interval.

    A cell without a time is an empty hatched slot with its status; a bar of different work than the
    reference's is marked. Groups of which nothing could run are named below the figure.
    """
    if not run.cells:
        return None
    found = style.groups(run.cells)
    drawn = {k: rows for k, rows in found.items() if not _absent(rows)} or found
    widest = max(len(rows) for rows in drawn.values())
    result, axes = style.panels(len(drawn), 1.4 + 1.0 * widest)
    for ax, ((dataset, model), rows) in zip(axes, drawn.items(), strict=True):
        _panel(ax, rows)
        ax.set_title(f"{dataset}, {model}", fontsize=9)
        ax.set_ylabel("time per epoch [s]" + _cut(rows), fontsize=8)
    result.suptitle(f"Epoch time by phase\n{style.setting(run.cells)}", fontsize=10)
    result.legend(
        handles=_legend(run.cells), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    if absent := [k for k in found if k not in drawn]:
        text = "not here: " + ", ".join(f"{d} ({m})" for d, m in absent)
        result.supxlabel(text, fontsize=8)
    return result


def _absent(rows: Sequence[Row]) -> bool:
    return all(r["status"] == "missing_dep" for r in rows)


def _cut(rows: Sequence[Row]) -> str:
    batches = {(r["batches"], r["epoch_batches"]) for r in rows if r.get("batches")}
    cut = {b for b, whole in batches if whole and b < whole}
    return f"\n(first {max(cut)} batches)" if cut else ""


def _panel(ax: Axes, rows: Sequence[Row]) -> None:
    top = max((r["ci_high_s"] or r["epoch_wall_s"] or 0.0 for r in rows), default=0.0) or 1.0
    for x, row in enumerate(rows):
        if row["epoch_wall_s"] is None or row["status"] == "incorrect":
            _failure(ax, x, row, top)
        else:
            _bar(ax, x, row, top)
    ax.set_xticks(range(len(rows)), [_label(r) for r in rows], fontsize=8)
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.set_ylim(0, top * 1.2)
    ax.tick_params(axis="y", labelsize=8)


def _label(row: Row) -> str:
    name = system_label(row, "\n").replace("-native-", "-native-\n")
    if row["stand_in_for"]:
        name += f"\n(for {row['stand_in_for']})"
    return name


def _bar(ax: Axes, x: int, row: Row, top: float) -> None:
    bottom = 0.0
    different = row["work_class"] == "different"
    for part in PARTS:
        height = row["residual_s"] if part == "other" else row[f"{part}_time_s"]
        height = max(height or 0.0, 0.0)
        ax.bar(
            x, height, 0.66, bottom=bottom, color=style.PHASE_COLOURS[part],
            edgecolor="black" if different else "white", linewidth=0.8 if different else 0.4,
            linestyle=(0, (3, 2)) if different else "-",
        )  # fmt: skip
        bottom += height
    wall = row["epoch_wall_s"]
    low, high = row["ci_low_s"], row["ci_high_s"]
    error = None if low is None or high is None else [[max(wall - low, 0)], [max(high - wall, 0)]]
    ax.errorbar(x, wall, yerr=error, fmt="D", color="black", markersize=3.5, capsize=3, lw=1)
    ax.annotate(
        _caption(row), (x, max(bottom, high or wall)), xytext=(0, 4), textcoords="offset points",
        ha="center", va="bottom", fontsize=7,
    )  # fmt: skip


def _caption(row: Row) -> str:
    lines = []
    if row["status"] != "ok":
        lines.append(row["status"])
    if row["work_class"] == "different":
        lines.append("different work")
    elif row["speedup"] is not None:
        lines.append(f"{row['speedup']:.2f}x")
    if row["doubtful"]:
        lines.append("doubtful")
    return "\n".join(lines)


def _failure(ax: Axes, x: int, row: Row, top: float) -> None:
    ax.bar(x, top, 0.66, color="white", edgecolor="#999999", hatch="//", linewidth=0.8)
    ax.text(
        x, top / 2, row["status"], rotation=90, ha="center", va="center", fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip


def _legend(rows: Sequence[Row]) -> list[Any]:
    handles: list[Any] = [
        Patch(facecolor=style.PHASE_COLOURS[p], label=style.LABELS[p]) for p in PARTS
    ]
    handles.append(
        Line2D([], [], color="black", marker="D", markersize=3.5, lw=1,
               label="measured wall time, 95 % interval")
    )  # fmt: skip
    if any(r["speedup"] is not None for r in rows):
        reference = style.common(rows, "reference")
        handles.append(Line2D([], [], lw=0, label=f"1.00x: epoch time of {reference} / its own"))
    if any(r["epoch_wall_s"] is None or r["status"] == "incorrect" for r in rows):
        handles.append(Patch(facecolor="white", edgecolor="#999999", hatch="//", label="no result"))
    if any(r["work_class"] == "different" for r in rows):
        handles.append(
            Patch(facecolor="white", edgecolor="black", linestyle=(0, (3, 2)),
                  label="different work: do not compare heights")
        )  # fmt: skip
    return handles
