"""What the figures share: colours that a colour-blind reader can tell apart, titles, layout."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.results.labels import Labels, axis_value
from gnnbench.results.reader import Run

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

Row = dict[str, Any]
LETTER = 0.078  # width of a letter of a title; inches
WIDEST = 42.0  # of panels beside one another; inches
DOUBT = " (?)"
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
    columns = min(count, most, max(int(WIDEST // width), 1))
    lines = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 5.0), 3.6 * lines + 0.6), layout="constrained")
    axes = [figure.add_subplot(lines, columns, i + 1) for i in range(count)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", linewidth=0.4, alpha=0.5)
        ax.set_axisbelow(True)
    return figure, axes


def head(
    figure: Figure, first: str, named: Labels, but: Collection[str] = (), last: str = ""
) -> None:
    """A figure's title: what it shows, and what all its rows share, no wider than the figure."""
    room = int(figure.get_figwidth() / LETTER)
    lines = [first, *textwrap.wrap(named.title(but), room), *textwrap.wrap(last, room)]
    figure.suptitle("\n".join(lines), fontsize=10)


def short_names(run: Run) -> Run:
    """The run with graphs that are files by the file's name, or by as much of its path as tells
    them apart: a path is wider than a panel."""
    names = {r["dataset"] for r in run.cells if "/" in (r["dataset"] or "")}
    if not names:
        return run
    count = next(n for n in itertools.count(1) if len({_tail(v, n) for v in names}) == len(names))
    short = {name: _tail(name, count) for name in names}
    return replace(run, cells=_renamed(run.cells, short), samples=_renamed(run.samples, short))


def _renamed(rows: Sequence[Row], short: Mapping[str, str]) -> list[Row]:
    return [{**r, "dataset": short.get(r["dataset"], r["dataset"])} for r in rows]


def _tail(path: str, parts: int) -> str:
    return "/".join(path.split("/")[-parts:])


def in_doubt(row: Row) -> bool:
    """Whether a time is not to be trusted: a row in doubt, or one that never became steady."""
    return bool(row.get("doubtful")) or row.get("status") == "unstable"


def doubt(row: Row) -> str:
    """What stands behind the name of a row in doubt, as in the table."""
    return DOUBT if in_doubt(row) else ""


def paleness(row: Row) -> float | None:
    """The opacity of a bar of a time: pale where it is in doubt."""
    return PALE if in_doubt(row) else None


def doubts(rows: Iterable[Row], pale: bool = False) -> list[Line2D]:
    """What a legend says of that mark, and of ``pale`` bars, where any row has it."""
    if not any(map(in_doubt, rows)):
        return []
    mark = DOUBT.strip() + ", pale" * pale
    return [Line2D([], [], lw=0, label=f"{mark}: in doubt; the table says why")]


def tell_doubts(figure: Figure, rows: Iterable[Row], pale: bool = False) -> None:
    """The same below a figure whose panels have legends of their own."""
    if handles := doubts(rows, pale):
        figure.legend(handles=handles, loc="outside lower center", fontsize=8, frameon=False)


def query(ax: Axes, x: float, y: float, row: Row) -> None:
    """The mark of a point in doubt, beside it."""
    if in_doubt(row):
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


def interval(ax: Axes, x: float, at: float, low: float, high: float, top: float) -> float:
    """A marker with its interval, cut off at ``top`` with an arrow; returns where it ends."""
    end = max(at, min(high, top))
    ax.errorbar(
        x, at, yerr=[[max(at - low, 0.0)], [end - at]], fmt="D", color="black", markersize=3.5,
        capsize=0 if high > end else 3, lw=1,
    )  # fmt: skip
    if high > end:
        ax.plot([x], [end], color="black", marker="^", markersize=6, gid="cut off")
    return end


def failure(ax: Axes, x: float, status: str) -> None:
    """A status in place of a bar: in words alone, so that it is no result by its looks."""
    ax.text(
        x, 0.03, f"no result: {status}", rotation=90, ha="center", va="bottom", fontsize=8,
        color="#666666", style="italic", transform=ax.get_xaxis_transform(), gid="no result",
    )  # fmt: skip


def nothing(ax: Axes) -> None:
    """A panel in which nothing was measured has no scale."""
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.set_ylabel("")


def cut_off(axes: Iterable[Axes]) -> list[Line2D]:
    """What a legend says of arrows, where there are any."""
    if not any(line.get_gid() == "cut off" for ax in axes for line in ax.lines):
        return []
    return [Line2D([], [], color="black", marker="^", lw=0, label="the interval goes on")]
