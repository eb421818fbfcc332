"""``gnnbench verdicts`` and ``gnnbench reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gnnbench.cli.common import Quiet, Stop, chosen
from gnnbench.cli.formats import FORMAT, print_document
from gnnbench.core.console import print_json, print_part, print_table, room, say
from gnnbench.core.errors import (
    EXIT_CELLS_FAILED,
    EXIT_INCORRECT,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_REGRESSION,
    MissingError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gnnbench.reproduction.reproduce import RunStep


def verdicts(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders to search for runs (default: results), or papers and figures as --paper."
        ),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            help="Papers (fastgl), figures (fastgl/table4) or claims, separated by commas."
        ),
    ] = None,
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
    html: Annotated[
        Path | None, typer.Option(help="Also write a report to this file: one page of HTML.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Judge the papers' claims by the results of runs.

    Prints for each claim the verdict, the paper's number, and the measured number with its
    interval. Verdicts: holds, holds on a twin, holds in shape, holds only improved, unclear,
    not reproduced, refuted, not checkable here, ill-posed, not measured. Exit code 5 if a claim is
    refuted, else 0.
    """
    from gnnbench.reproduction import text
    from gnnbench.reproduction.claim import PAPERS, choose
    from gnnbench.reproduction.evidence import open_runs
    from gnnbench.reproduction.figures import is_one
    from gnnbench.reproduction.judge import judge
    from gnnbench.reproduction.verdict import REFUTED

    wanted = [str(f) for f in folders or () if str(f).lower() in PAPERS or is_one(str(f))]
    wanted = [name for name in wanted if not Path(name).is_dir()]
    folders = [folder for folder in folders or () if str(folder) not in wanted]
    claims = choose([*wanted, *chosen("--paper", paper)])
    judged = judge(claims, open_runs(folders or [Path("results")], _note))
    if html is not None:
        from gnnbench.reproduction import page

        page.write(html, "", judged)
        _note(f"wrote '{html}'")
    if format == "json":
        print_json(text.to_json(judged))
    elif format == "csv":
        print(text.to_csv(judged), end="")
    elif format != "table":
        print_document("", text.part(judged), format)
    else:
        for part in text.part(judged).fitted(room()):
            print_part(part)
            print()
        for line in text.remarks(judged) if not quiet else [text.count(judged)]:
            say(line)
    refuted = any(j.verdict == REFUTED for j in judged)
    raise typer.Exit(EXIT_REGRESSION if refuted else EXIT_OK)


def reproduce(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Papers, figures (fastgl/table4) or claims; default: all."),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Size of the runs: smoke, laptop, gpu, gpus or paper.")
    ] = "smoke",
    out: Annotated[Path, typer.Option(help="Folder for the results and the page.")] = Path(
        "results/reproduce"
    ),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run the experiments that measure the papers' claims, and write OUT/index.html.

    Runs that this machine cannot execute are skipped. An interrupted command continues when given
    again; finished runs are not repeated. The exit code is that of the worst run, as for 'run'. It
    does not depend on the verdicts.
    """
    from gnnbench.analysis.plots import draw
    from gnnbench.core.progress import Display
    from gnnbench.harness import campaign
    from gnnbench.reproduction import page, reproduce, text
    from gnnbench.reproduction.claim import choose
    from gnnbench.reproduction.evidence import open_runs
    from gnnbench.reproduction.judge import judge

    selected = choose(claims or ())
    steps = reproduce.plan(profile, selected, out)
    if dry_run or not quiet:
        _show(steps)
    if dry_run:
        return
    if all(s.state == reproduce.CANNOT for s in steps):
        raise MissingError(f"none of the runs can run here: {steps[0].reason}")
    with Display(quiet) as display:
        try:
            steps = reproduce.execute(steps, display, draw)
        except campaign.Interrupted as stopped:
            raise Stop(
                f"interrupted in '{stopped.folder}'; give the same command again to continue",
                EXIT_INTERRUPTED,
            ) from None
    judged = judge(selected, open_runs([out], _note))
    path = out / page.NAME
    page.write(path, profile, judged, steps)
    say(text.count(judged))
    for step in steps:
        if step.failed:
            say(f"{step.run}: {step.reason}; after fixing the cause, measure them again with:")
            print(f"  {step.retry_command}")  # not wrapped, for copying
    print(path)
    codes = {s.exit_code for s in steps}
    worst = (EXIT_INCORRECT, EXIT_CELLS_FAILED, EXIT_MISSING)
    raise typer.Exit(next((code for code in worst if code in codes), EXIT_OK))


def _note(text: str) -> None:
    print(f"gnnbench: {text}", file=sys.stderr)


def _show(steps: Sequence[RunStep]) -> None:
    """Print the plan and its estimated time."""
    from gnnbench.core.units import plural, seconds

    rows = [
        {
            "run": s.run, "claims": len(s.claims), "state": s.state,
            "time": seconds(s.seconds) if s.is_pending else "", "reason": s.reason,
        }
        for s in steps
    ]  # fmt: skip
    print_table("runs", rows)
    total = sum(s.seconds for s in steps if s.is_pending)
    unknown = sum(s.unknown for s in steps if s.is_pending)
    print(
        f"estimated time: {seconds(total)} on two idle cores"
        + (f", without {plural(unknown, 'pair')} of unknown size" if unknown else "")
    )
