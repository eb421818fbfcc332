"""Write a table: typed values as text, the file replaced atomically."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from gnnbench.core.files import atomic_path
from gnnbench.schema import Column


def write_csv(
    path: Path, columns: tuple[Column, ...], rows: Iterable[Mapping[str, object]]
) -> None:
    """Replace a CSV atomically by these records.

    Columns that a row lacks are empty. Raises ``KeyError`` for a row with a column that is not in
    ``columns``.
    """
    names = [c.name for c in columns]
    known = set(names)
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            if extra := set(row) - known:
                raise KeyError(f"columns {sorted(extra)} are not in the schema")
            writer.writerow([_field(row.get(name)) for name in names])


def _field(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else _text(str(value))


def _text(text: str) -> str:
    """Text that the CSV reader takes back: a lone carriage return would end the line unquoted, and
    half of a surrogate pair, as in undecodable file names, has no UTF-8."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.encode("utf-8", "backslashreplace").decode("utf-8")
