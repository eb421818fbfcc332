"""Options and helpers that several commands use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import typer

from gnnbench.core.errors import GnnbenchError, UsageError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wide = Annotated[bool, typer.Option("--wide", help="Print all columns of a ranking.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print all notes.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]


class View(NamedTuple):
    """How much of a run is printed: no notes, ratios of different work, all tables, all notes."""

    quiet: bool = False
    different: bool = False
    wide: bool = False
    verbose: bool = False


def with_units(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Rows of datasets and figures with counts, sizes on disk and times as text with units."""
    renamed = {"disk_bytes": "on disk", "features": "dim", "time_s": "time"}
    return [{renamed.get(k, k): _with_unit(k, v) for k, v in row.items()} for row in rows]


def _with_unit(column: str, value: object) -> object:
    from gnnbench.core.units import binary, count, seconds

    if column == "time_s" and (value is None or isinstance(value, float)):
        return seconds(value)
    if value is None or isinstance(value, int):
        if column == "disk_bytes":
            return binary(value)
        if column in ("nodes", "edges", "train"):
            return count(value)
    return value


def comma(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; empty parts are dropped."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def chosen(option: str, text: str | None) -> tuple[str, ...]:
    """Parse an option's list of names; the result is empty if the option is absent.

    Raises ``UsageError`` for an empty list, which would otherwise select everything.
    """
    if text is None:
        return ()
    if not (names := comma(text)):
        raise UsageError(f"{option} names nothing; give one name or more, or leave it out")
    return names


class Stop(GnnbenchError):
    """Ends the command with a message and an exit code; it is not an error of the program."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
