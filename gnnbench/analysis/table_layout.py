"""One table in the making: for a terminal in as much room as there is, for Markdown, for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from gnnbench.analysis import latex
from gnnbench.core import text as safe
from gnnbench.core.units import INDENT, Time, one_unit, words, wrapped

Line = Mapping[str, Any]  # a text or a Time by head

LEFT = {
    "system", "status", "work", "verdict", "cell", "kernel", "until", "dataset", "model", "device",
    "pick", "frontier", "name", "mode", "level", "bound", "remark", "claim", "paper", "measured",
    "statement", "meaning", "judged by", "scaling",
}  # fmt: skip
# What a line is of: these and the columns before them stand in each table that one is cut into.
KEYS = ("system", "cell", "kernel", "layer", "width", "name", "claim")
GROUPED = "cell"  # of which several lines may be told below its name
SHARED = ("device", "threads", "work")  # told once, where all lines that have one have the same
LONG = {"system", "cell", "kernel", "name", "claim", "grid", "dataset", "paper", "measured",
        "remark"}  # fmt: skip

_TIME = re.compile(r"[\d.]+ (s|ms|us)$")


@dataclass
class Part:
    """Lines by head, with a title above and a note below; each column has its times in one unit."""

    heads: Sequence[str]
    lines: Sequence[Line]
    title: str = ""
    note: str = ""
    gap: int = 2  # blanks between columns of a terminal

    def __post_init__(self) -> None:
        self.lines = [
            {head: _printable(value) for head, value in line.items()}
            for line in in_units(self.lines)
        ]
        self.title, self.note = safe.printable(self.title), safe.printable(self.note)

    def table(self) -> Table:
        """For a terminal, without title and note: numbers to the right."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, self.gap, 0, 0))
        for head in self.heads:
            table.add_column(head, justify="left" if self._left(head) else "right", no_wrap=True)
        for line in self.lines:
            table.add_row(*(line.get(head, "") for head in self.heads))
        return table

    def markdown(self) -> list[str]:
        """For a document: lines of a Markdown table."""
        marks = ["---" if self._left(head) else "---:" for head in self.heads]
        rows = [list(map(safe.markdown, row)) for row in (self.heads, *self._rows())]
        return ["| " + " | ".join(row) + " |" for row in (rows[0], marks, *rows[1:])]

    def latex(self) -> list[str]:
        """For a paper: lines of a LaTeX tabular."""
        return latex.tabular(self.heads, self._rows(), map(self._left, self.heads))

    def fitted(self, room: int) -> list[Part]:
        """The same in as many tables as it takes for each to be no wider than ``room`` columns.

        Tried in turn: columns move together; what all lines share goes into the title; each cell of
        several lines gets a table; long texts go over several lines; columns go to further tables,
        each with the names. A word that is wider stays whole.
        """
        if self.width() <= room:
            return [self]
        if self.gap > 1:
            return replace(self, gap=1).fitted(room)
        if shared := self._shared():
            told = ", ".join(f"{head} {text}" for head, text in shared.items())
            title = f"{self.title} ({told})" if self.title else told
            kept = [head for head in self.heads if head not in shared]
            return replace(self, heads=kept, title=title).fitted(room)
        found = [cut for group in self._grouped() for cut in group._cut(room)]
        found[0].title = ": ".join(filter(None, [self.title, found[0].title]))
        found[-1].note = self.note
        return found

    def width(self) -> int:
        """Columns that it takes."""
        return sum(self._wide(head) for head in self.heads) + self.gap * (len(self.heads) - 1)

    def _left(self, head: str) -> bool:
        """Texts; a stage may have the name of a column of texts, and has times."""
        return head in LEFT and not any(map(_TIME.match, self._texts(head)[1:]))

    def _rows(self) -> list[list[str]]:
        return [[line.get(head, "") for head in self.heads] for line in self.lines]

    def _texts(self, head: str) -> list[str]:
        return [head, *(line.get(head, "") for line in self.lines)]

    def _wide(self, head: str) -> int:
        return max(len(part) for text in self._texts(head) for part in text.split("\n"))

    def _least(self, head: str) -> int:
        """The narrowest that a column can be: a long text's longest word, indented."""
        if head not in LONG:
            return self._wide(head)
        whole = [word for text in self._texts(head) for word in words(text)]
        return min(self._wide(head), max(map(len, whole), default=0) + len(INDENT))

    def _shared(self) -> dict[str, str]:
        found = {h: {t for t in self._texts(h)[1:] if t} for h in self.heads if h in SHARED}
        return {h: texts.pop() for h, texts in found.items() if len(texts) == 1 < len(self.lines)}

    def _grouped(self) -> list[Part]:
        groups: dict[str, list[Line]] = {}
        for line in self.lines:
            groups.setdefault(line.get(GROUPED, ""), []).append(line)
        if self.heads[0] != GROUPED or len(groups) == len(self.lines):
            return [replace(self, title="", note="")]
        return [Part(self.heads[1:], own, name, gap=self.gap) for name, own in groups.items()]

    def _cut(self, room: int) -> list[Part]:
        """Columns in order, as many in each table as there is room for."""
        last = max((i for i, head in enumerate(self.heads) if head in KEYS), default=0)
        keys, rest = list(self.heads[: last + 1]), list(self.heads[last + 1 :])
        base = sum(self._least(head) for head in keys) + self.gap * (len(keys) - 1)
        parts: list[list[str]] = [[]]
        left = room - base
        for head in rest:
            if parts[-1] and self._least(head) + self.gap > left:
                parts.append([])
                left = room - base
            parts[-1].append(head)
            left -= self._least(head) + self.gap
        cut = [replace(self, heads=[*keys, *heads], title="") for heads in parts]
        cut[0].title = self.title
        return [part._folded(room) for part in cut]

    def _folded(self, room: int) -> Part:
        """Long texts in lines: by turns the widest column gives way."""
        wide = {head: self._wide(head) for head in self.heads}
        least = {head: self._least(head) for head in self.heads}
        over = sum(wide.values()) + self.gap * (len(wide) - 1) - room
        while over > 0 and (able := [head for head in wide if wide[head] > least[head]]):
            wide[max(able, key=lambda head: wide[head])] -= 1
            over -= 1
        lines = [{h: wrapped(line.get(h, ""), wide[h]) for h in self.heads} for line in self.lines]
        return replace(self, lines=lines)


def _printable(value: str) -> str:
    """A cell of a table, in lines where it has several; code stays code."""
    shown = safe.printable_lines(value, "\n")
    return safe.Code(shown) if isinstance(value, safe.Code) else shown


def in_units(lines: Sequence[Line], together: Iterable[Sequence[str]] = ()) -> list[dict[str, str]]:
    """Lines with their times in words: one unit a column, the same for heads ``together``."""
    found = [dict(line) for line in lines]
    several = [list(heads) for heads in together]
    known = {head for heads in several for head in heads}
    alone = dict.fromkeys(head for line in found for head in line if head not in known)
    for heads in [*several, *([head] for head in alone)]:
        places = [(x, h) for x in found for h in heads if isinstance(x.get(h), Time)]
        texts = one_unit([line[head] for line, head in places])
        for (line, head), text in zip(places, texts, strict=True):
            line[head] = text
    return found
