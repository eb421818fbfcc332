"""What the commands share: options and ways to print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnnbench.errors import GnnbenchError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]


def comma(text: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


class Stop(GnnbenchError):
    """An end that is not an error of the program, with its own exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def print_json(value: Any) -> None:
    """A value on standard output."""
    import json

    from gnnbench.files import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Rows as a table, or one below the other where it would not fit."""
    from rich.table import Table

    if not rows:
        return
    names = [k for k in rows[0] if any(r.get(k) not in (None, "") for r in rows)]
    table = Table(*names, box=None, pad_edge=False, header_style="bold", title=title)
    table.title_justify = "left"
    for row in rows:
        table.add_row(*(str(v) if (v := row.get(n)) not in (None, "") else "" for n in names))
    if fits_terminal(table):
        print_rich(table)
        print()
        return
    print(f"{title}\n")  # a column too narrow would cut what is meant to be copied
    for row in rows:
        print(row[names[0]])
        for name in names[1:]:
            if row.get(name) not in (None, ""):
                print(f"  {name}: {row[name]}")
        print()


def _console() -> Console:
    """As wide as the terminal; without one as wide as the text, so that nothing is cut."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # a reader that has seen enough: the command line knows

    console = Piped(markup=False, highlight=False)
    return console if console.is_terminal else Piped(markup=False, highlight=False, width=10_000)


def fits_terminal(table: Table) -> bool:
    """Whether a table is no wider than what it is printed on."""
    from rich.measure import Measurement

    console = _console()
    wide = console.options.update(max_width=10_000)
    return Measurement.get(console, wide, table).maximum <= console.width


def print_rich(table: Table) -> None:
    """A table on standard output."""
    _console().print(table)
