"""``gnnbench run``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gnnbench.cli import completing
from gnnbench.cli.common import Json, Quiet, Stop, Verbose, View, Wide, chosen
from gnnbench.core.console import print_json, print_table, say
from gnnbench.core.errors import (
    EXIT_CELLS_FAILED,
    EXIT_INTERRUPTED,
    EXIT_REGRESSION,
    UsageError,
)

if TYPE_CHECKING:
    from gnnbench.harness.campaign import Request
    from gnnbench.schema import CellRow

PROFILE_HELP = (
    "Profile of the experiment, such as its size; 'gnnbench run EXPERIMENT --help' and"
    " 'gnnbench list EXPERIMENT' list them."
)
OPTION_HELP = (
    "Set an axis (batch_size=512), a limit (time_budget_s=60) or a field of a recipe"
    " (baseline.sampler=pgsampler). A list runs all its values:"
    " 'baseline.sampler=[fused-map,fastsample]', 'fanouts=[[10,5],[15,10,5]]'."
    " 'gnnbench list EXPERIMENT' shows the keys, docs/reference.md all of them."
)


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.experiments,
            help="Shipped name, a paper's table or figure (fastgl/table8; 'gnnbench list figures'),"
            " or a TOML definition: mine.toml, or mine for the file in this folder.",
        ),
    ],
    systems: Annotated[
        str | None,
        typer.Option(
            autocompletion=completing.systems, help="Systems, separated by commas, or all."
        ),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(autocompletion=completing.datasets, help="Datasets, separated by commas."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(autocompletion=completing.models, help="Models, separated by commas."),
    ] = None,
    profile: Annotated[str, typer.Option(help=PROFILE_HELP)] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "",
    pick: Annotated[str, typer.Option(help="Sampling method for all systems.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    repeats: Annotated[
        int, typer.Option(min=0, help="Exact number of pairs of fresh processes.")
    ] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help=OPTION_HELP),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME=PATH",
            help="Also run the systems in another Python environment.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show cells and estimates.")] = False,
    resume: Annotated[
        bool | None, typer.Option("--resume/--fresh", help="Continue the last run.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Resume although the code changed.")
    ] = False,
    only_failed: Annotated[
        bool,
        typer.Option(
            "--only-failed",
            help="Measure again only the cells of the last run that are not ok, each paired with"
            " its reference.",
        ),
    ] = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast", help="Go on after a failed cell, or stop at the first."
        ),
    ] = True,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="Start at once on a busy machine. Default: wait up to a minute (10 s for a"
            " profile without verdicts). GNNBENCH_NO_WAIT=1 does the same for every command.",
        ),
    ] = False,
    show_different: Annotated[
        bool,
        typer.Option(
            "--show-different", help="Show ratios of different work, per edge and per batch."
        ),
    ] = False,
    fail_on: Annotated[
        Literal["slower"] | None,
        typer.Option(
            "--fail-on",
            help="Exit with 5 if a system is slower than its reference: with --env, if the other"
            " environment's packages are slower than this one's.",
        ),
    ] = None,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Also write traces/ for Perfetto: an epoch of each system."),
    ] = False,
    wide: Wide = False,
    verbose: Verbose = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment. Prints a table, writes CSV files and figures.

    Exit codes: 0 ok, 1 internal, 2 usage, 3 some cells failed, 4 a correctness check failed,
    5 regression or claim failed, 6 backend or data missing, 130 stopped by Ctrl-C.
    """
    from gnnbench.config.overrides import Overrides
    from gnnbench.core.files import check_folder
    from gnnbench.harness.launch import make_request
    from gnnbench.reproduction.figures import is_one

    _check_no_system(experiment)
    figure = experiment if is_one(experiment) else ""
    if figure:
        experiment, profile = _figure_run(experiment, profile, quiet)
    overrides = Overrides(
        profile, chosen("--systems", systems), chosen("--datasets", datasets),
        chosen("--models", models), device, pick, seed, repeats,
        (*(option or ()), *(["trace=true"] if trace else [])),
        tuple(env or ()),
    )  # fmt: skip
    if only_failed and resume is False:
        raise UsageError(
            "--only-failed continues the last run and --fresh starts a new one; give only one"
        )
    resume = bool(resume)
    if force and not (resume or only_failed):
        raise UsageError("--force belongs to --resume; give both or neither")
    request = make_request(experiment, overrides, out, resume, force, only_failed, keep_going)
    if dry_run:
        check_folder(out)
        _show_dry_run(request, json)
        return
    from gnnbench.analysis.plots import draw
    from gnnbench.core.progress import Display
    from gnnbench.core.terminal import discard
    from gnnbench.harness import campaign

    with Display(quiet) as display:
        for note in request.plan.notes:
            display.note(note)
        try:
            outcome = campaign.run(replace(request, wait=not no_wait), display)
        except campaign.Interrupted as stopped:
            raise Stop(
                f"interrupted; finished results are in '{stopped.folder}', continue with the same"
                " command and --resume",
                EXIT_INTERRUPTED,
            ) from None
        display.step("drawing", 0.0)
        try:
            figures = draw(outcome.folder, request.experiment.figures)
        except KeyboardInterrupt:
            raise Stop(
                f"interrupted; all cells are measured, 'gnnbench plot {outcome.folder}' draws the"
                " figures",
                EXIT_INTERRUPTED,
            ) from None
    view = View(quiet, show_different, wide, verbose)
    try:
        _show_run(outcome.folder, outcome.rows, figures, json, view)
        if figure and not json:
            _show_verdicts(figure, outcome.folder)
        sys.stdout.flush()
    except BrokenPipeError:  # the exit code is the run's, whatever its reader needs
        discard(1)
    if outcome.exit_code == EXIT_CELLS_FAILED and not quiet:
        _say_failed(outcome.rows)
    if fail_on and not outcome.exit_code and _say_slower(outcome.rows, bool(env)):
        raise typer.Exit(EXIT_REGRESSION)
    raise typer.Exit(outcome.exit_code)


def _figure_run(name: str, profile: str, quiet: bool) -> tuple[str, str]:
    """Experiment and profile that measure a paper's figure; says which one was chosen."""
    from gnnbench.reproduction.figure_plans import run_of
    from gnnbench.reproduction.figures import find

    run, profiles = run_of(name, profile), find(name).profiles
    if not (profile or quiet) and len(profiles) > 1:
        print(
            f"gnnbench: {name} is {run.experiment} --profile {run.profile}, the first that this"
            f" machine can run of {', '.join(profiles)}",
            file=sys.stderr,
        )
    return run.experiment, run.profile


def _show_verdicts(figure: str, folder: Path) -> None:
    """Say what a run means for the claims of a paper's figure."""
    from gnnbench.reproduction import text
    from gnnbench.reproduction.claim import choose
    from gnnbench.reproduction.evidence import open_runs
    from gnnbench.reproduction.figures import find
    from gnnbench.reproduction.judge import judge

    name = find(figure).name
    judged = judge(choose([name]), open_runs([folder]))
    say(
        f"{name} by this run: {text.count(judged)}; 'gnnbench verdicts {folder} --paper {name}' has"
        " reasons"
    )


def _say_failed(rows: Sequence[CellRow]) -> None:
    """Say why the exit code is that of failed cells."""
    from collections import Counter

    counts = Counter(row["status"] for row in rows if row["status"] != "ok")
    text = ", ".join(f"{count} {status}" for status, count in counts.items())
    print(f"gnnbench: exit code {EXIT_CELLS_FAILED}, because of cells: {text}", file=sys.stderr)


def _say_slower(rows: Sequence[CellRow], others: bool) -> bool:
    """Name the rows that ``--fail-on slower`` is about; returns whether there are any.

    ``others``: only those of other environments, which are compared with this one.
    """
    slower = [
        row for row in rows
        if row["verdict"] == "slower" and _is_tested(row) and (row["env"] or not others)
    ]  # fmt: skip
    from gnnbench.analysis.labels import labels
    from gnnbench.core.units import times

    named = labels(rows)
    for row in slower:
        ratio = times(row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"], row["pairs"])
        print(
            f"gnnbench: {named.of(row)} is slower than {row['reference']}: {ratio}", file=sys.stderr
        )
    return bool(slower)


def _is_tested(row: CellRow) -> bool:
    """Whether a verdict holds after the correction for all comparisons of the run."""
    from gnnbench.statistics.stopping_rule import Rule

    adjusted = row.get("p_adjusted")
    return adjusted is None or adjusted <= Rule.alpha


def _check_no_system(name: str) -> None:
    """Raise ``UsageError`` for the name of a system that is not also an experiment."""
    from gnnbench.config import experiment
    from gnnbench.core import registry
    from gnnbench.reproduction.claim import PAPERS

    if experiment.is_one(name) or name not in registry.known(registry.SYSTEM):
        return
    figures = ", 'gnnbench list figures' has its paper's tables and figures" * (name in PAPERS)
    raise UsageError(
        f"'{name}' is a system; 'gnnbench run breakdown --systems {name}' runs it{figures}"
    )


def _show_dry_run(request: Request, json: bool) -> None:
    from gnnbench.analysis.labels import SAMPLER_AXES, labels
    from gnnbench.core.units import binary, seconds, taking
    from gnnbench.harness import campaign
    from gnnbench.harness.estimate import describe, epoch_is_cut

    plan = request.plan
    if request.only_failed:
        plan = campaign.only_failed(request).of(plan)
    elif request.resume:
        plan = campaign.unfinished(request)
    description = describe(plan, request.experiment.measure)
    if json:
        print_json(
            {
                "experiment": request.experiment.name,
                "profile": request.profile,
                **description.plain(),
            }
        )
        return
    cells = description.cells
    # One line for each cell; a cell with several names shows all of them.
    named = labels({**c.plain(), "system": name} for c in cells for name in c.names)
    groups: dict[str, list[Mapping[str, object]]] = {}
    for planned in cells:
        r = planned.plain()
        title = ", ".join(named.varying(r, SAMPLER_AXES).values())
        groups.setdefault(title or "cells", []).append({
            "system": " = ".join(named.system({**r, "system": name}) for name in planned.names),
            **{axis: text for axis, text in named.values(r).items() if axis in SAMPLER_AXES},
            "status": planned.status if planned.status != "planned" else "",
            "comparison": seconds(planned.expected.seconds),
            "memory": binary(planned.expected.bytes),
            "reason": planned.reason,
        })  # fmt: skip
    say(named.title())
    for note in description.notes:
        say(note)
    print()
    for title, rows in groups.items():
        print_table(title, rows, ("reason",))
    say(
        _estimate_text(
            len(cells), description.pairs, description.unknown,
            description.time_s, description.peak_bytes,
        )
    )  # fmt: skip
    if any(epoch_is_cut(planned.cell) for planned in cells):
        say("epochs are cut to their first batches; -o max_batches=0 runs whole ones")
    for dataset, cost in description.preparations.items():
        costs = taking(cost.seconds, cost.memory_bytes, cost.disk_bytes)
        say(f"{dataset} is prepared first: {costs}")


def _estimate_text(
    cells: int, pairs: int, unknown: int, time_s: float | None, peak_bytes: int | None
) -> str:
    """State the time and memory of a run. Pairs of ``unknown`` size are counted, not estimated."""
    from gnnbench.core.units import binary, plural, seconds

    if not pairs:
        return f"{plural(cells, 'cell')}, of which none can run here"
    text = f"{plural(cells, 'cell')} in {plural(pairs, 'comparison')}"
    if unknown < pairs:
        text += f"; roughly {seconds(time_s)}"
        text += f" and {binary(peak_bytes)}"
    return text + (f"; {unknown} of unknown size" if unknown else "")


def _show_run(
    folder: Path,
    rows: Sequence[CellRow],
    figures: Sequence[Path],
    json: bool,
    view: View,
) -> None:
    from gnnbench.cli import showing
    from gnnbench.schema import reader

    run = reader.read(folder)
    if json:
        print_json(showing.to_json(run, rows, figures))
        return
    showing.show_run(run, figures, view)
