"""``gnnbench compare``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gnnbench.cli.common import print_json, print_part, room, say
from gnnbench.errors import EXIT_OK, EXIT_REGRESSION


class Format(StrEnum):
    """How a comparison is printed."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"


def compare(
    a: Annotated[
        str,
        typer.Argument(help="Before: a run's folder, an experiment, latest, latest~1 (one back)."),
    ],
    b: Annotated[str, typer.Argument(help="After: the same.")],
    out: Annotated[Path, typer.Option(help="Folder of the results to look in.")] = Path("results"),
    margin: Annotated[float, typer.Option(min=0, max=0.99, help="Relative loss to accept.")] = 0.01,
    format: Annotated[Format, typer.Option(help="What to print.")] = Format.table,
) -> None:
    """Hold run B against run A, cell by cell.

    Cells are matched by what they are. Judged is the change of a cell's ratio over the reference
    that ran beside it, pair by pair, so that the two days of a machine cancel; the times of two
    runs alone are shown and judged by nobody. B is 'slower' (a regression) where the interval of
    the change lies wholly beyond the margin; a cell that A measured and B failed is one as well.
    Exit code 5 if there is a regression, else 0.
    """
    from gnnbench.results import compare as comparing
    from gnnbench.results import compare_text, named, reader

    before, after = (reader.read(named.find(name, out)) for name in (a, b))
    found = comparing.compare(before, after, margin)
    if format is Format.json:
        print_json(found.to_json())
    elif format is Format.csv:
        print(compare_text.to_csv(found), end="")
    elif format is Format.markdown:
        print(compare_text.markdown(found), end="")
    else:
        say(found.common)
        print()
        part, told = compare_text.part(found), compare_text.remarks(found)
        if part.width() > room():
            part = compare_text.part(found, narrow=True)
            told = [compare_text.RATIOS, *compare_text.reasons(found), *told]
        for cut in part.fitted(room()):
            print_part(cut)
            print()
        for line in told:
            say(line)
    raise typer.Exit(EXIT_REGRESSION if found.regressions else EXIT_OK)
