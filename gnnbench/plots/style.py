"""What the figures share: colours that a colour-blind reader can tell apart, titles, layout."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.results.labels import Labels, axis_value

# Okabe and Ito's palette (2008), ordered by difference in lightness as well as in hue.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
PHASE_COLOURS = {
    "sample": "#0072B2",
    "memory_io": "#E69F00",
    "compute": "#009E73",
    "overlap": "#CC79A7",
    "idle": "#BBBBBB",
}
LABELS = {
    "sample": "sample", "memory_io": "memory IO", "compute": "compute", "overlap": "overlap",
    "idle": "no phase busy",
}  # fmt: skip

Row = dict[str, Any]
# Of few lives an interval may be many times what is measured: bars are to be read beside it.
REACH = 2.0  # times the tallest bar, where an interval is cut off


def common(rows: Sequence[Row], key: str) -> str:
    """The values of a column, joined."""
    values = dict.fromkeys(str(r[key]) for r in rows if r.get(key) not in (None, ""))
    return ", ".join(values)


def panels(count: int, width: float, most: int = 3) -> tuple[Figure, list[Axes]]:
    """A row of panels, wrapped after ``most``; without pyplot's global state."""
    columns = min(count, most)
    lines = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 5.0), 3.6 * lines + 0.6), layout="constrained")
    axes = [figure.add_subplot(lines, columns, i + 1) for i in range(count)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", linewidth=0.4, alpha=0.5)
        ax.set_axisbelow(True)
    return figure, axes


def title(first: str, named: Labels, but: Collection[str] = ()) -> str:
    """A figure's title: what it shows, and what all its rows share."""
    return "\n".join([first, *textwrap.wrap(named.title(but), 100)])


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


def cut_off(axes: Iterable[Axes]) -> list[Line2D]:
    """What a legend says of arrows, where there are any."""
    if not any(line.get_gid() == "cut off" for ax in axes for line in ax.lines):
        return []
    return [Line2D([], [], color="black", marker="^", lw=0, label="the interval goes on")]
