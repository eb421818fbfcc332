"""``gnnbench show``, ``gnnbench runs`` and ``gnnbench plot``: what runs left on disk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gnnbench.cli.common import Json, Quiet, comma, print_json, print_part, room, say
from gnnbench.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.results.reader import Run

RunName = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]",
        help="A run's folder, an experiment (its newest run), latest, latest~1 (the one before).",
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of the results to look in.")]


def show(
    run: RunName = "latest",
    out: Out = Path("results"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown, for a document.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="LaTeX, for a paper.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV: plain numbers, times in s.")] = False,
    show_different: Annotated[
        bool, typer.Option("--show-different", help="Ratios of different work, per edge and batch.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Print the table of a run again.

    docs/reading-results.md says how to read it.
    """
    from gnnbench.results import named, reader, shown

    if markdown + latex + csv > 1:
        raise UsageError("--markdown, --latex and --csv are forms of one table; give one of them")
    found = reader.read(named.find(run, out))
    if markdown:
        print(shown.markdown(found, show_different), end="")
    elif latex:
        print(shown.latex(found, show_different), end="")
    elif csv:
        print(shown.to_csv(found), end="")
    else:
        figures = sorted((found.path / "figures").glob("*"))
        show_run(found, figures, quiet, show_different)


def runs(out: Out = Path("results"), json: Json = False) -> None:
    """List runs, the newest first, by the name that every command takes for a run."""
    from gnnbench.cli.common import print_table
    from gnnbench.results import named

    found = named.listed(out)
    if not found:
        raise UsageError(f"no results in '{out}'; 'gnnbench run breakdown' makes some")
    if json:
        print_json(found)
        return
    print_table("runs", found, ("datasets", "where"))


def plot(
    run: RunName = "latest",
    out: Out = Path("results"),
    figure: Annotated[str, typer.Option(help="Figures, separated by commas.")] = "",
    json: Json = False,
) -> None:
    """Draw the figures of a run again, from what it left on disk."""
    from gnnbench.plots import draw
    from gnnbench.results import named

    folder = named.find(run, out)
    figures = draw(folder, comma(figure))
    if json:
        print_json({"run": str(folder), "figures": [str(f) for f in figures]})
    elif not figures:
        text = "nothing is drawn: the run has not measured what these figures show"
        print(text, file=sys.stderr)
    else:
        for path in figures:
            print(path)


def show_run(run: Run, figures: Sequence[Path], quiet: bool, different: bool) -> None:
    """Tables, who is fastest, what the tables cannot say, and where everything lies."""
    from gnnbench.results import named, shown, table, winner
    from gnnbench.results.doubts import DOUBT, in_doubt
    from gnnbench.results.units import plural

    say(table.heading(run.cells))
    for line in shown.busy(run):
        say(line)
    for found in shown.tables(run, different, room()):
        print()
        print_part(found)
    if run.ratios:
        print()
        for line in table.ratio_lines(run.ratios, run.cells):
            say(line)
    if quiet:
        for reason in table.reasons(run.cells):
            say(reason)
    else:
        print()
        for remark in shown.remarks(run, different):
            say(remark)
        measured = sum(r["status"] in ("ok", "unstable") for r in run.cells)
        marked = sum(map(in_doubt, run.cells))
        also = f", {marked} of them in doubt {DOUBT}" if marked else ""
        print(f"\n{measured} of {plural(len(run.cells), 'cell')} measured{also}")
        if run.record.get("finished") is False:
            if named.is_running(run.path):
                print("running: cells that are not measured yet are missing")
            else:
                print("interrupted, so cells may be missing: give the run's command with --resume")
        for sentence in winner.winners(run.cells):
            say(sentence)
        print(f"\nAgain: gnnbench show {run.path} (--markdown, --latex, --csv)")
    print(run.path / "cells.csv")
    for path in figures:
        print(path)
