"""What the figures share: colours that a colour-blind reader can tell apart, titles, layout."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.labels import Labels, axis_value
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
    "idle": "no phase busy", "whole": "phases not told apart",
}  # fmt: skip

Row = Mapping[str, Any]
_DatasetRow = TypeVar("_DatasetRow", CellRow, SampleRow)
LETTER = 0.078  # width of a letter of a title; inches
WIDEST = 42.0  # of panels beside one another; inches
LYING = 6.5, 0.16, 0.22, 0.9  # a panel of bars that lie: width, a line, a row, a panel; inches
PALE = 0.35  # opacity
# Of few lives an interval may be many times what is measured: bars are to be read beside it.
REACH = 2.0  # times the tallest bar, where an interval is cut off


def common(rows: Sequence[Row], key: str) -> str:
    """The values of a column, joined."""
    values = dict.fromkeys(str(r[key]) for r in rows if r.get(key) not in (None, ""))
    return ", ".join(values)


def panels(count: int, width: float, most: int = 3) -> tuple[Figure, list[Axes]]:
    """A row of panels, wrapped after ``most``, or where it would be too wide to be looked at;
    without pyplot's global state."""
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


def lying_panels(rows: Sequence[int], labels: Collection[str]) -> tuple[Figure, list[Axes]]:
    """Panels for bars that lie, each of so many, their names of one or several lines on the left:
    one below the other, in two columns from the fourth on."""
    width, line, row, rest = LYING
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
    """A figure's title: what it shows, and what all its rows share, no wider than the figure."""
    room = int(figure.get_figwidth() / LETTER)
    lines = [first, *textwrap.wrap(named.title(but), room), *textwrap.wrap(last, room)]
    figure.suptitle("\n".join(lines), fontsize=10)


def labelled(run: Run) -> Run:
    """The run with texts that matplotlib can draw: no formulas and no control characters."""
    rows = {f.name: getattr(run, f.name) for f in fields(run) if f.name != "path"}
    return replace(run, **{name: _drawable(value) for name, value in rows.items()})


def _drawable(value: Any) -> Any:
    if isinstance(value, str):
        return safe.figure(value)
    if isinstance(value, list):
        return [_drawable(item) for item in value]
    if isinstance(value, Record):
        texts = {name: _drawable(item) for name, item in value.items() if isinstance(item, str)}
        if recipe := value.get("recipe"):  # JSON, whatever its length
            texts["recipe"] = json.dumps(_drawable(json.loads(recipe)))
        row = copy(value)
        for name, text in texts.items():
            setattr(row, name, text)
        return row
    if isinstance(value, RunRecord):
        return RunRecord.model_validate(_drawable(value.model_dump(exclude_unset=True)))
    if isinstance(value, dict):
        found = {_drawable(key): _drawable(item) for key, item in value.items()}
        if isinstance(recipe := value.get("recipe"), str):  # of a row: JSON, whatever its length
            found["recipe"] = json.dumps(_drawable(json.loads(recipe or "{}")))
        return found
    return value


def short_names(run: Run) -> Run:
    """The run with graphs that are files by the file's name, or by as much of its path as tells
    them apart: a path is wider than a panel."""
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


def doubt(row: Row) -> str:
    """What stands behind the name of a row in doubt, as in the table."""
    return f" {UNRELIABLE_MARK}" if is_unreliable(row) else ""


def paleness(row: Row) -> float | None:
    """The opacity of a bar of a time: pale where it is in doubt."""
    return PALE if is_unreliable(row) else None


def doubts(rows: Iterable[Row], pale: bool = False) -> list[Line2D]:
    """What a legend says of that mark, and of ``pale`` bars, where any row has it."""
    if not any(map(is_unreliable, rows)):
        return []
    mark = UNRELIABLE_MARK + ", pale" * pale
    return [Line2D([], [], lw=0, label=f"{mark}: in doubt; the table says why")]


def tell_doubts(figure: Figure, rows: Iterable[Row], pale: bool = False) -> None:
    """The same below a figure whose panels have legends of their own."""
    if handles := doubts(rows, pale):
        figure.legend(handles=handles, loc="outside lower center", fontsize=8, frameon=False)


def query(ax: Axes, x: float, y: float, row: Row) -> None:
    """The mark of a point in doubt, beside it."""
    if is_unreliable(row):
        ax.annotate("(?)", (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)


def slot(labels: Iterable[str]) -> float:
    """Width that a bar needs so that labels of several lines do not touch; inches."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return max(1.0, 0.075 * longest + 0.1)


def groups(rows: Sequence[Row], axes: Collection[str]) -> dict[tuple[str, ...], list[Row]]:
    """Rows by their values of ``axes``, in order."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(axis_value(row, axis) for axis in axes), []).append(row)
    return found


def interval(
    ax: Axes, place: float, at: float, low: float, high: float, top: float, lying: bool = False
) -> float:
    """A marker with its interval, cut off at ``top`` with an arrow; returns where it ends."""
    end = max(at, min(high, top))
    x, y = (at, place) if lying else (place, at)
    ends = [[max(at - low, 0.0)], [end - at]]
    ax.errorbar(
        x, y, xerr=ends if lying else None, yerr=None if lying else ends, fmt="D", color="black",
        markersize=3.5, capsize=0 if high > end else 3, lw=1,
    )  # fmt: skip
    if high > end:
        arrow(ax, place, end, "cut off", lying)
    return end


def arrow(ax: Axes, place: float, end: float, what: str, lying: bool = False) -> None:
    """What goes on beyond the panel: ``what``, the key of a legend's words."""
    x, y, marker = (end, place, ">") if lying else (place, end, "^")
    ax.plot([x], [y], color="black", marker=marker, markersize=6, gid=what)


def failure(ax: Axes, place: float, status: str, lying: bool = False) -> None:
    """A status in place of a bar: in words alone, so that it is no result by its looks."""
    turned: dict[str, Any] = {
        "x": place, "y": 0.03, "rotation": 90, "ha": "center", "va": "bottom",
        "transform": ax.get_xaxis_transform(),
    }  # fmt: skip
    if lying:
        turned = {
            "x": 0.01, "y": place, "ha": "left", "va": "center",
            "transform": ax.get_yaxis_transform(),
        }  # fmt: skip
    ax.text(
        s=f"no result: {status}", fontsize=8, color="#666666", style="italic", gid="no result",
        **turned,
    )  # fmt: skip


def nothing(ax: Axes, lying: bool = False) -> None:
    """A panel in which nothing was measured has no scale."""
    if lying:
        ax.set(xlim=(0, 1), xticks=[], xlabel="")
    else:
        ax.set(ylim=(0, 1), yticks=[], ylabel="")


ARROWS = {"cut off": "the interval goes on", "bar": "the bar goes on: its time stands beside it"}


def cut_off(axes: Iterable[Axes]) -> list[Line2D]:
    """What a legend says of arrows, where there are any."""
    drawn = {str(line.get_gid()): line for ax in axes for line in ax.lines}
    return [
        Line2D([], [], color="black", marker=drawn[what].get_marker(), lw=0, label=words)
        for what, words in ARROWS.items()
        if what in drawn
    ]
