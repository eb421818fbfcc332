"""Print tables, sentences and JSON on standard output, no wider than the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gnnbench.analysis.table_layout import Part

COLUMNS = 80  # of what is piped, and of a terminal that does not say


NARROWEST = 20  # columns that a terminal is taken to have at least


def print_json(value: Any) -> None:
    """A value on standard output."""
    import json

    from gnnbench.core.files import plain

    text = json.dumps(plain(value), indent=2, allow_nan=False)
    print(text.replace("\x7f", "\\u007f"))  # the only control character that JSON leaves


def print_table(title: str, rows: list[dict[str, Any]], info: Sequence[str] = ()) -> None:
    """Rows as a table without its empty columns.

    Where it would not fit, columns of ``info`` are told below it, the last of them first; where
    that is not enough, rows stand one below the other, so that nothing is cut.
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
    """Long texts in lines of their own, each after the row's name."""
    for name in names:
        for line in lines:
            if line.get(name):
                say(f"{line[key]}, {name}: {line[name]}")
        print()


def cell_text(value: Any) -> str:
    """A value as a table has it: lists and the keys of tables joined, nothing as nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | Mapping):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _console() -> Console:
    """As wide as the terminal; without one as wide as the text, so that nothing is cut."""
    from gnnbench.core import terminal

    console = terminal.console()
    if not console.is_terminal:
        return terminal.console(width=10_000)
    if console.width >= NARROWEST:
        return console
    return terminal.console(width=NARROWEST if console.width > 0 else COLUMNS)


def room() -> int:
    """Columns of the terminal; 80 of what is piped."""
    console = _console()
    return console.width if console.is_terminal else COLUMNS


def fits_terminal(table: Table) -> bool:
    """Whether a table is no wider than there is room."""
    from rich.measure import Measurement

    console = _console()
    wide = console.options.update(max_width=10_000)
    return Measurement.get(console, wide, table).maximum <= room()


def print_rich(table: Table) -> None:
    """A table on standard output."""
    _console().print(table)


def say(text: str) -> None:
    """A sentence on standard output, in lines that are no wider than there is room."""
    from gnnbench.core.text import printable
    from gnnbench.core.units import wrapped

    print(wrapped(printable(text), room()))


def print_part(part: Part) -> None:
    """A table that fits, with its title above and its note below."""
    if part.title:
        say(part.title)
    print_rich(part.table())
    if part.note:
        say(part.note)
