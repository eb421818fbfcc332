"""Limits of a definition: plain finite values, levels of tables, number of combinations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from gnnbench.core.errors import UsageError
from gnnbench.core.toml_value import MAX_LEVELS

MAX_COMBINATIONS = 10_000  # of the axes of a definition, before its constraints drop any
MAX_BYTES = 4 << 20  # of a definition's file
_LARGEST = 2**63 - 1
_SHOWN = 60  # letters of a value in a message


def check_values(raw: object) -> None:
    """Raise ``UsageError``, which names the key, for a value that no definition may have.

    Refused are numbers that are not finite or not of 64 bits, dates, texts that are not Unicode,
    and more than ``MAX_LEVELS`` levels.
    """
    for path, value in _walk(raw):
        if fault := _fault(value, len(path)):
            where = ".".join(path[:MAX_LEVELS])[: 3 * _SHOWN]
            raise UsageError(f"'{where}' {fault}")


def _walk(raw: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every value below ``raw`` with its path, without recursion."""
    left: list[tuple[tuple[str, ...], object]] = [((), raw)]
    while left:
        path, value = left.pop()
        yield path, value
        if isinstance(value, Mapping):
            left += [((*path, str(key)), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            left += [((*path, str(at)), inner) for at, inner in enumerate(value)]


def _fault(value: object, levels: int) -> str:
    if levels > MAX_LEVELS:
        return f"is nested in more than {MAX_LEVELS} tables or lists; use fewer levels"
    if isinstance(value, bool | Mapping | list | tuple | None):
        return ""
    if isinstance(value, int):
        digits = "" if abs(value) <= _LARGEST else f"a whole number of {value.bit_length()} bits"
        return f"is {digits}; give one of 64 bits at most" if digits else ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value}; give a finite number"
    if isinstance(value, str):
        return "" if value.isascii() or _is_unicode(value) else "is not UTF-8; give it in UTF-8"
    return f"is a {type(value).__name__} ({str(value)[:_SHOWN]}); give a text or a number"


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def check_combinations(
    axes: Mapping[str, Sequence[object]],
    together: Mapping[str, Sequence[object]],
    sweeps: Mapping[str, Mapping[str, Sequence[object]]],
) -> None:
    """Raise ``UsageError`` where axes have no combination, or more than ``MAX_COMBINATIONS``.

    ``axes`` are multiplied, those ``together`` move as one, each of ``sweeps`` repeats what both
    give for each of its rows. Nothing is built to count them.
    """
    counts = {axis: len(values) for axis, values in axes.items()}
    if together:
        counts[" and ".join(together)] = max(map(len, together.values()))
    rows = {name: max(map(len, sweep.values()), default=0) for name, sweep in sweeps.items()}
    if empty := [axis for axis, count in counts.items() if not count]:
        raise UsageError(f"the axis '{empty[0]}' has no values; give one, or leave it out")
    total = math.prod(counts.values()) * (1 + sum(rows.values()))
    if total <= MAX_COMBINATIONS:
        return
    parts = [f"{axis} {count:,}" for axis, count in counts.items() if count > 1]
    parts += [f"1 and the sweeps' {sum(rows.values()):,}"] * bool(rows)
    raise UsageError(
        f"the axes have {total:,} combinations ({' x '.join(parts)}); {MAX_COMBINATIONS:,} is the"
        " most: shorten their lists, or let them move together in [zip]"
    )
