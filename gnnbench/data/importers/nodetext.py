"""Read features, labels or a split from a text: a line a node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gnnbench.data.importers.rawfile import reading
from gnnbench.data.importers.textfile import rows
from gnnbench.errors import DataError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SEPARATORS = re.compile(r"[\s,;]+")


def node_text(path: Path, role: str) -> np.ndarray:
    """The values of ``features`` (float64 ``[rows, width]``), ``labels`` (integers, or float64
    where a line has a fraction) or a ``split`` (words), a row a line.

    Raises ``DataError`` for an empty line between rows, and for a line that does not fit.
    """
    with reading(path):
        if role == "features":
            return _features(path)
        values = [_only(path, number, text, role) for number, text in rows(path)]
    if not values:
        raise DataError(f"{path} has no {role}; give a line a node")
    return np.array(values) if role == "split" else _labels(path, values)


def _only(path: Path, number: int, text: str, role: str) -> str:
    fields = [field.strip("\"'") for field in _SEPARATORS.split(text) if field]
    if len(fields) != 1:
        raise DataError(
            f"line {number} of {path} has {len(fields)} columns; {role} in a text are one word or"
            " number a line, a line a node"
        )
    return fields[0]


def _labels(path: Path, values: list[str]) -> np.ndarray:
    if all(_INTEGER.fullmatch(value) for value in values):
        numbers = [int(value) for value in values]
        for kind in (np.int64, np.uint64):
            info = np.iinfo(kind)
            if info.min <= min(numbers) and max(numbers) <= info.max:
                return np.array(numbers, kind)
    found = np.empty(len(values))
    for nth, value in enumerate(values):
        try:
            found[nth] = float(value)
        except ValueError:
            raise DataError(
                f"label {nth + 1} of {path} is '{value[:40]}'; labels are class numbers from 0 on,"
                " -1 for none"
            ) from None
    return found


def _features(path: Path) -> np.ndarray:
    width = 0

    def texts() -> Iterator[str]:
        nonlocal width
        for number, text in rows(path):
            fields = _SEPARATORS.sub(" ", text).strip()
            count = fields.count(" ") + 1
            if width and count != width:
                raise DataError(
                    f"line {number} of {path} has {count} columns where the lines above have"
                    f" {width}; features are one row of as many numbers a node"
                )
            width = count
            yield fields

    try:
        found = np.loadtxt(texts(), dtype=np.float64, comments=None, ndmin=2)
    except ValueError:
        raise DataError(f"{_no_number(path)}; features are numbers, without a header") from None
    if not width:
        raise DataError(f"{path} has no features; give a line a node")
    return found


def _no_number(path: Path) -> str:
    """Where the first field is that is no number."""
    for number, text in rows(path):
        for nth, field in enumerate(_SEPARATORS.sub(" ", text).split(), 1):
            try:
                float(field)
            except ValueError:
                return f"line {number} of {path} has '{field[:40]}' in column {nth}"
    return f"{path} has a field that is no number"
