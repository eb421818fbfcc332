"""Shared code of this package's commands: comma-separated lists, tables, one-line errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec

import typer

from gnnbench.core.errors import GnnbenchError, UsageError
from gnnbench.core.terminal import guard_streams

P = ParamSpec("P")


def comma_list(text: str) -> list[str]:
    """Split a comma-separated text."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(name: str, text: str) -> list[int]:
    """Parse comma-separated integers. Raises ``UsageError``."""
    try:
        return [int(word) for word in comma_list(text)]
    except ValueError:
        raise UsageError(f"{name} must be whole numbers by commas, not '{text}'") from None


def print_table(title: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Print rows of the same columns as plain text.

    This package cannot import the tables of the command line, which is a layer above.
    """
    heads = list(rows[0]) if rows else []
    lines = [heads, *([row[head] for head in heads] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    print(title)
    for line in lines:
        print("  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)))


def run(command: Callable[P, None]) -> None:
    """Run a command as a program. A user error is printed as one line and sets the exit code."""
    guard_streams()
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    try:
        app()
    except GnnbenchError as error:
        print(f"gnnbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
