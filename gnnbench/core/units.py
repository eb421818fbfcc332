"""Format numbers for tables, figures and documents."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

Row = Mapping[str, object]
Ends = tuple[str, str]

SMALL = 0.05  # smaller ratios are shown with two significant digits
WIDEST = 3.0  # an interval with a larger ratio of its ends does not say how large a value is
MIN_PAIRS = 3  # fewer do not determine an interval


def seconds(value: float | None) -> str:
    """A time with a unit, three significant digits."""
    if value is None:
        return ""
    if value == 0:
        return "0 s"
    if value >= 600:
        return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value >= 1 / factor:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.2g} us"


UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "us"))


@dataclass(frozen=True)
class Time:
    """A time in a table (s), shown in the unit of its column and followed by ``note``."""

    value: float
    digits: int = 3
    note: str = ""

    def __bool__(self) -> bool:
        return self.value != 0  # a column of zeros is omitted


def time(value: float | None, digits: int = 3, note: str = "") -> Time | str:
    """A time in a table; an empty text for None."""
    return "" if value is None else Time(value, digits, note)


def one_unit(times: Sequence[Time]) -> list[str]:
    """Times in a common unit: ``["7.01 ms", "0.546 ms"]``.

    The unit of the longest time, unless the median is more than 100 times shorter.
    """
    known = sorted(t.value for t in times if t) or [1.0]
    longest, middle = known[-1], known[len(known) // 2]
    read = longest if middle * 100 >= longest else middle
    factor, unit = next((u for u in UNITS if read * u[0] >= 1), UNITS[-1])
    return [
        " ".join(filter(None, [significant(t.value * factor, t.digits), unit, t.note]))
        for t in times
    ]


def significant(value: float | None, digits: int = 3) -> str:
    """Significant digits without an exponent: ``3140``, ``31.4``, ``0.00314``."""
    if value is None:
        return ""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    behind = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(behind, 0)}f}"


def worth(share: float | None) -> int:
    """Significant digits (2 or 3) of a number with the relative uncertainty ``share``."""
    return 2 if share is not None and share >= 0.1 else 3


def plural(count: int, thing: str) -> str:
    """``1 pair``, ``2 pairs``, ``3 batches``."""
    ends = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{count} {thing}{'' if count == 1 else ends}"


INDENT = "  "  # of the lines after a text's first
_WHOLE = re.compile(r"\[[^\[\]]*\]|\d %")  # intervals and per cents stay in one line
_KEPT = "\0"


def words(text: str) -> list[str]:
    """Parts of a text that are not broken: words, paths, intervals."""
    kept = _WHOLE.sub(lambda match: match[0].replace(" ", _KEPT), text)
    return [word.replace(_KEPT, " ") for word in kept.split()]


def wrapped(text: str, width: int) -> str:
    """A sentence in lines of at most ``width``; those after the first are indented.

    Words are whole, so that paths can be copied.
    """
    if len(text) <= width:
        return text
    lines = textwrap.wrap(
        _WHOLE.sub(lambda match: match[0].replace(" ", _KEPT), text), width,
        subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace(_KEPT, " ")


def taking(time_s: float, memory: int, disk: int) -> str:
    """Text of a resource estimate: time, memory and disk (s, bytes, bytes)."""
    return f"about {seconds(time_s)}, {binary(memory)} of memory and {binary(disk)} of disk"


def milliseconds(value: float | None, digits: int = 3) -> str:
    """A time in ms, without its unit."""
    return "" if value is None else significant(value * 1e3, digits)


def times(
    value: float | None, low: float | None = None, high: float | None = None,
    pairs: int | None = None,
) -> str:  # fmt: skip
    """A ratio with its interval: ``1.32x [1.29, 1.36]``; a small one to two digits that count.

    Where the interval is wider than a factor of 3, only its end nearest to 1 says something:
    ``>2.80x (3 pairs)``. If it contains 1, or has fewer than 3 pairs, the ratio is
    ``unknown (2 pairs)``.
    """
    if value is None:
        return ""
    small = 0 < value < SMALL

    def shown(number: float) -> str:
        return f"{number:.2g}" if small and number < SMALL else f"{number:.2f}"

    if low is not None and high is not None and high > WIDEST * low:
        measured = f" ({plural(pairs, 'pair')})" if pairs else ""
        if (pairs is not None and pairs < MIN_PAIRS) or low <= 1 <= high:
            return f"unknown{measured}"
        return f"{f'>{shown(low)}' if low > 1 else f'<{shown(high)}'}x{measured}"

    interval = ""
    if low is not None and high is not None:
        interval = f" [{shown(low)}, {shown(high)}]"
    return f"{shown(value)}x{interval}"


def percent(value: float | None) -> str:
    """A share in per cent, with one decimal."""
    return "" if value is None else f"{value:.1%}"


def gigabytes(value: float | None) -> str:
    """Bytes, or bytes a second, in units of 10^9, three significant digits, without the unit."""
    return "" if value is None else f"{value / 1e9:.3g}"


def count(value: int | None) -> str:
    """A count with the suffix k, M or G: ``123.7 M``."""
    return "" if value is None else _with_prefix(value, 1000, ("G", "M", "k")) or str(value)


def binary(value: float | None) -> str:
    """Bytes in units of 1024, three significant digits."""
    if value is None:
        return ""
    return _with_prefix(value, 1024, ("GiB", "MiB", "KiB")) or f"{value:.0f} B"


def _with_prefix(value: float, base: int, units: Sequence[str]) -> str:
    """Three significant digits in the largest unit below ``value``, or ""; the largest first."""
    for power, unit in zip(range(len(units), 0, -1), units, strict=True):
        if (scaled := value / base**power) >= 1:
            return f"{scaled:.{0 if scaled >= 100 else 1}f} {unit}"
    return ""


def _number(row: Row, key: str) -> float | None:
    value = row.get(key)
    return float(value) if isinstance(value, Real) else None


def per_batch(row: Row, key: str = "judged_s") -> float | None:
    """Time of an epoch / its number of batches."""
    value, batches = _number(row, key), _number(row, "batches")
    return value / batches if value is not None and batches else None


def half_share(
    row: Row, value: str = "judged_s", ends: Ends = ("ci_low_s", "ci_high_s")
) -> float | None:
    """Half width of an interval / its value; by default of the primary metric."""
    middle, low, high = (_number(row, k) for k in (value, *ends))
    if not middle or low is None or high is None:
        return None
    return (high - low) / 2 / middle


def half_width(row: Row, value: str = "judged_s", ends: Ends = ("ci_low_s", "ci_high_s")) -> str:
    """Half width as text, in per cent; a dash above 100 %, where the value is not known."""
    share = half_share(row, value, ends)
    if share is None:
        return ""
    if share > 1:
        return "-"
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def edges_per_second(row: Row) -> str:
    """Sampled edges / sampling time, in millions per second."""
    took, edges = _number(row, "sample_time_s"), _number(row, "sampled_edges")
    return significant(edges / took / 1e6) if took and edges is not None else ""
