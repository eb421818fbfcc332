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

    from gnnbench.reproduction.reproduce import Step


def verdicts(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of runs, or of folders of runs; 'results' if not given."),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(help="Papers (fastgl), figures (fastgl/table4) or claims, by commas."),
    ] = None,
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
    quiet: Quiet = False,
) -> None:
    """What results say of the papers' claims.

    Each claim holds, holds in shape, is unclear, refuted, not checkable here, ill-posed, or not
    measured, with the number that was measured and its interval. Exit code 5 if one is refuted,
    else 0.
    """
    from gnnbench.reproduction import text
    from gnnbench.reproduction.claim import choose
    from gnnbench.reproduction.evidence import open_runs
    from gnnbench.reproduction.judge import judge
    from gnnbench.reproduction.verdict import REFUTED

    claims = choose(chosen("--paper", paper))
    found = judge(claims, open_runs(folders or [Path("results")], _note))
    if format == "json":
        print_json(text.to_json(found))
    elif format == "csv":
        print(text.to_csv(found), end="")
    elif format != "table":
        print_document("", text.part(found), format)
    else:
        for part in text.part(found).fitted(room()):
            print_part(part)
            print()
        for line in text.remarks(found) if not quiet else [text.count(found)]:
            say(line)
    refuted = any(j.verdict == REFUTED for j in found)
    raise typer.Exit(EXIT_REGRESSION if refuted else EXIT_OK)


def reproduce(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Papers, figures (fastgl/table4) or claims; all if not given."),
    ] = None,
    profile: Annotated[str, typer.Option(help="smoke, laptop, gpu, gpus or paper.")] = "smoke",
    out: Annotated[Path, typer.Option(help="Folder of the results and the page.")] = Path(
        "results/reproduce"
    ),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan alone.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run what this machine can of what the claims rest on; ends in one page, OUT/index.html.

    The same command again goes on where it was stopped; what is finished is not run again. The
    exit code is that of 'run', the worst of all runs; what claims come to is no part of it.
    """
    from gnnbench.analysis.plots import draw
    from gnnbench.core.progress import Display
    from gnnbench.harness import campaign
    from gnnbench.reproduction import page, reproduce, text
    from gnnbench.reproduction.claim import choose
    from gnnbench.reproduction.evidence import open_runs
    from gnnbench.reproduction.judge import judge

    wanted = choose(claims or ())
    steps = reproduce.plan(profile, wanted, out)
    if dry_run or not quiet:
        _show(steps)
    if dry_run:
        return
    if all(s.state == reproduce.CANNOT for s in steps):
        raise MissingError(f"nothing of it can be run here: {steps[0].reason}")
    with Display(quiet) as display:
        try:
            steps = reproduce.carry_out(steps, display, draw)
        except campaign.Interrupted as stopped:
            raise Stop(
                f"interrupted in '{stopped.folder}'; the same command goes on from there",
                EXIT_INTERRUPTED,
            ) from None
    found = judge(wanted, open_runs([out], _note))
    path = page.write(out, profile, found, steps)
    say(text.count(found))
    for step in steps:
        if step.failed:
            say(f"{step.run}: {step.reason}; once that is mended this measures them again:")
            print(f"  {step.again}")  # whole, to be pasted
    print(path)
    codes = {s.exit_code for s in steps}
    worst = (EXIT_INCORRECT, EXIT_CELLS_FAILED, EXIT_MISSING)
    raise typer.Exit(next((code for code in worst if code in codes), EXIT_OK))


def _note(text: str) -> None:
    print(f"gnnbench: {text}", file=sys.stderr)


def _show(steps: Sequence[Step]) -> None:
    """The plan, and how long it takes."""
    from gnnbench.core.units import plural, seconds

    rows = [
        {
            "run": s.run, "claims": len(s.claims), "state": s.state,
            "time": seconds(s.seconds) if s.todo else "", "reason": s.reason,
        }
        for s in steps
    ]  # fmt: skip
    print_table("runs", rows)
    total = sum(s.seconds for s in steps if s.todo)
    unknown = sum(s.unknown for s in steps if s.todo)
    print(
        f"roughly {seconds(total)} on two quiet cores"
        + (f", and {plural(unknown, 'pair')} of unknown size" if unknown else "")
    )
