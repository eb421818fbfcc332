"""Epoch time by phase and system, one panel per dataset and model; failures are drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.core.cell import PHASES
from gnnbench.core.units import plural, times
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric

Row = Mapping[str, Any]
PANEL = ("dataset", "model")
WHOLE = "whole"
WRAP = 38  # letters of a line of a bar's name
CUT = 8.0  # times a bar of the longer half, where longer ones are cut off: all are to be seen
ROOM = 1.7  # of a panel's width, in that of its longest bar: what is said stands behind bars
BARE = 1.05  # the same where nothing is said
PARTS = (*PHASES, "overlap", "idle", WHOLE)


def figure(run: Run) -> Figure | None:
    """Phases alone, overlap and idle time, in a row; a marker for the measured wall time.

    The marker has the 95 % interval. A bar many times as long as the others is cut off.
    A bar of which no phase is told is plain. A cell without a time has its status alone, a panel
    without any no scale; a bar of different work than the reference's is marked, and so is one in
    doubt. Groups of which nothing could run are named above the legend, which has only what is
    drawn.
    """
    if not run.cells:
        return None
    named, known = labels(run.cells), Metrics(run.metrics)
    found = style.groups(run.cells, PANEL)
    drawn = {k: rows for k, rows in found.items() if not _absent(rows)} or found
    names = [_label(r, named) for rows in drawn.values() for r in rows]
    result, axes = style.lying_panels([len(rows) for rows in drawn.values()], names)
    for ax, (key, rows) in zip(axes, drawn.items(), strict=True):
        ax.set_title(", ".join(filter(None, key)), fontsize=9)
        ax.set_xlabel("time per epoch [s]" + _cut(rows), fontsize=8)
        _panel(ax, rows, named, known)
    style.head(result, "Epoch time by phase", named, PANEL)
    absent = "; ".join(", ".join(filter(None, key)) for key in found if key not in drawn)
    result.legend(
        handles=[
            *_legend(run.cells, known),
            *style.cut_off(axes),
            *style.doubts(run.cells, pale=True),
        ],
        title="\n".join(textwrap.wrap(f"not here: {absent}", 90)) if absent else None,
        title_fontsize=8,
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        frameon=False,
    )
    return result


def _absent(rows: Sequence[Row]) -> bool:
    return all(r["status"] in ("missing_dep", "missing_data") for r in rows)


def _cut(rows: Sequence[Row]) -> str:
    batches = {(r["batches"], r["epoch_batches"]) for r in rows if r.get("batches")}
    cut = {b for b, whole in batches if whole and b < whole}
    return f", first {plural(max(cut), 'batch')}" if cut else ""


def _panel(ax: Axes, rows: Sequence[Row], named: Labels, known: Metrics) -> None:
    told = [r for r in rows if _measured(r)]
    longest = _longest([r["epoch_wall_s"] for r in told])
    whole = [r for r in told if r["epoch_wall_s"] <= longest]
    sure = [r for r in whole if r["status"] == "ok"]  # a doubtful interval stretches no axis
    top = max((_interval(r, known)[1] for r in sure), default=longest) or 1.0
    top = min(max(top, longest), style.REACH * longest or top)
    for y, row in enumerate(rows):
        if _measured(row):
            _bar(ax, y, row, known, top)
        else:
            style.failure(ax, y, row["status"], lying=True)
    ax.set_yticks(range(len(rows)), [_label(r, named) for r in rows], fontsize=8)
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first on top
    said = any(_caption(r, r["epoch_wall_s"] > top) for r in told) or len(told) < len(rows)
    ax.set_xlim(0, top * (ROOM if said else BARE))
    ax.tick_params(axis="x", labelsize=8)
    if not told:
        style.nothing(ax, lying=True)


def _longest(walls: Sequence[float]) -> float:
    """The longest of the bars that are drawn whole, at least half of them."""
    ordered = sorted(walls)
    for nth in range((len(ordered) + 1) // 2, len(ordered)):
        if ordered[nth] > CUT * ordered[nth - 1]:
            return ordered[nth - 1]
    return ordered[-1] if ordered else 0.0


def _measured(row: Row) -> bool:
    return row["epoch_wall_s"] is not None and row["status"] != "incorrect"


def _label(row: Row, named: Labels) -> str:
    told = [named.system(row) + style.doubt(row), ", ".join(named.varying(row, PANEL).values())]
    return "\n".join(line for part in told for line in textwrap.wrap(part, WRAP))


def _parts(row: Row, known: Metrics) -> dict[str, float]:
    """The parts of an epoch's wall time that are drawn, in seconds; a whole that is not told apart
    is one."""
    alone = {p: known.value(row["id"], p, m.ALONE) or 0.0 for p in PHASES}
    parts = {**alone, "overlap": row["overlap_s"] or 0.0, "idle": row["idle_s"] or 0.0}
    found = {name: max(height, 0.0) for name, height in parts.items()}
    return found if any(alone.values()) else {WHOLE: row["epoch_wall_s"] or 0.0}


def _interval(row: Row, known: Metrics) -> tuple[float, float]:
    """The 95 % interval of the wall time, or the wall time itself; seconds."""
    wall = row["epoch_wall_s"] or 0.0
    wall_row: Row = known.row(row["id"], m.EPOCH, m.WALL) or {}
    low, high = wall_row.get("low"), wall_row.get("high")
    return (wall, wall) if low is None or high is None else (low, high)


def _bar(ax: Axes, y: int, row: Row, known: Metrics, top: float) -> None:
    end, different = 0.0, row["work_class"] == "different"
    for part, width in _parts(row, known).items():
        width = max(min(width, top - end), 0.0)
        ax.barh(
            y, width, 0.66, left=end, color=style.PHASE_COLOURS[part],
            edgecolor="black" if different else "white", linewidth=0.8 if different else 0.4,
            linestyle=(0, (3, 2)) if different else "-", alpha=style.paleness(row),
        )  # fmt: skip
        end += width
    wall = row["epoch_wall_s"]
    if wall > top:
        style.arrow(ax, y, top, "bar", lying=True)
    else:
        end = max(end, style.interval(ax, y, wall, *_interval(row, known), top, lying=True))
    ax.annotate(
        _caption(row, wall > top), (end, y), xytext=(7, 0), textcoords="offset points",
        ha="left", va="center", fontsize=7,
    )  # fmt: skip


def _caption(row: Row, cut: bool) -> str:
    words = [f"{row['epoch_wall_s']:.3g} s"] if cut else []
    if row["status"] != "ok":
        words.append(row["status"])
    if row["work_class"] == "different":
        words.append("different work")
    elif row["ratio"] is not None:
        # Bars are times of their own rounds: only the ratio's interval tells two of them apart.
        words.append(times(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"]))
        words.append(row["verdict"] or "")
        words.append("equivalent" if row["work_class"] == "equivalent" else "")
    return ", ".join(filter(None, words))


def _legend(rows: Sequence[Row], known: Metrics) -> list[Any]:
    """What is drawn, and nothing else."""
    told = [r for r in rows if _measured(r)]
    if not told:
        return []
    drawn = [_parts(r, known) for r in told]
    handles: list[Any] = [
        Patch(facecolor=style.PHASE_COLOURS[part], label=style.LABELS[part])
        for part in PARTS
        if any(parts.get(part) for parts in drawn)
    ]
    handles.append(
        Line2D([], [], color="black", marker="D", markersize=3.5, lw=1,
               label="measured wall time, 95 % interval")
    )  # fmt: skip
    if any(r["ratio"] is not None for r in rows):
        reference = style.common(rows, "reference")
        words = ", ".join(dict.fromkeys(primary_metric.of(r["until"]).words for r in rows))
        label = f"ratio: {words} of {reference} / its own, 95 % interval"
        handles.append(Line2D([], [], lw=0, label=label))
    if any(r["work_class"] == "different" for r in told):
        handles.append(
            Patch(facecolor="white", edgecolor="black", linestyle=(0, (3, 2)),
                  label="different work: do not compare lengths")
        )  # fmt: skip
    return handles
