"""What the commands share: options and ways to print."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gnnbench.core.errors import GnnbenchError, UsageError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]


def sized(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of datasets with their counts and what they take on disk for people to read."""
    from gnnbench.core.units import binary, count

    read = {"disk_bytes": binary, "nodes": count, "edges": count, "train": count}
    renamed = {"disk_bytes": "on disk", "features": "dim"}
    return [{renamed.get(k, k): read.get(k, _same)(v) for k, v in r.items()} for r in rows]


def _same(value: Any) -> Any:
    return value


def comma(text: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def chosen(option: str, text: str | None) -> tuple[str, ...]:
    """The names that an option gives; none where it is not given.

    Raises ``UsageError`` where it is given and names nothing, which would select everything.
    """
    if text is None:
        return ()
    if not (found := comma(text)):
        raise UsageError(f"{option} names nothing; give one name or more, or leave it out")
    return found


class Stop(GnnbenchError):
    """An end that is not an error of the program, with its own exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
