"""Where figures are read, on a screen or in a column of a paper: sizes, panels, title and legend.

All texts have 7 pt or more on both. No text is wider than its figure, and no figure is higher than
its page: panels and bars that do not fit are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from gnnbench.analysis.labels import Labels
from gnnbench.core.units import plural, words

T = TypeVar("T")
POINT = 1 / 72  # inches
SMALL, NORMAL = 7.0, 8.0  # sizes of texts (pt)
LINE = 1.25  # height of a line / size of its font
HINTING = 1.04  # largest width of a text as drawn / its width here
HANDLE = 0.5  # of a legend entry, with the space around it (inches)
GREY = "#555555"
MOST_TRIES = 4  # to draw a figure that fits its page


@dataclass(frozen=True)
class Page:
    """Sizes in inches: of a figure at most, and the height of panels of lines, which may shrink."""

    width: float
    height: float
    columns: int
    panel: float
    least_panel: float
    title: float  # size of the title (pt)
    names: float  # of names and scales
    gap: float  # between the texts of two bars
    rest: float  # height of title and legend

    def panels(self, count: int, most: int = 3) -> tuple[Figure, list[Axes]]:
        """Panels in rows of at most ``most``. It does not use the global state of pyplot."""
        columns = self._in_a_row(count, most)
        lines = -(-count // columns)
        rows = [min(self.panel, max(self.free_height / lines, self.least_panel))] * lines
        width = self.width if columns > 1 else min(self.width, 5.6)
        figure = Figure(figsize=(width, sum(rows)), layout="constrained")
        grid = figure.add_gridspec(len(rows), columns, height_ratios=rows)
        axes = [figure.add_subplot(grid[i // columns, i % columns]) for i in range(count)]
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(axis="y", linewidth=0.4, alpha=0.5)
            ax.set_axisbelow(True)
            ax.tick_params(labelsize=self.names)
        return figure, axes

    def fitting(self, panels: Sequence[T], most: int = 3, each: int = 1) -> list[T]:
        """The first panels that fit the page, at least one. ``each`` stands for several axes."""
        columns = self._in_a_row(len(panels) * each, most)
        lines = int(self.free_height / self.least_panel)
        if each == 1:
            return list(panels[: lines * columns])
        return list(panels[: max(lines // -(-each // columns), 1)])

    def _in_a_row(self, count: int, most: int) -> int:
        return max(min(count, most, self.columns), 1)

    @property
    def free_height(self) -> float:
        """Height for panels."""
        return self.height - self.rest

    def axis_texts(self, ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
        """Set the title and the labels of a panel, broken into lines where it is small."""
        place, figure = ax.get_subplotspec(), ax.get_figure(root=True)
        assert place is not None and figure is not None
        grid = place.get_gridspec()
        width = figure.get_figwidth() / grid.ncols * len(place.colspan) - 0.6
        # Panels have their heights in inches as ratios.
        height = float(np.asarray(grid.get_height_ratios(), float)[place.rowspan.start])
        ax.set_title(broken(title, width, self.names), fontsize=self.names)
        ax.set_xlabel(broken(x, width, SMALL), fontsize=SMALL)
        ax.set_ylabel(broken(y, height - 0.75, SMALL), fontsize=SMALL)

    def head(
        self,
        figure: Figure,
        first: str,
        named: Labels | None = None,
        but: Collection[str] = (),
        last: Iterable[str] = (),
    ) -> None:
        """Add a short title and below it a small caption: the settings that all rows share."""
        room = figure.get_figwidth() - 0.1
        parts = [named.title(but) if named else "", *last]
        lines = [line for part in parts for line in lines_of(part, room, SMALL)]
        # The layout makes room for one title of one size: its first two lines, empty, are this one.
        figure.suptitle("\n".join(["", "", *lines]), fontsize=SMALL, color=GREY)
        heighten(figure, (2 + len(lines)) * SMALL * LINE * POINT)
        top = 1 - rcParams["figure.constrained_layout.h_pad"] / figure.get_figheight()
        figure.text(0.5, top, first, fontsize=self.title, ha="center", va="top", gid="title")

    def legend(self, figure: Figure, handles: Sequence[Artist], note: str = "") -> None:
        """Add a legend below all panels. ``note`` is a text below its entries."""
        if note:
            handles = [*handles, Line2D([], [], lw=0, label=note)]
        if not handles:
            return
        room = figure.get_figwidth() - 0.1
        width = _label_width([str(handle.get_label()) for handle in handles], room, self.columns)
        for handle in handles:
            handle.set_label(broken(str(handle.get_label()), width, SMALL, "bold"))
        labels = [str(handle.get_label()) for handle in handles]
        columns = next(n for n in range(min(len(labels), 6), 0, -1) if _fits(labels, n, room))
        figure.legend(
            handles=list(handles), loc="outside lower center", ncols=columns, fontsize=SMALL,
            frameon=False, columnspacing=1.0, handlelength=1.8,
        )  # fmt: skip
        lines = [label.count("\n") + 1 for label in labels]
        longest = max(sum(column) for column in _columns(lines, columns))
        heighten(figure, longest * SMALL * 1.5 * POINT + 0.1)


SCREEN = Page(
    width=9.4,
    height=10.6,
    columns=3,
    panel=2.7,
    least_panel=1.7,
    title=11.0,
    names=NORMAL,
    gap=0.1,
    rest=1.2,
)
COLUMN = Page(
    width=3.35,
    height=9.0,
    columns=1,
    panel=1.75,
    least_panel=1.6,
    title=9.0,
    names=SMALL,
    gap=0.1,
    rest=1.5,
)


def fitted(draw: Callable[[Page], Figure | None], page: Page) -> Figure | None:
    """Draw a figure again with fewer panels and bars while it is higher than its page."""
    figure = draw(page)
    for _ in range(MOST_TRIES):
        if figure is None or figure.get_figheight() <= page.height:
            return figure
        excess = figure.get_figheight() - page.height
        page = replace(page, rest=page.rest + excess)
        figure = draw(page)
    if figure is not None:
        figure.set_figheight(min(figure.get_figheight(), page.height))
    return figure


def heighten(figure: Figure, inches: float) -> None:
    """Make a figure higher."""
    figure.set_figheight(figure.get_figheight() + inches)


def _columns(entries: Sequence[T], count: int) -> list[Sequence[T]]:
    """Entries in the columns in which matplotlib sets them: the first ones have one more."""
    length, longer = divmod(len(entries), count)
    ends = [0]
    for n in range(count):
        ends.append(ends[-1] + length + (n < longer))
    return [entries[a:b] for a, b in pairwise(ends)]


def _label_width(labels: Sequence[str], room: float, columns: int) -> float:
    """Width of the labels of a legend (inches).

    In a column of a paper two columns of broken lines are lower than one of whole ones.
    """
    half = (room - 0.1) / 2 - HANDLE
    is_broken = any(text_width(word) > half for label in labels for word in words(label))
    if columns > 1 or len(labels) == 1 or is_broken:
        return room - HANDLE
    lines = [len(lines_of(label, half, SMALL, "bold")) for label in labels]
    return half if max(lines) <= 3 else room - HANDLE


def _fits(labels: Sequence[str], columns: int, room: float) -> bool:
    widths = [max(text_width(label) for label in own) for own in _columns(labels, columns)]
    return columns == 1 or sum(widths) + HANDLE * columns + 0.1 * (columns - 1) <= room


@lru_cache(1 << 12)
def text_width(text: str, size: float = SMALL, weight: str = "bold") -> float:
    """Width of a text's longest line (inches), by default of a bold one, the widest."""
    font = FontProperties(size=size, weight=weight)
    widths = (
        text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]
        for line in text.split("\n")
        if line
    )
    return max(widths, default=0.0) * POINT * HINTING


def lines_of(text: str, room: float, size: float, weight: str = "normal") -> list[str]:
    """A text in lines that are at most ``room`` wide (inches). Intervals are not broken."""
    lines: list[str] = []
    for word in words(text):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, weight) <= room:
            lines[-1] = longer
            continue
        while text_width(word, size, weight) > room and len(word) > 1:
            end = next(
                n for n in range(len(word) - 1, 0, -1)
                if n == 1 or text_width(word[:n], size, weight) <= room
            )  # fmt: skip
            lines.append(word[:end])
            word = word[end:]
        lines.append(word)
    return lines


def broken(text: str, room: float, size: float, weight: str = "normal") -> str:
    """The same, as one text."""
    return "\n".join(lines_of(text, room, size, weight))


def more(total: int, shown: int, thing: str, table: str = "cells.csv") -> str:
    """A note on what a figure leaves out, ``3 more panels in cells.csv``; "" for nothing."""
    hidden = total - shown
    return f"{hidden} more {plural(hidden, thing).partition(' ')[2]} in {table}" * (hidden > 0)
