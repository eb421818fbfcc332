"""Throughput along one axis at a time, one panel for each sweep of a definition.

After FastGL's Fig. 14.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import AXES, Labels, axis_value, labels, phrase
from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import SCREEN, Page, more
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import SweepPoint
from gnnbench.statistics import primary_metric

REACH = 2.0  # intervals are cut off at this multiple of the highest rate, and below the lowest
APART = 3.0  # distance of lines with equal values (pt)
LOGARITHMIC = 8  # largest / smallest value from which an axis is logarithmic
ABSENT = ("missing_dep", "missing_data")
RANKS = "ranks"  # the last part of an axis that is a number of processes
LINEAR = "linear"  # gid of lines of linear scaling


@dataclass(frozen=True)
class AxisValue:
    """One value of a sweep: its position on the axis, its label, and its rows.

    ``of_ranks``: whether the axis is the number of processes that train together.
    """

    x: float
    text: str
    rows: Sequence[CellRow]
    of_ranks: bool = False


def figure(run: Run, page: Page = SCREEN) -> Figure | None:
    """Seeds per second of the primary metric with its 95 % interval.

    None if the run has neither a sweep nor several numbers of ranks. Cells without their package or
    dataset are left out; any other failure is a cross at the top with its status. Markers of
    different work are hollow.
    """
    rows = [r for r in run.cells if r["status"] not in ABSENT]
    sweeps: Mapping[str, Sequence[SweepPoint]] = run.record.sweeps or _by_ranks(rows)
    panels = {name: values for name, sweep in sweeps.items() if (values := _values(sweep, rows))}
    if not panels:
        return None
    named = labels(run.cells)
    kept = page.fitting(list(panels))
    drawn = [r for name in kept for v in panels[name] for r in v.rows]
    lines = _by_rate(drawn, named)
    result, axes = page.panels(len(kept))
    for ax, name in zip(axes, kept, strict=True):
        points = panels[name]
        _panel(ax, points, lines, named)
        words = ", ".join(
            dict.fromkeys(primary_metric.of(r["until"]).words for p in points for r in p.rows)
        )
        of_ranks = "processes that train together" if points[0].of_ranks else ""
        title = name.replace("_", " ")
        page.axis_texts(ax, title, of_ranks, f"seeds per second of {words}")
    centre = f"around {_centre(drawn, named)}" if len(panels) > 1 else ""
    systems = {r["system"] for r in drawn}
    notes = [centre, style.group_note(systems), more(len(panels), len(kept), "panel")]
    page.head(result, "Throughput along one axis at a time", named, last=notes)
    handles = [
        *_legend(drawn, lines), *_linear_legend(axes), *style.cut_off(axes), *style.doubts(drawn),
    ]  # fmt: skip
    page.legend(result, handles)
    style.set_groups(result, systems)
    return result


def _by_rate(rows: Sequence[CellRow], named: Labels) -> list[str]:
    """The names of lines, the highest rate first."""
    best: dict[str, float] = {}
    for row in rows:
        name = _line_of(row, named)
        best[name] = max(best.get(name, 0.0), _rate(row) if _measured(row) else 0.0)
    return sorted(best, key=lambda name: -best[name])


def _linear_legend(axes: Sequence[Axes]) -> list[Line2D]:
    """The legend entry of dotted lines, if any are drawn."""
    if not any(line.get_gid() == LINEAR for ax in axes for line in ax.lines):
        return []
    words = "linear scaling from the fewest processes"
    return [Line2D([], [], color="0.3", lw=0.8, ls=":", label=words)]


def _line_of(row: CellRow, named: Labels) -> str:
    """The label of a line: the system without its number of ranks."""
    return re.sub(r" schedule\.ranks=\d+", "", named.system(row))


def _by_ranks(rows: Sequence[CellRow]) -> dict[str, list[SweepPoint]]:
    """A sweep over the number of ranks; none if all rows have the same number."""
    groups = group_by(rows, lambda row: _ranks(row) or 1)
    if len(groups) < 2:
        return {}
    ids = {n: [row["id"] for row in groups[n]] for n in sorted(groups)}
    return {RANKS: [SweepPoint(values={RANKS: n}, cells=own) for n, own in ids.items()]}


def _values(sweep: Sequence[SweepPoint], rows: Sequence[CellRow]) -> list[AxisValue]:
    """The values of a sweep that have rows, on a numeric axis or else evenly spaced."""
    points = [(p.values, [r for r in rows if r["id"] in p.cells]) for p in sweep]
    points = [(values, own) for values, own in points if own]
    columns = {c for c in ("nodes", "feature_dim") if _differs(c, [own for _, own in points])}
    scaled = [_scaled(values, own, columns) for values, own in points]
    if any(x is None for x, _ in scaled) or len({x for x, _ in scaled}) < len(scaled):
        return [
            AxisValue(n, ", ".join(_text(v) for v in values.values()), own)
            for n, (values, own) in enumerate(points)
        ]
    axis_values = [
        AxisValue(x, "\n".join([text, *_other_axes(values)]), own, _axis(values).endswith(RANKS))
        for (x, text), (values, own) in zip(scaled, points, strict=True)
        if x
    ]
    return sorted(axis_values, key=lambda v: v.x)


def _axis(values: Mapping[str, object]) -> str:
    """The axis of a sweep: the first of those that it changes."""
    return next(iter(values))


def _other_axes(values: Mapping[str, object]) -> list[str]:
    """Values of the other axes that a sweep changes, as phrases."""
    own = _axis(values)
    return [phrase(axis, _text(v)) for axis, v in values.items() if axis in AXES and axis != own]


def _scaled(
    values: Mapping[str, object], rows: Sequence[CellRow], varying: Collection[str]
) -> tuple[float | None, str]:
    """Position on a numeric axis (None if there is none) and its label.

    ``varying`` names the columns by which datasets of the sweep differ.
    """
    axis = _axis(values)
    value = values[axis]
    if axis == "fanouts" and isinstance(value, list):
        return len(value), str(len(value))
    if axis == "dataset":
        column = "feature_dim" if "feature_dim" in varying and "nodes" not in varying else "nodes"
        value = next((r[column] for r in rows if r[column] is not None), None)
    elif axis == "threads":  # 0 means all
        value = rows[0][axis]
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None, ""
    return value, short(value)


def _differs(column: str, groups: Sequence[list[CellRow]]) -> bool:
    return len({r[column] for rows in groups for r in rows if r[column] is not None}) > 1


def short(value: float) -> str:
    """A number in three digits and a letter: ``512``, ``16k``, ``2.1M``."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= scale:
            return f"{value / min(scale, 1e3 if letter == 'k' else scale):.3g}{letter}"
    return f"{value:.4g}"


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _panel(ax: Axes, points: Sequence[AxisValue], lines: Sequence[str], named: Labels) -> None:
    rates = [_rate(r) for p in points for r in p.rows if _measured(r)]
    low, high = (min(rates), max(rates)) if rates else (1.0, 1.0)
    room = (low / REACH, high * REACH)
    top = room[1]
    for number, name in enumerate(lines):
        own = [(p.x, r) for p in points for r in p.rows if _line_of(r, named) == name]
        measured = [(x, r) for x, r in own if _measured(r)]
        _line(ax, measured, number, len(lines), room)
        if points[0].of_ranks:
            top = max(top, _linear(ax, [(x, r) for x, r in measured if _ranks(r)], number))
        for x, row in own:
            if not _measured(row):
                _cross(ax, x, row, number)
    ax.set_yscale("log")
    ax.set_ylim(room[0] / 1.1, top * 1.6)  # crosses are above the intervals
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


def _ranks(row: CellRow) -> int | None:
    """The number of ranks of a row's schedule; None without ranks."""
    return json.loads(row["recipe"] or "{}").get("schedule", {}).get(RANKS)


def _linear(ax: Axes, own: Sequence[tuple[float, CellRow]], number: int) -> float:
    """Draw linear scaling from the fewest ranks as a dotted line. Returns its upper end."""
    if len(own) < 2:
        return 0.0
    first, rate = own[0][0], _rate(own[0][1])
    scaled = [rate * x / first for x, _ in own]
    color = style.look(number)["color"]
    ax.plot([x for x, _ in own], scaled, lw=0.8, ls=":", gid=LINEAR, color=color)
    return max(scaled)


def _measured(row: CellRow) -> bool:
    return bool(row["judged_s"]) and row["status"] != "incorrect"


def _rate(row: CellRow) -> float:
    """Seeds per second."""
    return float(row["seeds"] / row["judged_s"])


def _line(
    ax: Axes, own: list[tuple[float, CellRow]], number: int, lines: int, room: tuple[float, float]
) -> None:
    if not own:
        return
    look = style.look(number)
    # Lines are next to each other by a few points, so that their intervals can be told apart.
    figure = ax.get_figure(root=True)
    assert figure is not None
    shift = ScaledTranslation(APART * (number - (lines - 1) / 2) / 72, 0, figure.dpi_scale_trans)
    where = ax.transData + shift
    places, rates = [x for x, _ in own], [_rate(r) for _, r in own]
    ax.plot(places, rates, color=look["color"], lw=1.2, transform=where)
    for x, row in own:
        face = "white" if row["work_class"] == "different" else look["color"]
        ax.plot([x], [_rate(row)], markerfacecolor=face, zorder=3, transform=where, **look)
        style.mark_doubt(ax, x, _rate(row), row)
        style.upright_interval(ax, x, _rate(row), _interval(row), room, look["color"], where)


def _interval(row: CellRow) -> tuple[float, float]:
    """The interval of the rate; its upper end is infinite if that of the time includes 0."""
    rate = _rate(row)
    if row["ci_low_s"] is None or row["ci_high_s"] is None:
        return rate, rate
    fast = row["seeds"] / row["ci_low_s"] if row["ci_low_s"] > 0 else float("inf")
    return row["seeds"] / row["ci_high_s"], fast


def _cross(ax: Axes, x: float, row: CellRow, number: int) -> None:
    """Draw a failure, with a height for each system."""
    height = 0.97 - 0.07 * number
    where, colour = ax.get_xaxis_transform(), style.look(number)["color"]
    ax.plot([x], [height], color=colour, marker="X", markersize=6, lw=0, transform=where)
    ax.annotate(
        row["status"], (x, height), xycoords=where, xytext=(6, 0), textcoords="offset points",
        va="center", fontsize=7, color=colour,
    )  # fmt: skip


def _centre(rows: Sequence[CellRow], named: Labels) -> str:
    """The most frequent value of each axis: the centre of all sweeps."""
    usual = [
        (axis, Counter(filter(None, (axis_value(r, axis) for r in rows))).most_common(1))
        for axis in named.axes
    ]
    return ", ".join(phrase(axis, most[0][0]) for axis, most in usual if most)


def _legend(rows: Sequence[CellRow], lines: Sequence[str]) -> list[Line2D]:
    handles = [Line2D([], [], label=name, **style.look(n)) for n, name in enumerate(lines)]
    if any(r["work_class"] == "different" for r in rows):
        words = "different work: do not compare heights"
        handles.append(
            Line2D([], [], color="0.3", marker="o", markerfacecolor="white", lw=0, label=words)
        )
    if any(not _measured(r) for r in rows):
        handles.append(Line2D([], [], color="0.3", marker="X", lw=0, label="no result: status"))
    return handles
