"""Help of a command, with the profiles of the experiment on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

_ARGUMENTS = "gnnbench.arguments"


class ExperimentCommand(TyperCommand):
    """A command whose help ends with the profiles of the experiment on the command line."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Store the arguments for the help text: ``--help`` is handled before they are parsed."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write one line for each profile."""
        super().format_epilog(ctx, formatter)
        if experiment := _profiles(ctx.meta.get(_ARGUMENTS, [])):
            name, rows = experiment
            with formatter.section(f"Profiles of {name}"):
                formatter.write_dl(rows)


def _profiles(arguments: list[str]) -> tuple[str, list[tuple[str, str]]] | None:
    """The experiment's name and its profiles with descriptions; None for another argument."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    if not names:
        return None
    from gnnbench.config import experiment
    from gnnbench.core.errors import GnnbenchError
    from gnnbench.reproduction import figures

    try:
        if figures.is_one(names[0]):
            own = figures.find(names[0]).profiles
            return (names[0], [(name, run.description) for name, run in own.items()])
        loaded = experiment.load(names[0])
    except GnnbenchError:
        return None
    rows = [
        (f"{name} (default)" if name == loaded.default_profile else name, profile.description)
        for name, profile in loaded.profiles.items()
    ]
    return (loaded.name, rows) if rows else None
