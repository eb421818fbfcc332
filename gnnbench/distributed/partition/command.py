"""What the commands of this package share: lists by commas, tables, errors as one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from gnnbench.core.errors import GnnbenchError, UsageError
from gnnbench.core.terminal import guard_streams


def comma_list(text: str) -> list[str]:
    """Words by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(name: str, text: str) -> list[int]:
    """Whole numbers by commas. Raises ``UsageError``."""
    try:
        return [int(word) for word in comma_list(text)]
    except ValueError:
        raise UsageError(f"{name} must be whole numbers by commas, not '{text}'") from None


def print_table(title: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Rows of the same columns below one another, in plain text: the command line's own tables
    know of systems, which know of partitions."""
    heads = list(rows[0]) if rows else []
    lines = [heads, *([row[head] for head in heads] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    print(title)
    for line in lines:
        print("  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)))


def run(command: Callable[..., Any]) -> None:
    """Run a command as a program; an error of the user's is one line, with its exit code."""
    guard_streams()
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    try:
        app()
    except GnnbenchError as error:
        print(f"gnnbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
