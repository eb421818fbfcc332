"""Print tables, sentences and JSON on standard output, no wider than the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gnnbench.analysis.table_layout import TextTable

COLUMNS = 80  # width of piped output, and of a terminal of unknown width
NARROWEST = 20  # smallest width assumed for a terminal


def print_json(value: object) -> None:
    """A value on standard output."""
    import json

    from gnnbench.core.files import plain

    text = json.dumps(plain(value), indent=2, allow_nan=False)
    print(text.replace("\x7f", "\\u007f"))  # the only control character that JSON leaves


def print_table(title: str, rows: Sequence[Mapping[str, object]], info: Sequence[str] = ()) -> None:
    """Print rows as a table without empty columns.

    Columns of ``info`` move below a table that is too wide, the last one first. If it is still too
    wide, each row is printed as a list of its values. Nothing is cut.
    """
    if not rows:
        return
    lines = [{key: cell_text(value) for key, value in row.items()} for row in rows]
    names = [k for k in lines[0] if any(line.get(k) for line in lines)]
    below: list[str] = []
    for name in (None, *(n for n in reversed(info) if n in names)):
        below = [name, *below] if name else below
        table = _table([n for n in names if n not in below], lines)
        if fits_terminal(table):
            say(title)
            print_rich(table)
            print()
            _print_info(names[0], below, lines)
            return
    say(title)
    print()
    for line in lines:
        print(line[names[0]])
        for name in names[1:]:
            if line.get(name):
                say(f"  {name}: {line[name]}")
        print()


def _table(names: Sequence[str], lines: Sequence[dict[str, str]]) -> Table:
    from rich.table import Table

    from gnnbench.core.text import printable

    table = Table(*names, box=None, pad_edge=False, header_style="bold")
    for line in lines:
        table.add_row(*(printable(line.get(name, "")) for name in names))
    return table


def _print_info(key: str, names: Sequence[str], lines: Sequence[dict[str, str]]) -> None:
    """Print long texts as separate lines, each after its row's name."""
    for name in names:
        for line in lines:
            if line.get(name):
                say(f"{line[key]}, {name}: {line[name]}")
        print()


def cell_text(value: object) -> str:
    """A value as table text: lists and keys of mappings joined, None as an empty text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | Mapping):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _console() -> Console:
    """Console of the terminal's width; unlimited for piped output, so that nothing is cut."""
    from gnnbench.core import terminal

    console = terminal.console()
    if not console.is_terminal:
        return terminal.console(width=10_000)
    if console.width >= NARROWEST:
        return console
    return terminal.console(width=NARROWEST if console.width > 0 else COLUMNS)


def room() -> int:
    """Width of the terminal in columns; of piped output ``COLUMNS``, or 80 where it is not set."""
    console = _console()
    if console.is_terminal:
        return console.width
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), NARROWEST) if columns.isdecimal() and int(columns) else COLUMNS


def fits_terminal(table: Table) -> bool:
    """Whether a table fits the width of the terminal."""
    from rich.measure import Measurement

    console = _console()
    wide = console.options.update(max_width=10_000)
    return Measurement.get(console, wide, table).maximum <= room()


def print_rich(table: Table) -> None:
    """A table on standard output."""
    _console().print(table)


def say(text: str) -> None:
    """Print a sentence, wrapped to the width of the terminal."""
    from gnnbench.core.text import printable
    from gnnbench.core.units import wrapped

    print(wrapped(printable(text), room()))


def print_part(part: TextTable) -> None:
    """A table that fits, with its title above and its note below."""
    if part.title:
        say(part.title)
    print_rich(part.table())
    if part.note:
        say(part.note)
