"""Read features, labels or a split from a text: a line a node."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.rawfile import reading
from gnnbench.datasets.importers.room import check_memory
from gnnbench.datasets.importers.textfile import Skipped, rows
from gnnbench.schema.arrays import Array

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # int() reads no more digits
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_WORDS = ("train", "val", "valid", "test", "none")
_COUNTED = 16  # columns of a first row 0, 1, 2, ... that is a header, whatever is below it
_VALUES_PER_CHECK = 1 << 20
_SPARE_BYTES = 1 << 28


def node_text(path: Path, role: str, skipped: Skipped | None = None) -> Array:
    """The values of ``features`` (float64 ``[rows, width]``), ``labels`` (integers, or float64
    where a line has a fraction) or a ``split`` (words), a row a line.

    ``skipped`` counts comments and empty lines. Raises ``DataError`` for an empty line between
    rows, and for a line that does not fit.
    """
    with reading(path):
        if role == "features":
            return _features(path, skipped)
        values = [_only(path, number, fields, role) for number, fields in _rows(path, skipped)]
    if not values:
        raise DataError(f"{path} has no {role}; give a line a node")
    return np.array(values) if role == "split" else _labels(values)


def _rows(path: Path, skipped: Skipped | None) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and columns of the rows of a text.

    Raises ``HostMemoryError`` before the values read so far fill the memory.
    """
    values, last = 0, 0
    for number, text in rows(path, skipped):
        fields = _split(path, number, text)
        values += len(fields)
        if values - last >= _VALUES_PER_CHECK:
            check_memory(8 * values + _SPARE_BYTES, str(path))  # a copy of them, and some more
            last = values
        yield number, fields


def _split(path: Path, number: int, text: str) -> list[str]:
    """The columns of a row. Raises ``DataError`` for an empty one, or for two separators."""
    fields = _SEPARATOR.split(text)
    if "," in text and ";" in text:
        raise DataError(
            f"line {number} of {path} ('{text[:60]}') has commas and semicolons; separate columns"
            " by one of them, and write decimals with a point"
        )
    if "" in fields:
        raise DataError(
            f"line {number} of {path} ('{text[:60]}') has nothing in column"
            f" {fields.index('') + 1}; write its value"
        )
    return fields


def _only(path: Path, number: int, fields: list[str], role: str) -> str:
    if len(fields) != 1:
        raise DataError(
            f"line {number} of {path} has {len(fields)} columns; {role} in a text are one word or"
            " number a line, a line a node"
        )
    value = fields[0].strip("\"'")
    if role == "split" and value.lower() not in _WORDS:
        raise DataError(
            f"line {number} of {path} has '{value[:40]}'; write train, val, test or none"
        )
    if role == "labels" and not _is_number(value):
        raise DataError(
            f"line {number} of {path} has '{value[:40]}'; labels are class numbers from 0 on, -1"
            " for none"
        )
    return value


def _is_number(text: str) -> bool:
    """Whether a text is a decimal number; Python alone would also read 1_000 and other digits."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _labels(values: list[str]) -> Array:
    if all(_INTEGER.fullmatch(value) for value in values):
        numbers = [int(value) for value in values]
        for kind in (np.int64, np.uint64):
            info = np.iinfo(kind)
            if info.min <= min(numbers) and max(numbers) <= info.max:
                return np.array(numbers, kind)
    return np.array([float(value) for value in values])


def _features(path: Path, skipped: Skipped | None) -> Array:
    width = 0
    header = False

    def texts() -> Iterator[str]:
        nonlocal width, header
        for number, fields in _rows(path, skipped):
            count = len(fields)
            if width and count != width:
                raise DataError(
                    f"line {number} of {path} has {count} columns where the lines above have"
                    f" {width}; features are one row of as many numbers a node"
                )
            if not width:
                header = fields == list(map(str, range(count)))
            elif header:
                header = False
                _check_header(path, count, fields)
            width = count
            yield " ".join(fields)

    try:
        result = np.loadtxt(texts(), dtype=np.float64, comments=None, ndmin=2)
    except ValueError:
        wrong = _no_number(path) or f"{path} has a field that is no number"
        raise DataError(f"{wrong}; features are numbers, without a header") from None
    if not width:
        raise DataError(f"{path} has no features; give a line a node")
    if np.isinf(result).any() and (wrong := _no_number(path)):
        raise DataError(f"{wrong}, beyond float64; correct it")
    return result


def _check_header(path: Path, width: int, below: list[str]) -> None:
    """Raise ``DataError`` where a first row 0, 1, 2, ... looks like pandas' names of columns."""
    whole = all(_INTEGER.fullmatch(field) for field in below)
    if width >= _COUNTED or (width > 2 and not whole):
        raise DataError(
            f"the first row of {path} counts the columns (0 to {width - 1}), as a header of pandas"
            " does; remove it or put # before it (or write it with decimal points, if it is a node)"
        )


def _no_number(path: Path) -> str:
    """Where the first field is that is no number, or one beyond float64; empty where none is."""
    for number, text in rows(path):
        for nth, field in enumerate(_split(path, number, text), 1):
            digits = field[-1:].isdigit()  # unlike inf and infinity
            if not _is_number(field) or (digits and math.isinf(float(field))):
                return f"line {number} of {path} has '{field[:40]}' in column {nth}"
    return ""
