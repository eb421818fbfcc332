"""Shared by all figures: colours for colour-blind readers, names, and marks of bars and points."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypedDict, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Transform

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import SAMPLER_AXES, CellFields, Labels, axis_value, phrase
from gnnbench.analysis.plots.page import NORMAL
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable
from gnnbench.core import registry
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

Dashes = Literal["-", "--", "-.", ":"] | tuple[float, Sequence[float]]
RowT = TypeVar("RowT", bound=CellFields)
RecordT = TypeVar("RecordT", bound=Record)
_DatasetRow = TypeVar("_DatasetRow", CellRow, SampleRow)
MARKERS = "osD^vPX*"
FRAMEWORKS = ("dgl", "pyg", "graphbolt", "wholegraph", "cugraph-pyg")
OUR_OWN = ("baseline", "best", "pyg-native-sampler")  # the others are from papers
DASHED = (0, (4, 3))  # of the reference's line
NEAREST_LABEL = 0.06  # distance of two tick labels / length of the axis
PALE = 0.35  # opacity of unreliable rows


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
            if isinstance(value, str) and (text := _drawable_text(name, value)) != value:
                setattr(row, name, text)
    return drawable


@lru_cache(4096)  # samples and metrics repeat the same texts
def _drawable_text(name: str, value: str) -> str:
    if name == "recipe" and value:  # JSON: its texts are replaced one by one
        return json.dumps(_drawable(json.loads(value)))
    return safe.figure(value)


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


def doubts(rows: Iterable[CellFields], pale: bool = False) -> list[Line2D]:
    """The legend entry of that mark, and of ``pale`` bars, if any row is unreliable."""
    if not any(map(is_unreliable, rows)):
        return []
    mark = UNRELIABLE_MARK + ", pale" * pale
    return [Line2D([], [], lw=0, label=f"{mark}: unreliable; the table says why")]


def mark_doubt(ax: Axes, x: float, y: float, row: CellFields) -> None:
    """Annotate the point of an unreliable row."""
    if is_unreliable(row):
        ax.annotate("(?)", (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)


def groups(rows: Sequence[RowT], axes: Collection[str]) -> dict[tuple[str, ...], list[RowT]]:
    """Rows by their values of ``axes``, in order."""
    return group_by(rows, lambda row: tuple(axis_value(row, axis) for axis in axes))


def usual(rows: Sequence[CellRow], named: Labels, but: Collection[str] = ()) -> dict[str, str]:
    """Settings of samplers that more than half of the rows share, by axis. Names omit them."""
    axes = [axis for axis in SAMPLER_AXES if axis in named.axes and axis not in but]
    most = {axis: Counter(axis_value(r, axis) for r in rows).most_common(1)[0] for axis in axes}
    return {axis: value for axis, (value, n) in most.items() if value and 2 * n > len(rows)}


def settings(
    row: CellRow, named: Labels, but: Collection[str], omitted: Mapping[str, str]
) -> str:  # fmt: skip
    """The settings in which a row differs from others, without the ``usual`` ones."""
    values = named.values(row)
    phrases = named.varying(row, but)
    return ", ".join(text for axis, text in phrases.items() if values[axis] != omitted.get(axis))


def usual_note(omitted: Mapping[str, str]) -> str:
    """A note on the settings that names omit."""
    words = ", ".join(phrase(axis, value) for axis, value in omitted.items())
    return f"{words} unless a name says otherwise" if words else ""


class Look(TypedDict):
    """Properties of a line."""

    color: str
    marker: str
    markersize: float
    linewidth: float
    linestyle: Dashes


def look(number: int, width: float = 1.2, size: float = 4.0, dashes: Dashes = "-") -> Look:
    """The line of a number, different for the first 64 in colour or marker."""
    marker = MARKERS[(number + number // len(PALETTE)) % len(MARKERS)]
    return Look(
        color=PALETTE[number % len(PALETTE)], marker=marker, markersize=size, linewidth=width,
        linestyle=dashes,
    )  # fmt: skip


def set_group(text: Text, system: str) -> None:
    """Set the font of a name: gnnbench's own systems are bold, frameworks in italics."""
    text.set_fontweight("bold" if system in OUR_OWN else "normal")
    text.set_fontstyle("italic" if system in FRAMEWORKS else "normal")


def group_note(systems: Iterable[str]) -> str:
    """What fonts of names mean; "" if all systems are of one group."""
    words = {"gnnbench: bold": OUR_OWN, "frameworks: italics": FRAMEWORKS}
    names = set(systems)
    present = [text for text, group in words.items() if names & set(group)]
    papers = ["systems of papers: plain"] * bool(names - {*OUR_OWN, *FRAMEWORKS})
    return ", ".join([*present, *papers]) if len(present) + len(papers) > 1 else ""


def set_groups(figure: Figure, systems: Collection[str]) -> None:
    """Set the fonts of a legend's names of systems."""
    for legend in figure.legends:
        for text in legend.get_texts():
            name = text.get_text().split("\n")[0].split(" ")[0].rstrip(",")
            if name in systems:
                set_group(text, name)


def speed_up_over(rows: Iterable[CellRow]) -> str:
    """The heading of a column of ratios; "" without ratios."""
    rows = list(rows)
    references = {r["reference"] for r in rows if r.get("ratio") is not None}
    if not references:
        return ""
    name = references.pop() if len(references) == 1 else ""
    is_clear = sum(r["system"] == name.partition(" ")[0] for r in rows) <= 1
    return f"speed-up over {name}" if name and is_clear else "speed-up over the reference"


def reference_keys(line: str, ratio: str) -> list[Line2D]:
    """Legend entries of the reference's line and of the column of ratios."""
    words = f"speed-up: {ratio}, paired, 95 % interval"
    return [reference_line(line), Line2D([], [], lw=0, label=words)]


def reference_line(words: str) -> Line2D:
    """The legend entry of the dashed line of a reference."""
    return Line2D([], [], color="#444444", lw=0.9, ls=DASHED, label=words)


def interval_key(words: str) -> Line2D:
    """The legend entry of a marker with an interval."""
    return Line2D([], [], color="black", marker="D", markersize=3.5, lw=1, label=words)


def without_keys(name: str) -> str:
    """A name without the keys of its settings, except where another stage has this value too.

    ``best sampler=fastsample schedule.depth=8`` becomes ``best fastsample depth=8``.
    """
    words = []
    for word in name.split(" "):
        key, equals, value = word.partition("=")
        stages = [kind for kind in registry.KINDS[1:] if value in registry.OURS[kind]]
        if equals:
            word = value if stages == [key] else f"{key.rpartition('.')[2]}={value}"
        words.append(word)
    return " ".join(words)


def not_drawn(rows: Iterable[CellFields], named: Labels, but: Collection[str] = ()) -> str:
    """A note that names incorrect cells, which figures of lines leave out."""
    names = [named.of(row, but) for row in rows if row.get("status") == "incorrect"]
    return f"not drawn, incorrect: {'; '.join(names)}" if names else ""


def interval(ax: Axes, y: float, at: float, low: float, high: float, top: float) -> None:
    """Draw a marker with its interval, cut off at ``top`` with an arrow."""
    end = max(at, min(high, top))
    ax.errorbar(
        at, y, xerr=[[max(at - low, 0.0)], [end - at]], fmt="D", color="black", markersize=3.5,
        capsize=0 if high > end else 3, lw=1,
    )  # fmt: skip
    if high > end:
        arrow(ax, y, end, "cut off")


def arrow(ax: Axes, y: float, end: float, kind: str) -> None:
    """Mark a bar or interval that is cut off. ``kind`` is a key of ``ARROWS``."""
    ax.plot([end], [y], color="black", marker=">", markersize=6, gid=kind)


def upright_interval(
    ax: Axes, x: float, at: float, ends: tuple[float, float], room: tuple[float, float],
    colour: str, transform: Transform | None = None,
) -> None:  # fmt: skip
    """Draw the interval of a point of a line, cut off at the ends of ``room`` with arrows."""
    where = transform or ax.transData
    for end, marker in zip(ends, "v^", strict=True):
        within = min(max(end, room[0]), room[1])
        ax.plot([x, x], [at, within], color=colour, lw=0.8, transform=where)
        kind, marker = ("cut off", marker) if within != end else ("end", "_")
        ax.plot(
            [x], [within], color=colour, marker=marker, markersize=4, lw=0, gid=kind,
            transform=where,
        )  # fmt: skip


def set_ticks(ax: Axes, ticks: Sequence[float]) -> None:
    """Set a tick for each value, on a logarithmic scale for a wide range.

    A tick too close to the previous label has no label.
    """
    far = ticks[0] > 0 and ticks[-1] / ticks[0] > len(ticks)
    at = [math.log(t) for t in ticks] if far else list(ticks)
    texts, last = [""] * len(ticks), -math.inf
    for n, position in enumerate(at):
        if position - last >= NEAREST_LABEL * (at[-1] - at[0]):
            texts[n], last = f"{ticks[n]:,g}", position
    if far:
        ax.set_xscale("log")
    ax.set_xticks(ticks, texts, rotation=30, ha="right")
    ax.minorticks_off()


def failure(ax: Axes, y: float, status: str) -> None:
    """Write a status in place of a bar, so that it does not look like a result."""
    ax.text(
        0.01, y, f"no result: {status}", ha="left", va="center", fontsize=NORMAL, color="#666666",
        style="italic", transform=ax.get_yaxis_transform(), gid="no result",
    )  # fmt: skip


ARROWS = {"cut off": "interval cut off", "bar": "bar cut off, see its value"}


def cut_off(axes: Iterable[Axes]) -> list[Line2D]:
    """Legend entries of the arrows that are drawn."""
    drawn = {str(line.get_gid()): line for ax in axes for line in ax.lines}
    return [
        Line2D([], [], color="black", marker=drawn[kind].get_marker(), lw=0, label=words)
        for kind, words in ARROWS.items()
        if kind in drawn
    ]
