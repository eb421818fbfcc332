"""The ``--format`` option: one spelling for every command that prints a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand

from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from typer._click.core import Context

    from gnnbench.analysis.table_layout import TextTable

SHORT = "--json"
DEPRECATED = ("--csv", "--markdown", "--latex")
FORMAT = typer.Option("--format", help=f"Output format; {SHORT} is short for --format json.")


class FormatCommand(TyperCommand):
    """A command with ``--format`` that also accepts ``--json`` and the deprecated spellings."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Replace ``--json``, ``--csv``, ``--markdown`` and ``--latex`` by ``--format``.

        Raises ``UsageError`` for more than one format.
        """
        options, rest = _split(args)
        aliases = [option for option in options if option in (SHORT, *DEPRECATED)]
        formats = [o for o in options if o == "--format" or o.startswith("--format=")]
        if len(dict.fromkeys(aliases)) + len(formats) > 1 and not ctx.resilient_parsing:
            raise UsageError("more than one format is given; give --format once")
        options = [option for option in options if option not in aliases]
        for alias in dict.fromkeys(aliases):
            options.append(f"--format={alias[2:]}")
            if alias in DEPRECATED and not ctx.resilient_parsing:
                text = f"{alias} is deprecated; give --format {alias[2:]}"
                print(f"gnnbench: {text}", file=sys.stderr)
        return super().parse_args(ctx, options + rest)


def _split(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments at ``--``, which ends the options and starts the second list."""
    at = args.index("--") if "--" in args else len(args)
    return list(args[:at]), list(args[at:])


def print_tables(
    tables: Mapping[str, Sequence[Mapping[str, object]]], form: str, info: Sequence[str] = ()
) -> None:
    """Print rows by title as ``csv``, ``markdown``, ``latex`` or a table of the terminal.

    Empty tables and empty columns are left out; ``info`` names columns of long texts. Raises
    ``UsageError`` for CSV of more than one table.
    """
    from gnnbench.core import console

    filled = {title: [dict(row) for row in rows] for title, rows in tables.items() if rows}
    if form == "csv":
        if len(tables) > 1:
            names = ", ".join(tables)
            raise UsageError(f"CSV holds one table, and this is several ({names}); name one")
        for rows in filled.values():
            print(_csv(rows), end="")
        return
    for title, rows in filled.items():
        if form == "table":
            console.print_table(title, rows, info)
        else:
            print_document(title, _text_table(rows), form)


def print_document(title: str, table: TextTable, form: str) -> None:
    """Print a table as Markdown or LaTeX, with its title above."""
    from gnnbench.core import text as safe

    if form == "markdown":
        heading = [f"{safe.markdown_line(title)}:", ""] if title else []
        print("\n".join([*heading, *table.markdown()]) + "\n")
    else:
        heading = [f"% {safe.printable(title)}"] if title else []
        print("\n".join([*heading, *table.latex()]))


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    import csv
    import io

    from gnnbench.core import text as safe

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerow(map(safe.csv_cell, names))
    for row in rows:
        writer.writerow(safe.csv_cell(_plain(row.get(name))) for name in names)
    return out.getvalue()


def _plain(value: object) -> object:
    """Numbers unchanged, other values as the text of a table cell."""
    from gnnbench.core.console import cell_text

    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number else cell_text(value)


def _text_table(rows: Sequence[Mapping[str, object]]) -> TextTable:
    from gnnbench.analysis.table_layout import TextTable
    from gnnbench.core.console import cell_text

    class Plain(TextTable):
        """A table that aligns only columns of numbers to the right."""

        def _is_text(self, head: str) -> bool:
            return any(not text[:1].isdigit() for text in self._texts(head)[1:] if text)

    lines = [{name: cell_text(value) for name, value in row.items()} for row in rows]
    names = dict.fromkeys(name for line in lines for name in line)
    return Plain([name for name in names if any(line.get(name) for line in lines)], lines)
