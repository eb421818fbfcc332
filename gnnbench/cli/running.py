"""``gnnbench run`` and ``gnnbench plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gnnbench.cli.common import (
    Json,
    Quiet,
    Stop,
    comma,
    fits_terminal,
    print_json,
    print_rich,
    print_table,
)
from gnnbench.errors import EXIT_INTERRUPTED, UsageError


def run(
    experiment: Annotated[str, typer.Argument(help="Shipped name or path of a TOML definition.")],
    systems: Annotated[str, typer.Option(help="Systems, separated by commas.")] = "",
    datasets: Annotated[str, typer.Option(help="Datasets, separated by commas.")] = "",
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "",
    profile: Annotated[str, typer.Option(help="smoke, laptop, real or paper.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "",
    pick: Annotated[str, typer.Option(help="One way to pick neighbours for all systems.")] = "",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    repeats: Annotated[
        int, typer.Option(min=0, help="Exact number of pairs of fresh processes.")
    ] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help="Set an axis, a limit or a system's option."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME=PATH",
            help="Run the systems in another Python environment too, beside this one.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show cells and estimates.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Continue the last run.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Resume though something changed.")
    ] = False,
    only_failed: Annotated[
        bool,
        typer.Option("--only-failed", help="Of the last run, run again what is not ok, no more."),
    ] = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast", help="Go on after a failed cell, or stop at the first."
        ),
    ] = True,
    show_different: Annotated[
        bool, typer.Option("--show-different", help="Ratios of different work, per edge and batch.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment; ends with a table, a CSV and pictures.

    Exit codes: 0 ok, 1 internal, 2 usage, 3 some cells failed, 4 a correctness check failed,
    5 regression or claim failed, 6 backend or data missing, 130 stopped by Ctrl-C.
    """
    from gnnbench.overrides import Overrides
    from gnnbench.runner.launch import make_request

    over = Overrides(
        profile, comma(systems), comma(datasets), comma(models), device, pick, seed, repeats,
        tuple(option or ()), tuple(env or ()),
    )  # fmt: skip
    if force and not (resume or only_failed):
        raise UsageError("--force belongs to --resume; give both or neither")
    request = make_request(experiment, over, out, resume, force, only_failed, keep_going)
    if dry_run:
        _show_dry_run(request, json)
        return
    from gnnbench.plots import draw
    from gnnbench.progress import Display
    from gnnbench.runner import campaign

    with Display(quiet) as display:
        for note in request.plan.notes:
            display.note(note)
        try:
            outcome = campaign.run(request, display)
        except campaign.Interrupted as stopped:
            raise Stop(
                f"interrupted; what is finished is in '{stopped.folder}', go on by giving the same"
                " command with --resume",
                EXIT_INTERRUPTED,
            ) from None
        display.step("drawing", 0.0)
        figures = draw(outcome.folder, request.experiment.figures)
    _show_run(outcome.folder, outcome.rows, figures, json, quiet, show_different)
    raise typer.Exit(outcome.exit_code)


def plot(
    run_dir: Annotated[
        Path | None, typer.Argument(help="Folder of a run; the latest if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results to look in.")] = Path("results"),
    figure: Annotated[str, typer.Option(help="Figures, separated by commas.")] = "",
    json: Json = False,
) -> None:
    """Draw the figures of a run again, from what it left on disk."""
    from gnnbench.plots import draw
    from gnnbench.results import reader

    folder = run_dir or reader.latest(out)
    figures = draw(folder, comma(figure))
    if json:
        print_json({"run": str(folder), "figures": [str(f) for f in figures]})
    elif not figures:
        typer.echo("nothing is drawn: the run has not measured what these figures show", err=True)
    else:
        for path in figures:
            print(path)


def _show_dry_run(request: Any, json: bool) -> None:
    from gnnbench.results.labels import labels
    from gnnbench.results.units import seconds
    from gnnbench.runner.estimate import describe

    found = describe(request.plan, request.experiment.measure)
    if json:
        print_json({"experiment": request.experiment.name, "profile": request.profile, **found})
        return
    # A cell is one line; equal work under several names is told by all of them.
    named = labels({**r, "system": name} for r in found["cells"] for name in r["names"])
    rows = [
        {
            "system": " = ".join(named.system({**r, "system": name}) for name in r["names"]),
            **named.values(r),
            "status": r["status"],
            "time": seconds(r["estimated_time_s"]),
            "memory": _gib(r["estimated_bytes"]),
            "reason": r["reason"],
        }
        for r in found["cells"]
    ]
    print(named.title())
    print_table("cells", rows)
    print(
        f"{len(rows)} cells in {found['pairs']} pairs; roughly"
        f" {seconds(found['estimated_time_s'])} and {_gib(found['estimated_peak_bytes'])}"
        + (
            f", and {unknown} of unknown size"
            if (unknown := found["pairs_of_unknown_size"])
            else ""
        )
    )
    for note in found["notes"]:
        print(note)


def _gib(count: int | None) -> str:
    return "" if count is None else f"{count / 2**30:.1f} GiB"


def _show_run(
    folder: Path, rows: list[Any], figures: list[Path], json: bool, quiet: bool, different: bool
) -> None:
    from gnnbench.results import inside_table, overlap_table, reader, roofline_table, table
    from gnnbench.results.schema import CELLS

    run = reader.read(folder)
    if json:
        paths = {"run": str(folder), "figures": [str(f) for f in figures]}
        cells = [{c.name: row.get(c.name) for c in CELLS} for row in rows]
        inside = {"ratios": run.ratios, "stages": run.stages, "kernels": run.kernels}
        inside["roofline"] = run.roofline
        told = {"cells": cells, "metrics": run.metrics, **{k: v for k, v in inside.items() if v}}
        print_json({**paths, **told})
        return
    tables = table.tables(rows, run.metrics, different)
    if not all(fits_terminal(t) for t in tables):
        tables = table.tables(rows, run.metrics, different, narrow=True)
    overlap = overlap_table.overlap_table(rows, run.metrics)
    tables += [overlap.table(gap=1)] if overlap.lines else []
    tables += [inside_table.stages_table(run.stages).table()] if run.stages else []
    tables += [inside_table.kernels_table(run.kernels).table()] if run.kernels else []
    tables += [part.table(gap=1) for part in roofline_table.roofline_tables(run.roofline)]
    print(table.heading(rows))
    for found in tables:
        print()
        print_rich(found)
    if run.ratios:
        print("\n" + "\n".join(table.ratio_lines(run.ratios, rows)))
    if not quiet:
        print()
        for remark in [*table.remarks(rows, different), *roofline_table.remarks(run.roofline)]:
            print(remark)
    print(folder / "cells.csv")
    for path in figures:
        print(path)
