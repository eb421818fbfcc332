"""A table of texts: fitted into a terminal, or as Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.table import Table

from gnnbench.analysis import latex
from gnnbench.analysis.grouping import group_by
from gnnbench.core import text as safe
from gnnbench.core.units import INDENT, Time, one_unit, words, wrapped

Line = Mapping[str, str | Time]  # the fields of one line by column heading

LEFT = {
    "system", "status", "work", "verdict", "cell", "kernel", "until", "dataset", "model", "device",
    "pick", "frontier", "name", "mode", "level", "bound", "remark", "claim", "paper", "measured",
    "statement", "meaning", "judged by", "scaling", "run", "revision", "versions", "change",
    "source",
}  # fmt: skip
# These columns and those before them identify a line. Each table that is split off repeats them.
KEYS = ("system", "cell", "kernel", "layer", "width", "name", "claim")
GROUPED = "cell"  # lines that share it can become a table with its value as the title
SHARED = ("device", "threads", "work")  # moved into the title if all lines have the same value
LONG = {"system", "cell", "kernel", "name", "claim", "grid", "dataset", "paper", "measured",
        "remark"}  # fmt: skip

_TIME = re.compile(r"[\d.]+ (s|ms|us)$")


@dataclass(init=False)
class TextTable:
    """Lines by heading, with a title above and a note below. Each column has one unit of time."""

    heads: Sequence[str]
    lines: Sequence[Mapping[str, str]]
    title: str
    note: str
    gap: int

    def __init__(
        self,
        heads: Sequence[str],
        lines: Sequence[Line],
        title: str = "",
        note: str = "",
        gap: int = 2,
    ) -> None:
        """``gap`` is the number of blanks between columns on a terminal."""
        self.heads, self.gap = heads, gap
        self.lines = [
            {head: _printable(value) for head, value in line.items()} for line in in_units(lines)
        ]
        self.title, self.note = safe.printable(title), safe.printable(note)

    def table(self) -> Table:
        """The table for a terminal, without title and note. Numbers are right-aligned."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, self.gap, 0, 0))
        for head in self.heads:
            table.add_column(head, justify="left" if self._is_text(head) else "right", no_wrap=True)
        for line in self.lines:
            table.add_row(*(line.get(head, "") for head in self.heads))
        return table

    def markdown(self) -> list[str]:
        """Lines of a Markdown table."""
        marks = ["---" if self._is_text(head) else "---:" for head in self.heads]
        rows = [list(map(safe.markdown, row)) for row in (self.heads, *self._rows())]
        return ["| " + " | ".join(row) + " |" for row in (rows[0], marks, *rows[1:])]

    def latex(self) -> list[str]:
        """Lines of a LaTeX ``tabular``."""
        return latex.tabular(self.heads, self._rows(), map(self._is_text, self.heads))

    def fitted(self, room: int) -> list[TextTable]:
        """Split the table into as many as needed for each to have at most ``room`` characters.

        Applied in this order until it fits: a gap of one blank; values that all lines share move
        into the title; lines of each cell become a table; long texts are wrapped and columns move
        to further tables, which repeat the names. A longer word is never broken.
        """
        if self.width() <= room:
            return [self]
        if self.gap > 1:
            return replace(self, gap=1).fitted(room)
        if shared := self._shared():
            values = ", ".join(f"{head} {text}" for head, text in shared.items())
            title = f"{self.title} ({values})" if self.title else values
            remaining = [head for head in self.heads if head not in shared]
            return replace(self, heads=remaining, title=title).fitted(room)
        tables = [part for group in self._grouped() for part in group._split(room)]
        tables[0].title = ": ".join(filter(None, [self.title, tables[0].title]))
        tables[-1].note = self.note
        return tables

    def width(self) -> int:
        """Width in characters."""
        return sum(map(self._column_width, self.heads)) + self.gap * (len(self.heads) - 1)

    def _is_text(self, head: str) -> bool:
        """Whether a column is left-aligned. A stage named like a text column holds times."""
        return head in LEFT and not any(map(_TIME.match, self._texts(head)[1:]))

    def _rows(self) -> list[list[str]]:
        return [[line.get(head, "") for head in self.heads] for line in self.lines]

    def _texts(self, head: str) -> list[str]:
        return [head, *(line.get(head, "") for line in self.lines)]

    def _column_width(self, head: str) -> int:
        return max(len(part) for text in self._texts(head) for part in text.split("\n"))

    def _minimum_width(self, head: str) -> int:
        """The width of a wrapped column: that of its longest word, indented."""
        if head not in LONG:
            return self._column_width(head)
        lengths = [len(word) for text in self._texts(head) for word in words(text)]
        return min(self._column_width(head), max(lengths, default=0) + len(INDENT))

    def _shared(self) -> dict[str, str]:
        """Values that all of several lines share, by heading."""
        values = {h: {t for t in self._texts(h)[1:] if t} for h in self.heads if h in SHARED}
        return {h: texts.pop() for h, texts in values.items() if len(texts) == 1 < len(self.lines)}

    def _grouped(self) -> list[TextTable]:
        """One table for each cell, if any cell has several lines."""
        groups = group_by(self.lines, lambda line: line.get(GROUPED, ""))
        if self.heads[0] != GROUPED or len(groups) == len(self.lines):
            return [replace(self, title="", note="")]
        return [TextTable(self.heads[1:], own, name, gap=self.gap) for name, own in groups.items()]

    def _split(self, room: int) -> list[TextTable]:
        """Fill tables with columns in order."""
        last = max((i for i, head in enumerate(self.heads) if head in KEYS), default=0)
        keys, rest = list(self.heads[: last + 1]), list(self.heads[last + 1 :])
        base = sum(map(self._minimum_width, keys)) + self.gap * (len(keys) - 1)
        parts: list[list[str]] = [[]]
        left = room - base
        for head in rest:
            if parts[-1] and self._minimum_width(head) + self.gap > left:
                parts.append([])
                left = room - base
            parts[-1].append(head)
            left -= self._minimum_width(head) + self.gap
        tables = [replace(self, heads=[*keys, *heads], title="") for heads in parts]
        tables[0].title = self.title
        return [table._wrapped(room) for table in tables]

    def _wrapped(self, room: int) -> TextTable:
        """Wrap long texts: the widest column shrinks first."""
        widths = {head: self._column_width(head) for head in self.heads}
        minimum = {head: self._minimum_width(head) for head in self.heads}
        excess = sum(widths.values()) + self.gap * (len(widths) - 1) - room
        while excess > 0 and (able := [head for head in widths if widths[head] > minimum[head]]):
            widths[max(able, key=lambda head: widths[head])] -= 1
            excess -= 1
        lines = [{h: wrapped(x.get(h, ""), widths[h]) for h in self.heads} for x in self.lines]
        return replace(self, lines=lines)


def nonempty(
    heads: Iterable[str], lines: Sequence[Mapping[str, object]], always: Sequence[str] = ()
) -> list[str]:
    """Headings of columns with a value in any line, and those in ``always``."""
    return [h for h in heads if h in always or any(line.get(h) for line in lines)]


def _printable(value: str) -> str:
    """A printable field. Line ends stay, code stays code, and marked text stays marked."""
    shown = safe.printable_lines(value, "\n")
    return type(value)(shown) if isinstance(value, safe.Code | safe.Marked) else shown


def in_units(lines: Sequence[Line], together: Iterable[Sequence[str]] = ()) -> list[dict[str, str]]:
    """Lines with times as text: one unit for each column, and one for each group ``together``."""
    groups = [list(heads) for heads in together]
    grouped = {head for heads in groups for head in heads}
    single = dict.fromkeys(head for line in lines for head in line if head not in grouped)
    texts: list[dict[str, str]] = [
        {head: "" if isinstance(value, Time) else value for head, value in line.items()}
        for line in lines
    ]
    for heads in [*groups, *([head] for head in single)]:
        times = [
            (number, head, value)
            for number, line in enumerate(lines)
            for head in heads
            if isinstance(value := line.get(head), Time)
        ]
        shown = one_unit([value for _, _, value in times])
        for (number, head, _), text in zip(times, shown, strict=True):
            texts[number][head] = text
    return texts
