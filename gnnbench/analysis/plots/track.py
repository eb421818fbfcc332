"""Ratios of cells over runs or versions, with their changes."""

from __future__ import annotations

import itertools
import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gnnbench.analysis.compare import NOT_JUDGED
from gnnbench.analysis.plots.style import PALE, PALETTE
from gnnbench.analysis.track import FASTER, FIRST, SLOWER, VERSIONS, Point, Series, Track
from gnnbench.core import text as safe
from gnnbench.core.units import plural

MARKERS = {FASTER: ("^", PALETTE[2], 7.0), SLOWER: ("v", PALETTE[5], 7.0)}
OTHER = ("o", PALETTE[0], 4.0)  # marker, colour, size (pt)
MOST = 9  # panels, three in a row
WIDTH, HEIGHT = 3.1, 2.9  # of a panel (inches)
GREY = "#666666"
TICKS = 10  # labels of runs in a panel
LETTERS = 38  # in a line of a panel's title


def figure(track: Track) -> Figure:
    """A panel for each cell: its ratio with interval, in the order of the runs or versions.

    Triangles are changes, pale points are not judged. A dotted line separates ratios that cannot be
    compared. Runs are labelled with their start, and with the versions of packages that changed.
    Cells with changes come first if there are too many.
    """
    changed = {id(series) for series, _ in track.changes()}
    shown = sorted(track.series, key=lambda series: id(series) not in changed)[:MOST]
    columns = min(len(shown), 3)
    lines = -(-len(shown) // columns)
    size = max(WIDTH * columns, 5.5), HEIGHT * lines + 0.8
    result = Figure(figsize=size, layout="constrained")
    for number, series in enumerate(shown, 1):
        _panel(result.add_subplot(lines, columns, number), series, track.over)
    caption = textwrap.wrap(safe.figure(track.common), int(size[0] * 14))
    title = f"Speed-up over the reference by {track.over}"
    result.suptitle("\n".join([title, *caption]), fontsize=8)
    more = len(track.series) - len(shown)
    note = [f"{plural(more, 'more cell')}: see the table"] if more else []
    handles = [*_legend(), *(Line2D([], [], lw=0, label=text) for text in note)]
    result.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return result


def _panel(ax: Axes, series: Series, over: str) -> None:
    points = list(enumerate(series.points))
    starts = [x for x, point in points if point.change == FIRST]
    for start, end in itertools.pairwise([*starts, len(points)]):
        line = [(x, p.ratio) for x, p in points[start:end] if p.change != NOT_JUDGED]
        ax.plot(*zip(*line, strict=True), color=GREY, lw=0.8, zorder=1)
    for start in starts[1:]:
        ax.axvline(start - 0.5, color=GREY, lw=0.8, ls=":")
    for x, point in points:
        _draw(ax, x, point)
    ax.axhline(1, color=GREY, lw=0.8, ls="--", zorder=0)
    every = -(-len(points) // TICKS)
    ticks = [label if x % every == 0 else "" for x, label in enumerate(_labels(series, over))]
    ax.set_xticks(range(len(points)), ticks, rotation=60, ha="right", fontsize=7)
    ax.set_xlim(-0.5, len(points) - 0.5)
    ax.tick_params(axis="y", labelsize=7)
    ax.grid(axis="y", linewidth=0.4, alpha=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    reference = textwrap.shorten(safe.figure(series.reference), 32, placeholder="...")
    over_text = "" if over == VERSIONS else f" over {reference}"
    ax.set_ylabel(f"speed-up{over_text}", fontsize=7)
    ax.set_title("\n".join(textwrap.wrap(safe.figure(series.cell), LETTERS)), fontsize=8)


def _draw(ax: Axes, x: int, point: Point) -> None:
    if point.ratio is None:
        return
    marker, colour, size = MARKERS.get(point.change, OTHER)
    ends = [
        abs(end - point.ratio) if end is not None else 0.0
        for end in (point.ratio_ci_low, point.ratio_ci_high)
    ]
    ax.errorbar(
        x, point.ratio, yerr=[[end] for end in ends], fmt=marker, color=colour, markersize=size,
        alpha=PALE if point.change == NOT_JUDGED else None, capsize=3, lw=1,
    ).lines[0].set_gid(point.change)  # fmt: skip


def _labels(series: Series, over: str) -> list[str]:
    """The name of each point, and its versions if they are not those of the one before."""
    texts, before = [], ""
    for point in series.points:
        versions = "" if over == VERSIONS else series.versions(point)
        name = point.name.rpartition("/")[2]
        parts = [name, *(textwrap.wrap(versions, 24) if versions != before else [])]
        texts.append("\n".join(map(safe.figure, parts)))
        before = versions
    return texts


def _legend() -> list[Line2D]:
    words = {FASTER: "faster than before", SLOWER: "slower than before"}
    marks = [
        Line2D([], [], lw=0, marker=marker, color=colour, markersize=size, label=words[change])
        for change, (marker, colour, size) in MARKERS.items()
    ]
    marker, colour, size = OTHER
    kinds = {"first, or intervals overlap": None, "not judged": PALE}
    border = Line2D([], [], color=GREY, lw=0.8, ls=":", label="not comparable with earlier ones")
    return [border, *marks] + [
        Line2D([], [], lw=0, marker=marker, color=colour, markersize=size, alpha=pale, label=text)
        for text, pale in kinds.items()
    ]
