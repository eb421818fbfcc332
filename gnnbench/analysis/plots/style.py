"""Shared by all figures: colours for colour-blind readers, titles, layout."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import CellFields, Labels, axis_value
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable
from gnnbench.core import text as safe
from gnnbench.schema import CellRow, Record, SampleRow
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import RunRecord

# Okabe and Ito's palette (2008), ordered by difference in lightness as well as in hue.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
PHASE_COLOURS = {
    "sample": "#0072B2",
    "memory_io": "#E69F00",
    "compute": "#009E73",
    "overlap": "#CC79A7",
    "idle": "#BBBBBB",
    "whole": "#777777",
}
LABELS = {
    "sample": "sample", "memory_io": "memory IO", "compute": "compute", "overlap": "overlap",
    "idle": "no phase busy", "whole": "phases not measured",
}  # fmt: skip

RowT = TypeVar("RowT", bound=CellFields)
RecordT = TypeVar("RecordT", bound=Record)
_DatasetRow = TypeVar("_DatasetRow", CellRow, SampleRow)
LETTER = 0.078  # width of a letter of a label (inches)
CAPTION_LETTER = 0.06  # of a caption
WIDEST = 42.0  # of a row of panels (inches)
# A panel of horizontal bars (inches): its width, the height of a line, of a row, and the rest.
HORIZONTAL = 6.5, 0.16, 0.22, 0.9
PALE = 0.35  # opacity
# Intervals of few trials can be much longer than the bars, which must stay readable.
REACH = 2.0  # intervals are cut off at this multiple of the tallest bar


def common(rows: Sequence[CellFields], key: str) -> str:
    """The values of a column, joined."""
    values = dict.fromkeys(str(r[key]) for r in rows if r.get(key) not in (None, ""))
    return ", ".join(values)


def panels(count: int, width: float, most: int = 3) -> tuple[Figure, list[Axes]]:
    """A row of panels, wrapped after ``most`` panels or at the maximum width of a figure.

    It does not use the global state of pyplot.
    """
    width = min(width, WIDEST)
    columns = min(count, most, int(WIDEST // width))
    lines = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 5.0), 3.6 * lines + 0.6), layout="constrained")
    axes = [figure.add_subplot(lines, columns, i + 1) for i in range(count)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", linewidth=0.4, alpha=0.5)
        ax.set_axisbelow(True)
    return figure, axes


def horizontal_panels(rows: Sequence[int], labels: Collection[str]) -> tuple[Figure, list[Axes]]:
    """Panels of horizontal bars: ``rows`` has the number of bars of each, ``labels`` their names.

    Up to three panels have one column, more have two.
    """
    width, line, row, rest = HORIZONTAL
    columns = 2 if len(rows) > 3 else 1
    width += LETTER * max(len(part) for label in labels for part in label.split("\n"))
    slot = row + line * max(label.count("\n") + 1 for label in labels)
    most = [max(rows[i : i + columns]) for i in range(0, len(rows), columns)]
    heights = [rest + slot * count for count in most]
    figure = Figure(figsize=(width * columns, sum(heights) + 0.9), layout="constrained")
    grid = figure.add_gridspec(len(most), columns, height_ratios=heights)
    axes = [figure.add_subplot(grid[i // columns, i % columns]) for i in range(len(rows))]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", linewidth=0.4, alpha=0.5)
        ax.set_axisbelow(True)
    return figure, axes


def head(
    figure: Figure, first: str, named: Labels, but: Collection[str] = (), last: str = ""
) -> None:
    """Set a short title and below it a small caption: the settings that all rows share."""
    room = int(figure.get_figwidth() / CAPTION_LETTER)
    lines = [*textwrap.wrap(named.title(but), room), *textwrap.wrap(last, room)]
    # The layout makes room for one title of one size: its first two lines, empty, are the title's.
    figure.suptitle("\n".join(["", "", *lines]), fontsize=7, color="#555555")
    top = 1 - rcParams["figure.constrained_layout.h_pad"] / figure.get_figheight()
    figure.text(0.5, top, first, fontsize=11, ha="center", va="top")


def labelled(run: Run) -> Run:
    """The run without formulas and control characters, which matplotlib cannot draw."""
    record = RunRecord.model_validate(_drawable(run.record.model_dump(exclude_unset=True)))
    return replace(
        run, record=record,
        cells=_drawable_rows(run.cells), samples=_drawable_rows(run.samples),
        ratios=_drawable_rows(run.ratios), stages=_drawable_rows(run.stages),
        kernels=_drawable_rows(run.kernels), metrics=_drawable_rows(run.metrics),
        curves=_drawable_rows(run.curves), roofline=_drawable_rows(run.roofline),
        convergence=_drawable_rows(run.convergence), machines=_drawable_rows(run.machines),
        failed_lives=_drawable_rows(run.failed_lives),
    )  # fmt: skip


def _drawable_rows(rows: Iterable[RecordT]) -> list[RecordT]:
    drawable = [copy(row) for row in rows]
    for row in drawable:
        for name, value in row.items():
            if isinstance(value, str):
                # A recipe is JSON: its texts are replaced one by one.
                is_recipe = name == "recipe" and value
                text = json.dumps(_drawable(json.loads(value))) if is_recipe else safe.figure(value)
                setattr(row, name, text)
    return drawable


def _drawable(value: object) -> object:
    """A JSON value with all texts in it replaced."""
    if isinstance(value, str):
        return safe.figure(value)
    if isinstance(value, list):
        return [_drawable(item) for item in value]
    if isinstance(value, dict):
        return {_drawable(key): _drawable(item) for key, item in value.items()}
    return value


def short_names(run: Run) -> Run:
    """The run with paths of graph files shortened to the last parts that are distinct."""
    names = {r["dataset"] for r in run.cells if "/" in (r["dataset"] or "")}
    if not names:
        return run
    count = next(n for n in itertools.count(1) if len({_tail(v, n) for v in names}) == len(names))
    short = {name: _tail(name, count) for name in names}
    return replace(run, cells=_renamed(run.cells, short), samples=_renamed(run.samples, short))


def _renamed(rows: Sequence[_DatasetRow], short: Mapping[str, str]) -> list[_DatasetRow]:
    return [replace(r, dataset=short.get(r.dataset, r.dataset)) for r in rows]


def _tail(path: str, parts: int) -> str:
    return "/".join(path.split("/")[-parts:])


def doubt(row: CellFields) -> str:
    """The mark after the name of an unreliable row, as in the table."""
    return f" {UNRELIABLE_MARK}" if is_unreliable(row) else ""


def paleness(row: CellFields) -> float | None:
    """The opacity of a bar: pale for an unreliable row."""
    return PALE if is_unreliable(row) else None


def doubts(rows: Iterable[CellFields], pale: bool = False) -> list[Line2D]:
    """The legend entry of that mark, and of ``pale`` bars, if any row is unreliable."""
    if not any(map(is_unreliable, rows)):
        return []
    mark = UNRELIABLE_MARK + ", pale" * pale
    return [Line2D([], [], lw=0, label=f"{mark}: unreliable; the table says why")]


def add_doubt_legend(figure: Figure, rows: Iterable[CellFields], pale: bool = False) -> None:
    """Add the same below a figure whose panels have legends."""
    if handles := doubts(rows, pale):
        figure.legend(handles=handles, loc="outside lower center", fontsize=8, frameon=False)


def mark_doubt(ax: Axes, x: float, y: float, row: CellFields) -> None:
    """Annotate the point of an unreliable row."""
    if is_unreliable(row):
        ax.annotate("(?)", (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)


def slot(labels: Iterable[str]) -> float:
    """Width of a bar (inches) at which labels of several lines do not touch."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return max(1.0, 0.075 * longest + 0.1)


def groups(rows: Sequence[RowT], axes: Collection[str]) -> dict[tuple[str, ...], list[RowT]]:
    """Rows by their values of ``axes``, in order."""
    return group_by(rows, lambda row: tuple(axis_value(row, axis) for axis in axes))


def interval(
    ax: Axes, place: float, at: float, low: float, high: float, top: float, horizontal: bool = False
) -> float:
    """Draw a marker with its interval, cut off at ``top`` with an arrow. Returns its upper end."""
    end = max(at, min(high, top))
    x, y = (at, place) if horizontal else (place, at)
    ends = [[max(at - low, 0.0)], [end - at]]
    ax.errorbar(
        x, y, xerr=ends if horizontal else None, yerr=None if horizontal else ends, fmt="D",
        color="black", markersize=3.5, capsize=0 if high > end else 3, lw=1,
    )  # fmt: skip
    if high > end:
        arrow(ax, place, end, "cut off", horizontal)
    return end


def arrow(ax: Axes, place: float, end: float, kind: str, horizontal: bool = False) -> None:
    """Mark a bar or interval that is cut off. ``kind`` is a key of ``ARROWS``."""
    x, y, marker = (end, place, ">") if horizontal else (place, end, "^")
    ax.plot([x], [y], color="black", marker=marker, markersize=6, gid=kind)


def failure(ax: Axes, place: float, status: str, horizontal: bool = False) -> None:
    """Write a status in place of a bar, so that it does not look like a result."""
    if horizontal:
        text = ax.text(0.01, place, "", ha="left", va="center", transform=ax.get_yaxis_transform())
    else:
        text = ax.text(
            place, 0.03, "", rotation=90, ha="center", va="bottom",
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    text.set(text=f"no result: {status}", fontsize=8, color="#666666", style="italic")
    text.set_gid("no result")


def hide_scale(ax: Axes, horizontal: bool = False) -> None:
    """Remove the scale of a panel without results."""
    if horizontal:
        ax.set(xlim=(0, 1), xticks=[], xlabel="")
    else:
        ax.set(ylim=(0, 1), yticks=[], ylabel="")


ARROWS = {"cut off": "interval cut off", "bar": "bar cut off, see its time"}


def cut_off(axes: Iterable[Axes]) -> list[Line2D]:
    """Legend entries of the arrows that are drawn."""
    drawn = {str(line.get_gid()): line for ax in axes for line in ax.lines}
    return [
        Line2D([], [], color="black", marker=drawn[kind].get_marker(), lw=0, label=words)
        for kind, words in ARROWS.items()
        if kind in drawn
    ]
