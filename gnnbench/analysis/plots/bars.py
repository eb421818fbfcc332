"""Horizontal bars: one line for each cell, with a column of texts on the right.

The caller sorts them. Bars and intervals that are much longer than the others are cut off and
marked, and bars that do not fit the page are counted below their panel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.analysis.plots import style
from gnnbench.analysis.plots.page import (
    LINE,
    POINT,
    SMALL,
    Page,
    broken,
    lines_of,
    more,
    text_width,
)

CUT = 4.0  # a bar longer than this multiple of the next one is cut off
ROOM = 1.05  # panel width / longest bar or interval
REST = 0.75  # height of a panel without its bars (inches): title, scale and its label
NARROW = 4.0  # panels in a column of a paper (inches)
HEIGHT = 0.66  # of a bar / distance of two bars
SHARES = 0.34, 0.2  # of a panel's width at most: names, texts on the right
# Intervals of few trials can be much longer than the bars, which must stay readable.
REACH = 2.0  # intervals are cut off at this multiple of the longest bar


@dataclass(frozen=True)
class Bar:
    """A bar, or a ``status`` in its place.

    ``parts`` are colours and lengths from left to right. ``value`` is the measured length with the
    ends of its interval, ``outline`` whether a box of this length is drawn around the parts.
    ``level`` is another value, drawn as a line across the bar.
    """

    system: str
    lines: tuple[str, ...]  # name and settings
    parts: Sequence[tuple[str, float]] = ()
    value: float = 0.0
    low: float | None = None
    high: float | None = None
    is_measured: bool = True  # whether the value has a marker
    text: str = ""
    status: str = ""
    is_reliable: bool = True
    is_different: bool = False
    is_reference: bool = False
    outline: bool = False
    level: float | None = None
    dots: Sequence[tuple[str, float]] = ()  # markers and values


@dataclass(frozen=True)
class Panel:
    """The bars of a panel from top to bottom. ``column`` is the heading of their texts."""

    title: str
    scale: str
    bars: Sequence[Bar]
    column: str = ""
    lines: Sequence[tuple[float, style.Dashes]] = ()  # vertical lines
    widest: float | None = None  # end of the scale, if it is fixed
    unit: str = "s"  # of the times that are written at bars that are cut off


def draw(page: Page, panels: Sequence[Panel]) -> tuple[Figure, list[Axes], str]:
    """Draw panels in one column, or in two where there are more than three.

    Returns the figure, the axes of the panels that are drawn, and a note on those that are not.
    """
    columns = 2 if len(panels) > 3 and page.columns > 1 else 1
    width = page.width / columns
    slots = [_slot(page, panel, width) for panel in panels]
    kept = _that_fit(page, slots, columns)
    slots, shown = slots[:kept], panels[:kept]
    most = _most_bars([len(p.bars) for p in shown], slots, columns, page.free_height)
    cut = [_shortened(p.bars, most) for p in shown]
    needed = [slot * len(bars) for slot, bars in zip(slots, cut, strict=True)]
    heights = [REST + max(needed[i : i + columns]) for i in range(0, kept, columns)]
    figure = Figure(figsize=(page.width, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    axes = [figure.add_subplot(grid[i // columns, i % columns]) for i in range(kept)]
    for ax, panel, bars, slot in zip(axes, shown, cut, slots, strict=True):
        _panel(page, ax, panel, bars, width, slot)
    return figure, axes, more(len(panels), kept, "panel")


def _that_fit(page: Page, slots: Sequence[float], columns: int) -> int:
    """The number of panels that fit the page with three bars each, at least one."""
    height = 0.0
    for start in range(0, len(slots), columns):
        height += REST + 3 * max(slots[start : start + columns])
        if height > page.free_height and start:
            return start
    return len(slots)


def _most_bars(counts: Sequence[int], slots: Sequence[float], columns: int, height: float) -> int:
    """The largest number of bars of a panel with which all panels fit ``height``."""
    for most in range(max(counts), 1, -1):
        needed = [min(n, most) * slot for n, slot in zip(counts, slots, strict=True)]
        rows = [max(needed[i : i + columns]) + REST for i in range(0, len(needed), columns)]
        if sum(rows) <= height:
            return most
    return 1


def _shortened(bars: Sequence[Bar], most: int) -> list[Bar]:
    """The first bars, and the reference as the last of them if it is a later one."""
    shown = list(bars[:most])
    reference = [bar for bar in bars[most:] if bar.is_reference]
    return [*shown[: most - 1], reference[0]] if reference and most > 1 else shown


def _names(page: Page, panel: Panel, width: float) -> list[str]:
    """The names of the bars in lines. Long names leave out the keys of their settings."""
    room = SHARES[0] * width
    names = []
    for bar in panel.bars:
        lines = [line for part in bar.lines for line in lines_of(part, room, page.names, "bold")]
        if len(lines) > 2:
            parts = [style.without_keys(part) for part in bar.lines if part]
            lines = lines_of(", ".join(parts), room, page.names, "bold")
        names.append("\n".join(lines))
    return names


def _texts(panel: Panel, width: float) -> list[str]:
    room = max(SHARES[1] * width, text_width("10.00x [10.00, 10.00],", weight="normal"))
    return [broken(bar.text, room, SMALL) for bar in panel.bars]


def _slot(page: Page, panel: Panel, width: float) -> float:
    """Distance of two bars (inches), so that no two of their texts touch."""
    lines = [text.count("\n") + 1 for text in _names(page, panel, width)]
    small = [text.count("\n") + 1 for text in _texts(panel, width)]
    points = max(max(lines, default=1) * page.names, max(small, default=1) * SMALL)
    return page.gap + LINE * POINT * points


def _panel(
    page: Page, ax: Axes, panel: Panel, bars: Sequence[Bar], width: float, slot: float
) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", linewidth=0.4, alpha=0.5)
    ax.set_axisbelow(True)
    names = dict(zip(map(id, panel.bars), _names(page, panel, width), strict=True))
    texts = dict(zip(map(id, panel.bars), _texts(panel, width), strict=True))
    top = panel.widest or scale_end(panel.bars)
    for value, dashes in panel.lines:
        if value <= top:
            ax.axvline(value, color="#444444", lw=0.9, ls=dashes, gid="reference")
    for y, bar in enumerate(bars):
        if bar.status:
            style.failure(ax, y, bar.status)
            continue
        _bar(ax, y, bar, top)
        text = texts[id(bar)]
        if bar.value > top:
            text = "\n".join(filter(None, [f"{bar.value:.3g} {panel.unit}", text]))
        ax.text(
            1.02, y, text, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL,
            gid="column",
        )  # fmt: skip
    ax.set_yticks(range(len(bars)), [names[id(bar)] for bar in bars], fontsize=page.names)
    for tick, bar in zip(ax.get_yticklabels(), bars, strict=True):
        style.set_group(tick, bar.system)
    ax.set_ylim(len(bars) - 0.4, -0.6)  # the first on top
    ax.set_xlim(0, top if panel.widest else top * ROOM)
    ax.tick_params(axis="x", labelsize=page.names)
    # The heading of the texts is on the right of the title; in a narrow panel it is below.
    is_narrow, heading = width < NARROW, ""
    if any(bar.text for bar in bars):
        heading = broken(panel.column, SHARES[1] * width + 0.3, SMALL, "bold")
    pad = 6 + LINE * SMALL * (heading.count("\n") + 1) * bool(is_narrow and heading)
    title = broken(panel.title, width * (0.6 if is_narrow else 0.45), page.names)
    ax.set_title(title, fontsize=page.names, x=0.0, ha="left", pad=pad)
    hidden = more(len(panel.bars), len(bars), "row")
    ax.set_xlabel("\n".join(filter(None, [panel.scale, hidden])), fontsize=SMALL)
    if heading:
        ax.text(
            1.02, -0.6 - 0.03 / slot, heading, fontsize=SMALL, weight="bold", va="bottom",
            transform=ax.get_yaxis_transform(), gid="heading",
        )  # fmt: skip
    if all(bar.status for bar in bars):
        ax.set(xlim=(0, 1), xticks=[], xlabel=hidden)


def scale_end(bars: Sequence[Bar]) -> float:
    """The length at which bars and intervals are cut off."""
    measured = [bar for bar in bars if not bar.status]
    longest = _longest([_length(bar) for bar in measured])
    # Only intervals of reliable rows extend the scale.
    reliable = [b for b in measured if b.is_reliable and _length(b) <= longest]
    ends = [end for b in reliable for end in (b.high, b.level) if end and math.isfinite(end)]
    end = max(ends, default=longest) or 1.0
    return min(max(end, longest), REACH * longest or end)


def _length(bar: Bar) -> float:
    return max(bar.value, sum(length for _, length in bar.parts)) if bar.outline else bar.value


def _longest(lengths: Sequence[float]) -> float:
    """Length of the longest bar that is not cut off. At least half of the bars are not."""
    ordered = sorted(lengths)
    for nth in range((len(ordered) + 1) // 2, len(ordered)):
        if ordered[nth] > CUT * ordered[nth - 1]:
            return ordered[nth - 1]
    return ordered[-1] if ordered else 0.0


def _bar(ax: Axes, y: int, bar: Bar, top: float) -> None:
    end = 0.0
    for colour, length in bar.parts:
        length = max(min(length, top - end), 0.0)
        ax.barh(
            y, length, HEIGHT, left=end, color=colour,
            edgecolor="black" if bar.is_different else "white",
            linewidth=0.8 if bar.is_different else 0.4,
            linestyle=(0, (3, 2)) if bar.is_different else "-",
            alpha=None if bar.is_reliable else style.PALE,
        )  # fmt: skip
        end += length
    if bar.outline and bar.value <= top:
        ax.barh(y, bar.value, HEIGHT, color="none", edgecolor="#555555", lw=0.8, gid="outline")
    if bar.level is not None:
        ends = [y - HEIGHT * 0.6, y + HEIGHT * 0.6]
        ax.plot([bar.level] * 2, ends, color=style.PALETTE[5], lw=2, gid="level")
    for marker, value in bar.dots:
        ax.plot([value], [y], marker, color="black", markersize=4, gid="dot", clip_on=False)
    if bar.value > top:
        style.arrow(ax, y, top, "bar")
    elif bar.is_measured:
        low = bar.value if bar.low is None else bar.low
        high = bar.value if bar.high is None else bar.high
        style.interval(ax, y, bar.value, low, high, top)
