"""``gnnbench show``, ``gnnbench runs`` and ``gnnbench plot``: read the files of runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

import typer

from gnnbench.cli import completing
from gnnbench.cli.common import Json, Quiet, Verbose, View, Wide, chosen
from gnnbench.cli.formats import FORMAT, print_tables
from gnnbench.core.console import print_json, print_part, room, say
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.schema import CellRow, KernelRow, MetricRow, RatioRow, RooflineRow, StageRow
    from gnnbench.schema.reader import Run

MOST_NOTES = 5  # lines below a ranking

RunName = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]",
        autocompletion=completing.runs,
        help="A run's folder, an experiment (its newest run), latest, latest~1 (the one before).",
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of the results.")]


def show(
    run: RunName = "latest",
    out: Out = Path("results"),
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
    show_different: Annotated[
        bool,
        typer.Option(
            "--show-different", help="Show ratios of different work, per edge and per batch."
        ),
    ] = False,
    wide: Wide = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Print the table of a run again.

    docs/reading-results.md says how to read it.
    """
    from gnnbench.analysis import render, run_names
    from gnnbench.schema import reader

    shown = reader.read(run_names.find(run, out))
    figures = sorted((shown.path / "figures").glob("*"))
    if format == "json":
        print_json(to_json(shown, shown.cells, figures))
    elif format == "csv":
        print(render.to_csv(shown), end="")
    elif format == "markdown":
        print(render.markdown(shown, show_different), end="")
    elif format == "latex":
        print(render.latex(shown, show_different), end="")
    else:
        show_run(shown, figures, View(quiet, show_different, wide, verbose))


def runs(
    out: Out = Path("results"),
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """List runs, the newest first, by the name that other commands accept."""
    from gnnbench.analysis import run_names

    listed = run_names.listed(out)
    if not listed:
        raise UsageError(f"no results in '{out}'; 'gnnbench run breakdown' makes some")
    if format == "json":
        print_json(listed)
        return
    print_tables({"runs": listed}, format, ("datasets", "where"))


def plot(
    run: RunName = "latest",
    out: Out = Path("results"),
    figure: Annotated[str | None, typer.Option(help="Figures, separated by commas.")] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Draw PDFs for a column of a paper, 3.35 inches wide.")
    ] = False,
    json: Json = False,
) -> None:
    """Draw the figures of a run again from its files."""
    from gnnbench.analysis import run_names
    from gnnbench.analysis.plots import draw

    folder = run_names.find(run, out)
    figures = draw(folder, chosen("--figure", figure), pdf)
    if json:
        print_json({"run": str(folder), "figures": [str(f) for f in figures]})
    elif not figures:
        text = "no figure drawn: the run did not measure their data"
        print(text, file=sys.stderr)
    else:
        for path in figures:
            print(path)


class RunTables(TypedDict):
    """A run as JSON. Tables without rows are absent, except ``cells`` and ``metrics``."""

    run: str
    figures: list[str]
    cells: list[dict[str, object]]
    metrics: list[MetricRow]
    ratios: NotRequired[list[RatioRow]]
    stages: NotRequired[list[StageRow]]
    kernels: NotRequired[list[KernelRow]]
    roofline: NotRequired[list[RooflineRow]]


def to_json(run: Run, rows: Sequence[CellRow], figures: Sequence[Path]) -> RunTables:
    """Convert a run for JSON: its folder, figures, ``rows`` of cells and all other tables.

    Cells have every column of the schema; recipe and fanouts are parsed.
    """
    tables: RunTables = {
        "run": str(run.path), "figures": [str(path) for path in figures],
        "cells": [_parse_cell(row) for row in rows], "metrics": run.metrics,
    }  # fmt: skip
    if run.ratios:
        tables["ratios"] = run.ratios
    if run.stages:
        tables["stages"] = run.stages
    if run.kernels:
        tables["kernels"] = run.kernels
    if run.roofline:
        tables["roofline"] = run.roofline
    return tables


def _parse_cell(row: CellRow) -> dict[str, object]:
    """All columns of a cell, with the recipe and the fanouts parsed from their CSV text."""
    from json import loads

    from gnnbench.schema import CELLS

    columns = {column.name: row.get(column.name) for column in CELLS}
    fanouts = [int(part) for part in (row.get("fanouts") or "").split("/") if part]
    return {**columns, "recipe": loads(row.get("recipe") or "{}"), "fanouts": fanouts}


def show_run(run: Run, figures: Sequence[Path], view: View) -> None:
    """Print the tables of a run, the fastest systems, remarks, and the paths of its files.

    A run that compares several systems is ranked in one table, unless ``view`` is wide.
    """
    from gnnbench.analysis import ranking, render, row_remarks, run_names, summary, table
    from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable
    from gnnbench.core.units import plural

    say(table.heading(run.cells))
    for line in render.warnings(run):
        say(line)
    is_ranking = ranking.is_ranking(run) and not (view.wide or view.different)
    if is_ranking:
        print()
        for sentence in summary.winners(run.cells):
            say(sentence)
        parts = [part for whole in ranking.ranking_tables(run) for part in whole.fitted(room())]
    else:
        parts = render.tables(run, view.different, room())
    for part in parts:
        print()
        print_part(part)
    if run.ratios and not is_ranking:
        print()
        for line in row_remarks.ratio_lines(run.ratios, run.cells):
            say(line)
    if view.quiet:
        for reason in row_remarks.reasons(run.cells):
            say(reason)
    else:
        print()
        notes = render.remarks(run, view.different or is_ranking)
        _print_notes(notes, view.verbose or not is_ranking)
        measured = sum(r["status"] in ("ok", "unstable") for r in run.cells)
        marked = sum(map(is_unreliable, run.cells))
        also = f", {marked} of them unreliable {UNRELIABLE_MARK}" if marked else ""
        print(f"\n{measured} of {plural(len(run.cells), 'cell')} measured{also}")
        if run.record.get("finished") is False:
            if run_names.is_running(run.path):
                print("running: cells that are not measured yet are missing")
            else:
                print("interrupted, so cells may be missing: give the run's command with --resume")
        if is_ranking:
            print(f"\nAll columns: gnnbench show {run.path} --wide")
        else:
            for sentence in summary.winners(run.cells):
                say(sentence)
            print(f"\nAgain: gnnbench show {run.path} (--format csv, markdown, latex or json)")
    print(run.path / "cells.csv")
    for path in (*figures, *sorted((run.path / "traces").glob("*"))):
        print(path)


def _print_notes(notes: Sequence[str], all_of_them: bool) -> None:
    """Print notes, the first ``MOST_NOTES`` of them unless all are wanted."""
    shown = notes if all_of_them or len(notes) <= MOST_NOTES else notes[: MOST_NOTES - 1]
    for note in shown:
        say(note)
    if rest := len(notes) - len(shown):
        print(f"... and {rest} more notes: --verbose prints them")
