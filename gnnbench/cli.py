"""The command line: parses, asks the modules that know, prints what they answer."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gnnbench.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REGRESSION,
    EXIT_USAGE,
    DataError,
    GnnbenchError,
    UsageError,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Compare sampling-based GNN training systems on this machine, on identical work.",
)
data_app = typer.Typer(no_args_is_help=True, help="List, describe, prepare and verify datasets.")
app.add_typer(data_app, name="data")

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]


def _comma(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="Shipped name or path of a TOML definition.")],
    systems: Annotated[str, typer.Option(help="Systems, separated by commas.")] = "",
    datasets: Annotated[str, typer.Option(help="Datasets, separated by commas.")] = "",
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "",
    profile: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "",
    pick: Annotated[str, typer.Option(help="One way to pick neighbours for all systems.")] = "",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    repeats: Annotated[int, typer.Option(min=0, help="Exact number of rounds.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help="Set an axis, a limit or a system's option."),
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
        profile, _comma(systems), _comma(datasets), _comma(models), device, pick, seed, repeats,
        tuple(option or ()),
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
            raise _Stop(
                f"interrupted; what is finished is in '{stopped.folder}', go on by giving the same"
                " command with --resume",
                EXIT_INTERRUPTED,
            ) from None
        display.step("drawing", 0.0)
        figures = draw(outcome.folder, request.experiment.figures)
    _show_run(outcome.folder, outcome.rows, figures, json, quiet, show_different)
    raise typer.Exit(outcome.exit_code)


@app.command()
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
    figures = draw(folder, _comma(figure))
    if json:
        _print_json({"run": str(folder), "figures": [str(f) for f in figures]})
    else:
        for path in figures:
            print(path)


@app.command()
def calibrate(
    system: Annotated[str, typer.Option(help="System to hold against itself.")] = "baseline",
    dataset: Annotated[str, typer.Option(help="Dataset; default: the smoke profile's.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "",
    pairs: Annotated[int, typer.Option(min=2, help="Pairs of new workers.")] = 8,
    rounds: Annotated[int, typer.Option(min=3, help="Rounds of each pair.")] = 40,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help="Set an axis, a limit or a system's option."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the samples.")] = Path("results"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure this machine's noise: A/A pairs, false calls, smallest detectable difference.

    Two workers of one system are interleaved as two systems would be. The noise floor (95 % of the
    A/A medians differ from 1 by at most it) is kept beside the prepared graphs for this machine and
    device; later runs copy it and call a ratio inside it a tie. Takes minutes; leave the machine
    alone meanwhile.
    """
    from gnnbench.progress import Display
    from gnnbench.runner import calibrate as calibrating
    from gnnbench.runner.campaign import Interrupted

    wish = calibrating.Wish(system, dataset, device, pairs, rounds, tuple(option or ()))
    with Display(quiet) as display:
        try:
            found, folder = calibrating.calibrate(wish, out, display)
        except Interrupted:
            raise _Stop("interrupted; nothing was calibrated", EXIT_INTERRUPTED) from None
    if json:
        _print_json({"run": str(folder), **found.to_json()})
        return
    _print_table(
        f"{found.pairs} A/A pairs of {found.system} on {found.dataset} ({found.device},"
        f" {found.threads} threads)",
        [
            {
                "rounds": level.rounds,
                "windows": level.windows,
                "false calls": f"{level.false_call_rate:.1%}",
                "noise floor": f"{level.floor:.2%}",
                "false calls beyond it": f"{level.false_call_rate_beyond_floor:.1%}",
                "smallest detectable": f"{level.detectable:.2%}",
                "spread": f"{level.spread:.2%}",
            }
            for level in found.levels
        ],
    )
    print(folder / "samples.csv")


class Format(StrEnum):
    """How a comparison is printed."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Folder of a run, or its cells.csv: before.")],
    b: Annotated[Path, typer.Argument(help="The same: after.")],
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Relative loss to accept; default: the noise floor."),
    ] = None,
    format: Annotated[Format, typer.Option(help="What to print.")] = Format.table,
) -> None:
    """Hold run B against run A, cell by cell.

    Cells are matched by what they are, not by the machine. B is 'slower' (a regression) where the
    95 % interval of A's median over B's lies wholly below 1 minus the threshold; a cell that A
    measured and B failed is one as well. Exit code 5 if there is a regression, else 0.
    """
    from gnnbench.results import compare as comparing
    from gnnbench.results import compare_text

    found = comparing.compare(comparing.open_run(a), comparing.open_run(b), threshold)
    if format is Format.json:
        _print_json(found.to_json())
    elif format is Format.csv:
        print(compare_text.to_csv(found), end="")
    elif format is Format.markdown:
        print(compare_text.markdown(found), end="")
    else:
        _print(compare_text.table(found))
        print("\n" + "\n".join(compare_text.remarks(found)))
    raise typer.Exit(EXIT_REGRESSION if found.regressions else EXIT_OK)


@app.command("list")
def list_(json: Json = False) -> None:
    """Experiments, systems and datasets; what is missing and how to get it."""
    from gnnbench.doctor import inventory

    found = inventory()
    if json:
        _print_json(found)
        return
    for kind, entries in found.items():
        _print_table(kind, entries)


@app.command()
def doctor(json: Json = False) -> None:
    """What this machine can run, why not, and the exact fix."""
    from gnnbench.doctor import examine

    found = examine()
    if json:
        _print_json(found)
        return
    _print_table("checks", found["checks"])
    _print_table("systems", found["systems"])


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """Every known dataset and its state."""
    from gnnbench.doctor import datasets

    if json:
        _print_json(datasets())
    else:
        _print_table("datasets", datasets())


@data_app.command("info")
def data_info(name: str, json: Json = False) -> None:
    """All that is known of a dataset: sources, published figures, what is stored."""
    from dataclasses import asdict

    from gnnbench.data import catalog
    from gnnbench.data.describe import describe

    found = catalog.info(name)
    if json:
        manifest = found.manifest and found.manifest.model_dump(mode="json")
        _print_json({**asdict(found), "manifest": manifest})
        return
    for line in describe(found):
        print(line)


@data_app.command("import")
def data_import(
    source: Annotated[str, typer.Argument(help="Edge list as text (gzipped or not), or an .npz.")],
    name: Annotated[str, typer.Option(help="Name to use it by afterwards.")],
    symmetric: Annotated[
        bool,
        typer.Option("--symmetric", help="Add the reverse of every edge, merge parallel ones."),
    ] = False,
    train_fraction: Annotated[
        float, typer.Option(help="Share of the nodes to train on, where the source has no split.")
    ] = 0.6,
    features: Annotated[int, typer.Option(min=0, help="Width of seeded features; 0: 64.")] = 0,
    classes: Annotated[int, typer.Option(min=0, help="Number of seeded classes; 0: 16.")] = 0,
    nodes: Annotated[
        int, typer.Option(min=0, help="Number of nodes, ids kept; 0: those that edges name.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what the source has not.")] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another graph of that name.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Store a graph of yours under a name; use it with 'run --datasets NAME'.

    An edge list has one 'source target' a line, with # or % before comments. PyG and DGL objects
    come in from Python: gnnbench.data.objects.from_pyg and from_dgl.
    """
    from gnnbench.data.imported import import_source
    from gnnbench.data.layout import read_meta
    from gnnbench.progress import Display

    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        display.plan(1, 0.0)
        folder = import_source(
            source, name, symmetric=symmetric, train_fraction=train_fraction, feature_dim=features,
            num_classes=classes, num_nodes=nodes, seed=seed, replace_graph=replace,
            progress=progress,
        )  # fmt: skip
    meta = read_meta(folder)
    keys = ("name", "num_nodes", "num_edges", "features", "labels", "split", "notes")
    if json:
        _print_json({"path": str(folder), **{key: meta[key] for key in keys}})
        return
    print(folder)
    if not quiet:
        print(f"{meta['name']}: {meta['num_nodes']} nodes, {meta['num_edges']} directed edges")
        for key in ("features", "labels", "split"):
            print(f"{key}: {meta[key]}")
        for note in meta["notes"]:
            print(note)


@data_app.command("prepare")
def data_prepare(
    name: str,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a twin.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import or generate a dataset into the store; resumes where it was stopped."""
    from gnnbench.data import catalog
    from gnnbench.progress import Display

    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        display.plan(1, 0.0)
        folder = catalog.prepare(name, seed=seed, progress=progress)
    if json:
        _print_json({"name": name, "path": str(folder)})
    else:
        print(folder)


@data_app.command("verify")
def data_verify(name: str, json: Json = False) -> None:
    """Check every byte of a prepared dataset against its checksums."""
    from dataclasses import asdict

    from gnnbench.data import catalog

    report = catalog.verify(name)
    if json:
        _print_json({**asdict(report), "ok": report.ok})
    elif report.ok:
        print(report.message)
    if not report.ok:
        raise DataError(report.message)


class _Stop(GnnbenchError):
    """An end that is not an error of the program, with its own exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def _show_dry_run(request: Any, json: bool) -> None:
    from gnnbench.results.labels import system_label
    from gnnbench.results.table import seconds
    from gnnbench.runner.estimate import describe

    found = describe(request.plan, request.experiment.measure)
    if json:
        _print_json({"experiment": request.experiment.name, "profile": request.profile, **found})
        return
    keys = ("device", "batch_size", "fanouts", "status")
    rows = [
        {"dataset": r["dataset"], "model": r["model"], "system": system_label(r)}
        | {k: r[k] for k in keys}
        | {
            "time": seconds(r["estimated_time_s"]),
            "memory": _gib(r["estimated_bytes"]),
            "reason": r["reason"],
        }
        for r in found["cells"]
    ]
    _print_table("cells", rows)
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
    from gnnbench.results.schema import CELLS
    from gnnbench.results.table import cells_table, narrow_tables, remarks

    if json:
        paths = {"run": str(folder), "figures": [str(f) for f in figures]}
        cells = [{c.name: row.get(c.name) for c in CELLS} for row in rows]
        _print_json({**paths, "cells": cells})
        return
    whole = cells_table(rows, different)
    for number, table in enumerate([whole] if _fits(whole) else narrow_tables(rows, different)):
        if number:
            print()
        _print(table)
    if not quiet:
        print()
        for remark in remarks(rows, different):
            print(remark)
    print(folder / "cells.csv")
    for path in figures:
        print(path)


def _print_json(value: Any) -> None:
    import json

    from gnnbench.results.writer import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


def _print_table(title: str, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    if not rows:
        return
    names = [k for k in rows[0] if any(r.get(k) not in (None, "") for r in rows)]
    table = Table(*names, box=None, pad_edge=False, header_style="bold", title=title)
    table.title_justify = "left"
    for row in rows:
        table.add_row(*(str(v) if (v := row.get(n)) not in (None, "") else "" for n in names))
    if _fits(table):
        _print(table)
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

    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=10_000)


def _fits(table: Table) -> bool:
    from rich.measure import Measurement

    console = _console()
    wide = console.options.update(max_width=10_000)
    return Measurement.get(console, wide, table).maximum <= console.width


def _print(table: Table) -> None:
    _console().print(table)


def _fail(message: str, code: int) -> NoReturn:
    print(f"gnnbench: {message}", file=sys.stderr)
    sys.exit(code)


def _unexpected(error: BaseException) -> NoReturn:
    with tempfile.NamedTemporaryFile("w", prefix="gnnbench-", suffix=".log", delete=False) as file:
        traceback.print_exc(file=file)
    first = next(iter(str(error).splitlines()), "")
    _fail(
        f"internal error ({type(error).__name__}: {first}); the traceback is in {file.name}",
        EXIT_INTERNAL,
    )


def _terminate(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Entry point: every end is an exit code and at most one sentence."""
    signal.signal(signal.SIGTERM, _terminate)
    debug = os.environ.get("GNNBENCH_DEBUG") == "1"
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _Stop as stop:
        _fail(str(stop), stop.code)
    except GnnbenchError as error:
        if debug:
            traceback.print_exc()
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # A reader that has seen enough (`| head`) is no failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_OK)
    except Exception as error:
        if hasattr(error, "format_message"):  # what the parser raises
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message(), file=sys.stderr)
                sys.exit(EXIT_USAGE)
            _fail(_sentence(error.format_message()), getattr(error, "exit_code", 2))
        if debug:
            traceback.print_exc()
        _unexpected(error)


def _sentence(text: str) -> str:
    text, _, hint = text.partition(". Did you mean ")
    hint = f"; did you mean {hint}" if hint else ""
    return text[:1].lower() + text[1:].rstrip(".") + hint + "; see 'gnnbench --help'"


if __name__ == "__main__":
    main()
