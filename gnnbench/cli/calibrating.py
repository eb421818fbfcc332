"""``gnnbench calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gnnbench.cli.common import Json, Quiet, Stop, print_json, print_table
from gnnbench.errors import EXIT_INTERRUPTED


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
            raise Stop("interrupted; nothing was calibrated", EXIT_INTERRUPTED) from None
    if json:
        print_json({"run": str(folder), **found.to_json()})
        return
    print_table(
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
