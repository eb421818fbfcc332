"""Sampling time per batch: bars with their stages, or lines over a grid of batch sizes."""

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
from gnnbench.results.sampling_table import STAGES, per_batch, stage_time

Row = dict[str, Any]

GRID = 3  # batch sizes from which on lines tell more than bars
COLOURS = {
    "prepare": "#56B4E9", "pick": "#0072B2", "id_map": "#E69F00", "block": "#009E73",
    "whole": "#BBBBBB",
}  # fmt: skip


def figure(run: Run) -> Figure | None:
    """One panel per dataset, fanouts, and batch size; with three batch sizes or more, lines.

    A bar's parts are the stages that the native trace tells, its marker is the measured wall time
    per batch with the 95 % interval; a system without stages has a plain bar. None where nothing
    was sampled.
    """
    rows = [r for r in run.cells if per_batch(r) is not None and r["status"] != "incorrect"]
    if not rows:
        return None
    panels: dict[tuple[Any, ...], list[Row]] = {}
    grid = len({r["batch_size"] for r in rows}) >= GRID
    for row in rows:
        key = (row["dataset"], row["fanouts"], *(() if grid else (row["batch_size"],)))
        panels.setdefault(key, []).append(row)
    widest = max(len(panel) for panel in panels.values())
    result, axes = style.panels(len(panels), 3.8 if grid else 1.4 + 0.75 * widest)
    for ax, (key, panel) in zip(axes, panels.items(), strict=True):
        if grid:
            _lines(ax, panel)
        else:
            _bars(ax, panel, run.stages)
        batch = "" if grid else f", batch {key[2]}"
        ax.set_title(f"{key[0]}, {key[1]}{batch}", fontsize=9)
        ax.set_ylabel("time per batch [ms]", fontsize=8)
        ax.tick_params(labelsize=8)
    result.suptitle(f"Sampling\n{style.setting(run.cells)}", fontsize=10)
    if not grid:
        result.legend(
            handles=_legend(), loc="outside lower center", ncols=3, fontsize=8, frameon=False
        )
    return result


def _label(row: Row, many_threads: bool, separator: str) -> str:
    name = system_label(row, separator).replace("sampler=", "")
    return name + (f"{separator}{row['threads']} threads" if many_threads else "")


def _bars(ax: Axes, rows: Sequence[Row], stages: Sequence[Row]) -> None:
    many = len({r["threads"] for r in rows}) > 1
    for x, row in enumerate(rows):
        own = [s for s in stages if s["id"] == row["id"]]
        wall = (per_batch(row) or 0.0) * 1e3
        parts = {name: (stage_time(own, name) or 0.0) * 1e3 for name in STAGES}
        if not any(parts.values()):
            parts = {"whole": wall}
        bottom = 0.0
        for name, height in parts.items():
            ax.bar(
                x, height, 0.66, bottom=bottom, color=COLOURS[name], edgecolor="white", lw=0.4
            )  # fmt: skip
            bottom += height
        ax.errorbar(
            x, wall, yerr=_error(row, wall), fmt="D", color="black", markersize=3.5, capsize=3, lw=1
        )
        top = max(bottom, wall + (error[1][0] if (error := _error(row, wall)) else 0.0))
        ax.annotate(
            _caption(row, wall), (x, top), xytext=(0, 4), textcoords="offset points", ha="center",
            va="bottom", fontsize=7,
        )  # fmt: skip
    ax.set_xticks(range(len(rows)), [_label(r, many, "\n") for r in rows])
    ax.margins(y=0.2)


def _caption(row: Row, wall: float) -> str:
    lines = [f"{wall:.3g}"]
    if row.get("work_class") == "different":
        lines.append("different work")
    elif row.get("sample_speedup"):
        lines.append(f"{row['sample_speedup']:.2f}x")
    return "\n".join(lines)


def _error(row: Row, wall: float) -> list[list[float]] | None:
    """The interval of the epoch's time, as a share of this one."""
    low, high, epoch = (row.get(k) for k in ("ci_low_s", "ci_high_s", "epoch_wall_s"))
    if low is None or high is None or not epoch:
        return None
    return [[max(1 - low / epoch, 0.0) * wall], [max(high / epoch - 1, 0.0) * wall]]


def _lines(ax: Axes, rows: Sequence[Row]) -> None:
    many = len({r["threads"] for r in rows}) > 1
    series: dict[str, list[Row]] = {}
    for row in rows:
        series.setdefault(_label(row, many, " "), []).append(row)
    for number, (name, points) in enumerate(series.items()):
        points.sort(key=lambda r: r["batch_size"])
        ax.plot(
            [r["batch_size"] for r in points], [(per_batch(r) or 0.0) * 1e3 for r in points],
            color=style.PALETTE[number % len(style.PALETTE)], marker="osD^vPX*"[number % 8],
            markersize=4, label=name,
        )  # fmt: skip
    ax.set_xlabel("batch size", fontsize=8)
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=7, frameon=False)


def _legend() -> list[Any]:
    names = {**{s: s.replace("_", " ") for s in STAGES}, "whole": "not told apart"}
    handles: list[Any] = [Patch(facecolor=COLOURS[k], label=text) for k, text in names.items()]
    return [
        *handles,
        Line2D([], [], color="black", marker="D", markersize=3.5, lw=1,
               label="measured wall time, 95 % interval"),
    ]  # fmt: skip
