"""``gnnbench compare``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from gnnbench.cli import completing
from gnnbench.cli.formats import FORMAT
from gnnbench.core.console import print_json, print_part, room, say
from gnnbench.core.errors import EXIT_CELLS_FAILED, EXIT_OK, EXIT_REGRESSION


def compare(
    a: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.runs,
            help="Before: a run's folder, an experiment, latest, latest~1 (one back).",
        ),
    ],
    b: Annotated[str, typer.Argument(autocompletion=completing.runs, help="After: the same.")],
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    fail_on: Annotated[
        Literal["slower", "never"],
        typer.Option(
            "--fail-on",
            help="Exit with 5 if a cell is slower in B or only A measured it, or never.",
        ),
    ] = "slower",
    margin: Annotated[float, typer.Option(min=0, max=0.99, help="Relative loss to accept.")] = 0.01,
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """Compare run B with run A, cell by cell.

    Cells of the same work are matched. The verdict rests on the change of a cell's speed-up over
    the reference that was measured in the same run, so that a change of the machine between the
    runs cancels. The times are shown, but no verdict rests on them: a cell without a usable
    speed-up in both runs is 'not judged', and the reason follows. B is 'slower' (a regression) if
    the interval of the change lies wholly beyond the margin, or if A measured a cell and B failed
    to. Exit code 5 if there is a regression, 3 if no cell could be judged; 0 with --fail-on never.
    """
    from gnnbench.analysis import compare as comparing
    from gnnbench.analysis import compare_text, run_names
    from gnnbench.schema import reader

    before, after = (reader.read(run_names.find(name, out)) for name in (a, b))
    comparison = comparing.compare(before, after, margin)
    if format == "json":
        print_json(comparison.to_json())
    elif format == "csv":
        print(compare_text.to_csv(comparison), end="")
    elif format == "markdown":
        print(compare_text.markdown(comparison), end="")
    elif format == "latex":
        print(compare_text.latex(comparison), end="")
    else:
        say(comparison.common)
        print()
        part, remarks = compare_text.table(comparison), compare_text.remarks(comparison)
        if part.width() > room():
            part = compare_text.table(comparison, narrow=True)
            remarks = [compare_text.RATIOS, *compare_text.reasons(comparison), *remarks]
        for cut in part.fitted(room()):
            print_part(cut)
            print()
        for line in remarks:
            say(line)
    if fail_on == "never":
        raise typer.Exit(EXIT_OK)
    if comparison.regressions:
        raise typer.Exit(EXIT_REGRESSION)
    if not comparison.judged:
        print("gnnbench: no cell could be judged", file=sys.stderr)
    raise typer.Exit(EXIT_OK if comparison.judged else EXIT_CELLS_FAILED)
