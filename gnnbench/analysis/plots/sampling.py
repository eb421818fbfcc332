"""Sampling time per batch: bars with their stages, or lines over a grid of batch sizes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.plots import style
from gnnbench.analysis.sample_tables import STAGES, stage_time
from gnnbench.core.units import per_batch
from gnnbench.schema import CellRow, StageRow
from gnnbench.schema.reader import Run

APART = ("dataset", "fanouts", "batch_size")  # one panel each; lines are drawn over batch sizes
GRID = 3  # number of batch sizes from which lines are drawn instead of bars
COLOURS = {
    "prepare": "#56B4E9", "pick": "#0072B2", "id_map": "#E69F00", "block": "#009E73",
    "whole": "#BBBBBB",
}  # fmt: skip


def figure(run: Run) -> Figure | None:
    """One panel per dataset, fanouts, and batch size; with three batch sizes or more, lines.

    Parts of a bar are stages of the native trace; the marker is the measured time per batch with
    its 95 % interval. A system without stages has a plain bar. None if nothing was sampled.
    """
    rows = [r for r in run.cells if _time(r) is not None and r["status"] != "incorrect"]
    if not rows:
        return None
    grid = len({r["batch_size"] for r in rows}) >= GRID
    panels = style.groups(rows, APART[:2] if grid else APART)
    named = labels(rows)
    widest = max(len(panel) for panel in panels.values())
    slot = style.slot(_label(r, named, "\n", "\n") for r in rows)
    result, axes = style.panels(len(panels), 3.8 if grid else 1.4 + slot * widest)
    for ax, (key, panel) in zip(axes, panels.items(), strict=True):
        if grid:
            _lines(ax, panel, named)
        else:
            _bars(ax, panel, run.stages, named)
        batch = "" if grid else f", batch {key[2]}"
        ax.set_title(f"{key[0]}, {key[1]}{batch}", fontsize=9)
        ax.set_ylabel("time per batch [ms]", fontsize=8)
        ax.tick_params(labelsize=8)
    style.head(result, "Sampling", named, APART)
    if not grid:
        result.legend(
            handles=[
                *_legend(rows, run.stages),
                *style.cut_off(axes),
                *style.doubts(rows, pale=True),
            ],
            loc="outside lower center",
            ncols=3,
            fontsize=8,
            frameon=False,
        )
    return result


def _time(row: CellRow) -> float | None:
    """Sampling time per batch (s)."""
    return per_batch(row, "sample_time_s")


def _bars(ax: Axes, rows: Sequence[CellRow], stages: Sequence[StageRow], named: Labels) -> None:
    top = style.REACH * max(_time(r) or 0.0 for r in rows) * 1e3
    for x, row in enumerate(rows):
        wall = (_time(row) or 0.0) * 1e3
        traced = _parts(row, stages)
        parts = traced or {"whole": wall}
        bottom = 0.0
        for name, height in parts.items():
            ax.bar(
                x, height, 0.66, bottom=bottom, color=COLOURS[name], edgecolor="white", lw=0.4,
                alpha=style.paleness(row),
            )  # fmt: skip
            bottom += height
        # Stages are from another pass: the measured time has its own outline.
        if traced:
            ax.bar(x, wall, 0.66, color="none", edgecolor="#555555", lw=0.8)
        end = style.interval(ax, x, wall, *_interval(row, wall), top)
        ax.annotate(
            _caption(row, wall), (x, max(bottom, end)), xytext=(0, 4), textcoords="offset points",
            ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
    ax.set_xticks(range(len(rows)), [_label(r, named, "\n", "\n") for r in rows])
    ax.margins(y=0.2)


def _parts(row: CellRow, stages: Sequence[StageRow]) -> dict[str, float]:
    """Measured stages of a batch (ms)."""
    own = [s for s in stages if s["id"] == row["id"]]
    parts = {name: (stage_time(own, name) or 0.0) * 1e3 for name in STAGES}
    return {name: time for name, time in parts.items() if time}


def _caption(row: CellRow, wall: float) -> str:
    lines = [f"{wall:.3g}"]
    if row["status"] != "ok":
        lines.append(row["status"])
    if row.get("work_class") == "different":
        lines.append("different work")
    elif row.get("ratio") and row["judged"] == "sample_time_s":
        lines.append(f"{row['ratio']:.2f}x")
        lines += ["equivalent"] if row.get("work_class") == "equivalent" else []
    return "\n".join(lines)


def _label(row: style.CellFields, named: Labels, within: str, between: str) -> str:
    """System and settings that vary within the panel, without the word ``sampler=``."""
    name = named.system(row, within).replace(f"{within}sampler=", within) + style.doubt(row)
    return between.join([name, *named.varying(row, APART).values()])


def _interval(row: CellRow, wall: float) -> tuple[float, float]:
    """Interval of the time per batch (ms); its ends are ``wall`` if there is none.

    Only the primary metric has an interval.
    """
    low, high, batches = (row.get(k) for k in ("ci_low_s", "ci_high_s", "batches"))
    if low is None or high is None or row["judged"] != "sample_time_s":
        return wall, wall
    return low / batches * 1e3, high / batches * 1e3


def _lines(ax: Axes, rows: Sequence[CellRow], named: Labels) -> None:
    series: dict[str, list[CellRow]] = {}
    for row in rows:
        name = _label({**row, "doubtful": ""}, named, " ", ", ")  # points are marked, not the line
        series.setdefault(name, []).append(row)
    for number, (name, points) in enumerate(series.items()):
        points.sort(key=lambda r: r["batch_size"])
        ax.plot(
            [r["batch_size"] for r in points], [(_time(r) or 0.0) * 1e3 for r in points],
            color=style.PALETTE[number % len(style.PALETTE)], marker="osD^vPX*"[number % 8],
            markersize=4, label=name,
        )  # fmt: skip
        for row in points:
            style.mark_doubt(ax, row["batch_size"], (_time(row) or 0.0) * 1e3, row)
    ax.set_xlabel("batch size", fontsize=8)
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=7, frameon=False)


def _legend(rows: Sequence[CellRow], stages: Sequence[StageRow]) -> list[Artist]:
    """Legend entries of what is drawn."""
    names = {**{s: s.replace("_", " ") for s in STAGES}, "whole": "stages not measured"}
    drawn = {part for row in rows for part in _parts(row, stages) or {"whole": 0.0}}
    handles: list[Artist] = [
        Patch(facecolor=COLOURS[k], label=text) for k, text in names.items() if k in drawn
    ]
    return [
        *handles,
        Line2D([], [], color="black", marker="D", markersize=3.5, lw=1,
               label="measured sampling time (outline), 95 % interval"),
    ]  # fmt: skip
