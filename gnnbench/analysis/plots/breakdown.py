"""Epoch time by phase and system, one panel per dataset and model, with failures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import style
from gnnbench.analysis.ranking import ranked
from gnnbench.analysis.reliability import verdict
from gnnbench.core.cell import PHASES, Until
from gnnbench.core.units import plural, times
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric

PANEL = ("dataset", "model")
WHOLE = "whole"
FRAMEWORKS = ("dgl", "pyg", "graphbolt", "wholegraph")  # in italics
OUR_OWN = ("baseline", "best", "pyg-native-sampler")  # bold; the others are from papers
WRAP = 38  # letters of a line of a bar's label
CUT = 8.0  # a bar longer than this multiple of the next one is cut off
ROOM = 1.05  # panel width / longest bar or interval
PARTS = (*PHASES, "overlap", "idle", WHOLE)


def figure(run: Run) -> Figure | None:
    """Stacked bars of phases, overlap and idle time; a marker for the wall time and its interval.

    The fastest system is on top. A dashed line marks the reference's time, and a column on the
    right has the ratios. Epochs without training are bars of memory IO alone, which is what their
    ratios compare. Bars that are much longer than the others are cut off. A bar without phase times
    is plain. A cell without a time shows its status. Different work and unreliable rows are marked.
    The legend names groups in which nothing could run.
    """
    if not run.cells:
        return None
    named, known = labels(run.cells), Metrics(run.metrics)
    panels = style.groups(run.cells, PANEL)
    drawn = {k: rows for k, rows in panels.items() if not _absent(rows)} or panels
    names = [_label(r, named) for rows in drawn.values() for r in rows]
    result, axes = style.horizontal_panels([len(rows) for rows in drawn.values()], names)
    for ax, (key, rows) in zip(axes, drawn.items(), strict=True):
        ax.set_title(", ".join(filter(None, key)), fontsize=9)
        ax.set_xlabel(f"{_primary(rows)} [s]{_cut(rows)}", fontsize=8)
        _panel(ax, ranked(rows), named, known)
    style.head(result, _title(run.cells), named, PANEL)
    absent = "; ".join(", ".join(filter(None, key)) for key in panels if key not in drawn)
    result.legend(
        handles=[
            *_legend(run.cells, known),
            *style.cut_off(axes),
            *style.doubts(run.cells, pale=True),
        ],
        title="\n".join(textwrap.wrap(f"not measured: {absent}", 90)) if absent else None,
        title_fontsize=8,
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        frameon=False,
    )
    return result


def _absent(rows: Sequence[CellRow]) -> bool:
    return all(r["status"] in ("missing_dep", "missing_data") for r in rows)


def _cut(rows: Sequence[CellRow]) -> str:
    batches = {(r["batches"], r["epoch_batches"]) for r in rows if r.get("batches")}
    cut = {b for b, whole in batches if whole and b < whole}
    return f", first {plural(max(cut), 'batch')}" if cut else ""


def _panel(ax: Axes, rows: Sequence[CellRow], named: Labels, known: Metrics) -> None:
    measured = [r for r in rows if _measured(r)]
    longest = _longest([_seconds(r) for r in measured])
    whole = [r for r in measured if _seconds(r) <= longest]
    reliable = [r for r in whole if r["status"] == "ok"]  # only their intervals extend the axis
    top = max((_interval(r, known)[1] for r in reliable), default=longest) or 1.0
    top = min(max(top, longest), style.REACH * longest or top)
    _mark_reference(ax, rows, top)
    for y, row in enumerate(rows):
        if _measured(row):
            _bar(ax, y, row, known, top)
        else:
            style.failure(ax, y, row["status"], horizontal=True)
    ax.set_yticks(range(len(rows)), [_label(r, named) for r in rows], fontsize=8)
    for tick, row in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if row["system"] in OUR_OWN else "normal")
        tick.set_fontstyle("italic" if row["system"] in FRAMEWORKS else "normal")
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first on top
    ax.set_xlim(0, top * ROOM)
    references = {r["reference"] for r in measured if r.get("ratio") is not None}
    if references:
        name = references.pop() if len(references) == 1 else ""
        is_clear = sum(r["system"] == name.partition(" ")[0] for r in rows) <= 1
        over = f" over {name}" if name and is_clear else " over the reference"
        ax.text(1.02, -0.8, f"speed-up{over}", fontsize=7, weight="bold", va="bottom",
                transform=ax.get_yaxis_transform())  # fmt: skip
    ax.tick_params(axis="x", labelsize=8)
    if not measured:
        style.hide_scale(ax, horizontal=True)


def _longest(walls: Sequence[float]) -> float:
    """Length of the longest bar that is not cut off. At least half of the bars are not."""
    ordered = sorted(walls)
    for nth in range((len(ordered) + 1) // 2, len(ordered)):
        if ordered[nth] > CUT * ordered[nth - 1]:
            return ordered[nth - 1]
    return ordered[-1] if ordered else 0.0


def _measured(row: CellRow) -> bool:
    return row["epoch_wall_s"] is not None and row["status"] != "incorrect"


def _seconds(row: CellRow) -> float:
    """The time that the bar shows: the one that ratios compare."""
    if row["until"] == Until.MEMORY_IO.word and row.get("memory_io_time_s"):
        return float(row["memory_io_time_s"])
    return float(row["epoch_wall_s"] or 0.0)


def _primary(rows: Sequence[CellRow]) -> str:
    loads = {r["until"] for r in rows} == {Until.MEMORY_IO.word}
    return "memory IO time per epoch" if loads else "time per epoch"


def _title(rows: Sequence[CellRow]) -> str:
    return "Memory IO time" if _primary(rows).startswith("memory") else "Epoch time by phase"


def _label(row: CellRow, named: Labels) -> str:
    parts = [named.system(row) + style.doubt(row), ", ".join(named.varying(row, PANEL).values())]
    return "\n".join(line for part in parts for line in textwrap.wrap(part, WRAP))


def _parts(row: CellRow, known: Metrics) -> dict[str, float]:
    """Parts of an epoch's wall time (s); the whole if its phases were not measured."""
    if row["until"] == Until.MEMORY_IO.word and row.get("memory_io_time_s"):
        return {PHASES[1]: _seconds(row)}
    alone = {p: known.value(row["id"], p, m.ALONE) or 0.0 for p in PHASES}
    parts = {**alone, "overlap": row["overlap_s"] or 0.0, "idle": row["idle_s"] or 0.0}
    if not any(alone.values()):
        return {WHOLE: row["epoch_wall_s"] or 0.0}
    return {name: max(length, 0.0) for name, length in parts.items()}


def _interval(row: CellRow, known: Metrics) -> tuple[float, float]:
    """The 95 % interval of the wall time (s); its ends are the wall time if there is none."""
    wall = _seconds(row)
    if row["until"] == Until.MEMORY_IO.word:
        return row.get("ci_low_s") or wall, row.get("ci_high_s") or wall
    measured = known.row(row["id"], m.EPOCH, m.WALL)
    if measured is None or measured.low is None or measured.high is None:
        return wall, wall
    return measured.low, measured.high


def _mark_reference(ax: Axes, rows: Sequence[CellRow], top: float) -> None:
    """Draw a dashed line at the time of the one reference."""
    own = [r for r in rows if r["id"] == r.get("reference_id") and _measured(r)]
    if len(own) == 1 and _seconds(own[0]) <= top:
        ax.axvline(_seconds(own[0]), color="#444444", lw=0.9, ls=(0, (4, 3)), gid="reference")


def _bar(ax: Axes, y: int, row: CellRow, known: Metrics, top: float) -> None:
    end, different = 0.0, row["work_class"] == "different"
    for part, width in _parts(row, known).items():
        width = max(min(width, top - end), 0.0)
        ax.barh(
            y, width, 0.66, left=end, color=style.PHASE_COLOURS[part],
            edgecolor="black" if different else "white", linewidth=0.8 if different else 0.4,
            linestyle=(0, (3, 2)) if different else "-", alpha=style.paleness(row),
        )  # fmt: skip
        end += width
    wall = _seconds(row)
    if wall > top:
        style.arrow(ax, y, top, "bar", horizontal=True)
    else:
        style.interval(ax, y, wall, *_interval(row, known), top, horizontal=True)
    ax.text(
        1.02, y, _caption(row, wall > top), transform=ax.get_yaxis_transform(), va="center",
        fontsize=7,
    )  # fmt: skip


def _caption(row: CellRow, cut: bool) -> str:
    words = [f"{_seconds(row):.3g} s"] if cut else []
    if row["id"] == row.get("reference_id"):
        words.append("reference")
    if row["status"] != "ok":
        words.append(row["status"])
    if row["work_class"] == "different":
        words.append("different work")
    elif row["ratio"] is not None:
        # Bars are not from alternating runs: only the ratio's interval compares two of them.
        words.append(
            times(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"], row.get("pairs"))
        )
        words.append(verdict(row))
    return ", ".join(filter(None, words))


def _legend(rows: Sequence[CellRow], known: Metrics) -> list[Artist]:
    """Legend entries of what is drawn."""
    measured = [r for r in rows if _measured(r)]
    if not measured:
        return []
    drawn = [_parts(r, known) for r in measured]
    handles: list[Artist] = [
        Patch(facecolor=style.PHASE_COLOURS[part], label=style.LABELS[part])
        for part in PARTS
        if any(parts.get(part) for parts in drawn)
    ]
    handles.append(
        Line2D([], [], color="black", marker="D", markersize=3.5, lw=1,
               label="measured time, 95 % interval")
    )  # fmt: skip
    if any(r["ratio"] is not None for r in rows):
        handles.append(
            Line2D([], [], color="#444444", lw=0.9, ls=(0, (4, 3)), label="time of the reference")
        )
        words = ", ".join(dict.fromkeys(primary_metric.of(r["until"]).words for r in rows))
        handles.append(Line2D([], [], lw=0, label=f"speed-up: of {words}, paired, 95 % interval"))
    if any(r["work_class"] == "different" for r in measured):
        handles.append(
            Patch(facecolor="white", edgecolor="black", linestyle=(0, (3, 2)),
                  label="different work: do not compare lengths")
        )  # fmt: skip
    return handles
