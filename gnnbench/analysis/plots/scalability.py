"""Throughput along one axis at a time, a panel for each sweep of a definition; failures are data.

After FastGL's Fig. 14.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from gnnbench.analysis.labels import AXES, Labels, axis_value, labels, phrase
from gnnbench.analysis.plots import style
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric

Row = Mapping[str, Any]

MARKERS = "osD^vPX*"
LOGARITHMIC = 8  # where the largest value of an axis is so many times the smallest
LONG = 30  # names of systems of which four do not stand side by side
ABSENT = ("missing_dep", "missing_data")
RANKS = "ranks"  # the last part of an axis that is a number of processes
EVEN = "even"  # the key of lines of even work: as many times the fewest ranks' rate


@dataclass(frozen=True)
class Point:
    """One value of a sweep: where it lies, what is written there, and the rows measured there.

    ``of_ranks``: whether it is a number of processes that train together.
    """

    x: float
    text: str
    rows: Sequence[Row]
    of_ranks: bool = False


def figure(run: Run) -> Figure | None:
    """Seeds a second of the judged time with its 95 % interval; None where nothing was swept, nor
    measured by several numbers of ranks.

    What the machine lacks is left out; any other failure is a cross at the top with its status.
    Where the work is other than the reference's markers are hollow.
    """
    rows = [r for r in run.cells if r["status"] not in ABSENT]
    sweeps: Mapping[str, Sequence[Row]] = run.record.get("sweeps") or _by_ranks(rows)
    found = {name: points for name, told in sweeps.items() if (points := _points(told, rows))}
    if not found:
        return None
    named = labels(rows)
    drawn = [r for points in found.values() for p in points for r in p.rows]
    systems = list(dict.fromkeys(_line_of(r, named) for r in drawn))
    result, axes = style.panels(len(found), 4.0)
    for ax, (name, points) in zip(axes, found.items(), strict=True):
        _panel(ax, points, systems, named)
        ax.set_title(name.replace("_", " "), fontsize=9)
        ax.tick_params(labelsize=8)
        words = ", ".join(
            dict.fromkeys(primary_metric.of(r["until"]).words for p in points for r in p.rows)
        )
        ax.set_ylabel(f"seeds per second of {words}", fontsize=8)
    centre = f"around {_centre(drawn, named)}" if len(found) > 1 else ""
    style.head(result, "Throughput along one axis at a time", named, last=centre)
    result.legend(
        handles=[
            *_legend(drawn, systems), *_evens(axes), *style.cut_off(axes), *style.doubts(drawn),
        ],
        loc="outside lower center",
        ncols=4 if max(map(len, systems)) < LONG else 2, fontsize=8, frameon=False,
    )  # fmt: skip
    return result


def _evens(axes: Sequence[Axes]) -> list[Line2D]:
    """What a legend says of dotted lines, where there are any."""
    if not any(line.get_gid() == EVEN for ax in axes for line in ax.lines):
        return []
    words = "as many times the fewest processes' rate"
    return [Line2D([], [], color="0.3", lw=0.8, ls=":", label=words)]


def _line_of(row: Row, named: Labels) -> str:
    """What a line is named: a system at any number of ranks."""
    return re.sub(r" schedule\.ranks=\d+", "", named.system(row))


def _by_ranks(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by the processes that train together, as a sweep is told; nothing of one number."""
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(_ranks(row) or 1, []).append(row["id"])
    if len(found) < 2:
        return {}
    return {RANKS: [{"values": {RANKS: n}, "cells": found[n]} for n in sorted(found)]}


def _points(told: Sequence[Row], rows: Sequence[Row]) -> list[Point]:
    """The points of a sweep at which anything ran or failed, each axis in its own measure."""
    places = [(t["values"], [r for r in rows if r["id"] in t["cells"]]) for t in told]
    places = [(values, own) for values, own in places if own]
    scaled = [_scaled(values, own, places) for values, own in places]
    if any(x is None for x, _ in scaled) or len({x for x, _ in scaled}) < len(scaled):
        return [
            Point(n, ", ".join(_text(v) for v in values.values()), own)
            for n, (values, own) in enumerate(places)
        ]
    found = [
        Point(x, "\n".join([text, *_with(values)]), own, _axis(values).endswith(RANKS))
        for (x, text), (values, own) in zip(scaled, places, strict=True)
        if x
    ]
    return sorted(found, key=lambda p: p.x)


def _axis(values: Mapping[str, Any]) -> str:
    """The axis that a sweep is drawn along: its first."""
    return next(iter(values))


def _with(values: Mapping[str, Any]) -> list[str]:
    """Axes of cells that move with the first one, in words."""
    own = _axis(values)
    return [phrase(axis, _text(v)) for axis, v in values.items() if axis in AXES and axis != own]


def _scaled(
    values: Mapping[str, Any], rows: Sequence[Row], places: Sequence[tuple[Row, list[Row]]]
) -> tuple[float | None, str]:
    """Where a point lies on a numeric axis, and the number in short; None where it has none."""
    axis = _axis(values)
    value = values[axis]
    if axis == "fanouts":
        return len(value), str(len(value))
    if axis == "dataset":
        column = next((c for c in ("nodes", "feature_dim") if _differs(c, places)), "nodes")
        value = next((r[column] for r in rows if r[column] is not None), None)
    elif axis == "threads":  # 0 is as many as there are
        value = rows[0][axis]
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None, ""
    return value, short(value)


def _differs(column: str, places: Sequence[tuple[Row, list[Row]]]) -> bool:
    return len({r[column] for _, rows in places for r in rows if r[column] is not None}) > 1


def short(value: float) -> str:
    """A number in three digits and a letter: ``512``, ``16k``, ``2.1M``."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= scale:
            return f"{value / min(scale, 1e3 if letter == 'k' else scale):.3g}{letter}"
    return f"{value:.4g}"


def _text(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _panel(ax: Axes, points: Sequence[Point], systems: Sequence[str], named: Labels) -> None:
    rates = [_rate(r) for p in points for r in p.rows if _measured(r)]
    low, high = (min(rates), max(rates)) if rates else (1.0, 1.0)
    ends = (low / style.REACH, high * style.REACH)
    for number, system in enumerate(systems):
        own = [(p.x, r) for p in points for r in p.rows if _line_of(r, named) == system]
        measured = [(x, r) for x, r in own if _measured(r)]
        _line(ax, measured, number, ends)
        if points[0].of_ranks:
            _even(ax, [(x, r) for x, r in measured if _ranks(r)], number)
        for x, row in own:
            if not _measured(row):
                _cross(ax, x, row, number)
    ax.set_yscale("log")
    ax.set_ylim(ends[0] / 1.1, ends[1] * 1.6)  # crosses stand above the intervals
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    at = [p.x for p in points]
    if at[0] > 0 and at[-1] >= LOGARITHMIC * at[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(FixedLocator(at))
    ax.set_xticks(at, [p.text for p in points])
    ax.margins(x=0.1)
    if points[0].of_ranks:
        ax.set_xlabel("processes that train together", fontsize=8)


def _ranks(row: Row) -> int | None:
    """The processes that a row's system has, by its schedule."""
    found: int | None = json.loads(row["recipe"] or "{}").get("schedule", {}).get(RANKS)
    return found


def _even(ax: Axes, own: Sequence[tuple[float, Row]], number: int) -> None:
    """What as many times the fewest ranks' rate would be: a system's own dotted line."""
    if len(own) < 2:
        return
    first, rate = own[0][0], _rate(own[0][1])
    ax.plot(
        [x for x, _ in own], [rate * x / first for x, _ in own], lw=0.8, ls=":", gid=EVEN,
        color=style.PALETTE[number % len(style.PALETTE)],
    )  # fmt: skip


def _measured(row: Row) -> bool:
    return bool(row["judged_s"]) and row["status"] != "incorrect"


def _rate(row: Row) -> float:
    """Seeds per second."""
    return float(row["seeds"] / row["judged_s"])


def _line(ax: Axes, own: list[tuple[float, Row]], number: int, ends: tuple[float, float]) -> None:
    if not own:
        return
    colour = style.PALETTE[number % len(style.PALETTE)]
    ax.plot([x for x, _ in own], [_rate(r) for _, r in own], color=colour, lw=1.2)
    for x, row in own:
        ax.plot(
            [x], [_rate(row)], color=colour, markersize=4, marker=MARKERS[number % len(MARKERS)],
            markerfacecolor="white" if row["work_class"] == "different" else colour, zorder=3,
        )  # fmt: skip
        style.query(ax, x, _rate(row), row)
        for end in _interval(row):
            within = min(max(end, ends[0]), ends[1])
            ax.plot([x, x], [_rate(row), within], color=colour, lw=0.8)
            if within != end:
                marker = "^" if end > within else "v"
                ax.plot([x], [within], color=colour, marker=marker, markersize=4, gid="cut off")


def _interval(row: Row) -> tuple[float, float]:
    """Both ends of the rate's interval: infinite where a time of 0 is within."""
    rate = _rate(row)
    if row["ci_low_s"] is None or row["ci_high_s"] is None:
        return rate, rate
    fast = row["seeds"] / row["ci_low_s"] if row["ci_low_s"] > 0 else float("inf")
    return row["seeds"] / row["ci_high_s"], fast


def _cross(ax: Axes, x: float, row: Row, number: int) -> None:
    """A failure, one below the other by system."""
    height = 0.97 - 0.07 * number
    where, colour = ax.get_xaxis_transform(), style.PALETTE[number % len(style.PALETTE)]
    ax.plot([x], [height], color=colour, marker="X", markersize=6, lw=0, transform=where)
    ax.annotate(
        row["status"], (x, height), xycoords=where, xytext=(6, 0), textcoords="offset points",
        va="center", fontsize=7, color=colour,
    )  # fmt: skip


def _centre(rows: Sequence[Row], named: Labels) -> str:
    """What most cells are: those of the other sweeps are at the centre of an axis."""
    usual = [
        (axis, Counter(filter(None, (axis_value(r, axis) for r in rows))).most_common(1))
        for axis in named.axes
    ]
    return ", ".join(phrase(axis, found[0][0]) for axis, found in usual if found)


def _legend(rows: Sequence[Row], systems: Sequence[str]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=style.PALETTE[n % len(style.PALETTE)], lw=1.2, markersize=4,
               marker=MARKERS[n % len(MARKERS)], label=system)
        for n, system in enumerate(systems)
    ]  # fmt: skip
    if any(r["work_class"] == "different" for r in rows):
        handles.append(
            Line2D(
                [],
                [],
                color="0.3",
                marker="o",
                markerfacecolor="white",
                lw=0,
                label="different work: do not compare heights",
            )
        )
    if any(not _measured(r) for r in rows):
        handles.append(Line2D([], [], color="0.3", marker="X", lw=0, label="no result, and why"))
    return handles
