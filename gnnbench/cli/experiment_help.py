"""Help of a command, with the profiles of the experiment on the command line."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_WORDS = "gnnbench.words"


class ExperimentCommand(TyperCommand):
    """Its help ends with the profiles of the experiment that is named on the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words: ``--help`` is answered before the others are looked at."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The profiles, a line each."""
        super().format_epilog(ctx, formatter)
        if found := _profiles(ctx.meta.get(_WORDS, [])):
            name, rows = found
            with formatter.section(f"Profiles of {name}"):
                formatter.write_dl(rows)


def _profiles(words: list[str]) -> tuple[str, list[tuple[str, str]]] | None:
    """Of the first word that names an experiment: its name, and its profiles with descriptions."""
    words = [word for word in words if not word.startswith("-")]
    if not words:
        return None
    from gnnbench.config import experiment
    from gnnbench.core.errors import GnnbenchError
    from gnnbench.reproduction import figures

    try:
        if figures.is_one(words[0]):
            own = figures.find(words[0]).profiles
            return (words[0], [(name, run.description) for name, run in own.items()])
        found = experiment.load(words[0])
    except GnnbenchError:
        return None
    rows = [
        (f"{name} (default)" if name == found.default_profile else name, profile.description)
        for name, profile in found.profiles.items()
    ]
    return (found.name, rows) if rows else None
