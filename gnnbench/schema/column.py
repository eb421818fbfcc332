"""What a column is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """``dtype`` is str, int, float or bool; an empty field of the CSV means unknown."""

    name: str
    dtype: str
    unit: str
    description: str


def column_names(columns: tuple[Column, ...]) -> list[str]:
    """Names in file order."""
    return [c.name for c in columns]
