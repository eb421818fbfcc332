"""``gnnbench calibrate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gnnbench.cli.common import Json, Quiet, Stop
from gnnbench.core.console import print_json, print_table, say
from gnnbench.core.errors import EXIT_INTERRUPTED


def calibrate(
    system: Annotated[str, typer.Option(help="System to compare with itself.")] = "baseline",
    dataset: Annotated[str, typer.Option(help="Dataset; default: the smoke profile's.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "",
    until: Annotated[str, typer.Option(help="sample, memory_io or compute.")] = "",
    pairs: Annotated[int, typer.Option(min=5, help="Pairs of fresh processes.")] = 12,
    rounds: Annotated[int, typer.Option(min=2, help="Iterations of each pair, even.")] = 6,
    verify: Annotated[
        int, typer.Option(min=0, help="Number of A/A comparisons made of regrouped trials.")
    ] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help="Set an axis, a limit or a system's option."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the samples.")] = Path("results"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure this machine's noise with A/A pairs: two fresh processes of one cell, alternating.

    Stores the variation between epochs and between trials, by machine, device, threads and cell.
    Later runs use it to choose the iterations of a pair, and report their noise floor and smallest
    detectable difference. --verify regroups the trials at random into comparisons of equals, and
    counts how many the rule calls different. All pairs are in calibrate.json of the run's folder.
    Takes minutes. Leave the machine idle: an unreliable calibration is rejected.
    """
    from gnnbench.core.progress import Display
    from gnnbench.core.units import plural, seconds
    from gnnbench.harness import calibrate as calibrating
    from gnnbench.harness.campaign import Interrupted

    options = tuple(option or ())
    wish = calibrating.Wish(system, dataset, device, until, pairs, rounds, verify, options)
    with Display(quiet) as display:
        try:
            result = calibrating.calibrate(wish, out, display)
        except Interrupted:
            raise Stop("interrupted; nothing was calibrated", EXIT_INTERRUPTED) from None
    known, verified = result.calibration, result.verified
    if json:
        verification = None if verified is None else asdict(verified)
        print_json({"run": str(result.folder), **asdict(known), "verified": verification})
        return
    print_table(
        f"{known.lives} trials of {known.name}, {plural(known.threads, 'thread')}; a pair starts in"
        f" {seconds(known.start_s)}, an epoch takes {seconds(known.epoch_s)}",
        [
            {
                "time": key,
                "between epochs": f"{spread.s_round:.2%}",
                "between trials": f"{spread.s_life:.2%}",
                f"of a pair of {known.rounds} iterations": f"{spread.of_pair(known.rounds):.2%}",
            }
            for key, spread in known.spreads.items()
        ],
    )
    if verified is not None:
        say(
            f"{verified.comparisons} comparisons of equals, regrouped from {verified.lives} trials:"
            f" {verified.rate:.1%} called different, at most {verified.bound:.1%} with 95 %"
            f" confidence; differences of {verified.detectable:.0%} are called in 80 %."
            f" One pair and a bootstrap of its iterations calls {verified.one_pair_rate:.0%}."
        )
        say(
            f"As measured, unsigned: {verified.bias:.4f} [{verified.bias_ci_low:.4f},"
            f" {verified.bias_ci_high:.4f}] over all pairs; {verified.in_order} of"
            f" {verified.groups} groups in order called."
        )
    print(result.folder / calibrating.FILE)
