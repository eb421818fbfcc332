"""Numbers as people read them; the same in tables, figures and documents."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Ends = tuple[str, str]

SMALL = 0.05  # a ratio of which two digits behind the point would be one that counts
VAST = 10  # times the value: an interval that wide tells nothing but that


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
    """A time of a table (s), to be told in the unit of its column; ``note`` stands behind it."""

    value: float
    digits: int = 3
    note: str = ""

    def __bool__(self) -> bool:
        return self.value != 0  # a column of nothing but 0 is not told


def time(value: float | None, digits: int = 3, note: str = "") -> Time | str:
    """The same; nothing of what is not known."""
    return "" if value is None else Time(value, digits, note)


def one_unit(times: Sequence[Time]) -> list[str]:
    """Times in one unit: ``["7.01 ms", "0.546 ms"]``.

    It is the longest one's, unless most are so much shorter that they would be all zeros.
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
    """As many digits as count, and never an exponent: ``3140``, ``31.4``, ``0.00314``."""
    if value is None:
        return ""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    behind = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(behind, 0)}f}"


def worth(share: float | None) -> int:
    """Digits that are worth telling of a number known to ``share`` of itself, at most three."""
    return 2 if share is not None and share >= 0.1 else 3


def plural(count: int, thing: str) -> str:
    """``1 pair``, ``2 pairs``, ``3 batches``."""
    ends = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{count} {thing}{'' if count == 1 else ends}"


INDENT = "  "  # of the lines after a text's first
_WHOLE = re.compile(r"\[[^\[\]]*\]|\d %")  # intervals and per cents stay in one line
_KEPT = "\0"


def words(text: str) -> list[str]:
    """What stays in one line: words, paths, commands' parts, intervals."""
    kept = _WHOLE.sub(lambda found: found[0].replace(" ", _KEPT), text)
    return [word.replace(_KEPT, " ") for word in kept.split()]


def wrapped(text: str, width: int) -> str:
    """A sentence in lines of at most ``width``; those after the first are indented.

    Words are whole, so that paths can be copied.
    """
    if len(text) <= width:
        return text
    lines = textwrap.wrap(
        _WHOLE.sub(lambda found: found[0].replace(" ", _KEPT), text), width,
        subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace(_KEPT, " ")


def taking(time_s: float, memory: int, disk: int) -> str:
    """What an undertaking takes: seconds, bytes of memory and of disk."""
    return f"about {seconds(time_s)}, {binary(memory)} of memory and {binary(disk)} of disk"


def milliseconds(value: float | None, digits: int = 3) -> str:
    """A time in ms, without its unit."""
    return "" if value is None else significant(value * 1e3, digits)


def times(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio with its interval: ``1.32x [1.29, 1.36]``; a small one to two digits that count."""
    if value is None:
        return ""
    small = 0 < value < SMALL

    def told(number: float) -> str:
        return f"{number:.2g}" if small and number < SMALL else f"{number:.2f}"

    interval = ""
    if low is not None and high is not None:
        interval = f" [{told(low)}, {'...' if high > VAST * value else told(high)}]"
    return f"{told(value)}x{interval}"


def percent(value: float | None) -> str:
    """A share in per cent, with a digit behind the point."""
    return "" if value is None else f"{value:.1%}"


def gigabytes(value: float | None) -> str:
    """Bytes, or bytes a second, in units of 10^9, three significant digits, without the unit."""
    return "" if value is None else f"{value / 1e9:.3g}"


def count(value: int | None) -> str:
    """A number of things in thousands, millions, milliards: ``123.7 M``."""
    if value is None:
        return ""
    for power, unit in ((9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.{0 if value >= 100 * 10**power else 1}f} {unit}"
    return str(value)


def binary(value: float | None) -> str:
    """Bytes in units of 1024, three significant digits."""
    if value is None:
        return ""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value >= 1024**power:
            return f"{value / 1024**power:.{0 if value >= 100 * 1024**power else 1}f} {unit}"
    return f"{value:.0f} B"


def per_batch(row: Row, key: str = "judged_s") -> float | None:
    """A time of an epoch over its batches."""
    value, batches = row.get(key), row.get("batches")
    return value / batches if value is not None and batches else None


def half_share(
    row: Row, value: str = "judged_s", ends: Ends = ("ci_low_s", "ci_high_s")
) -> float | None:
    """Half of an interval over its value; of the judged time if not told."""
    middle, low, high = (row.get(k) for k in (value, *ends))
    if not middle or low is None or high is None:
        return None
    return float((high - low) / 2 / middle)


def half_width(row: Row, value: str = "judged_s", ends: Ends = ("ci_low_s", "ci_high_s")) -> str:
    """The same in words: of a wide one whole per cents."""
    share = half_share(row, value, ends)
    if share is None:
        return ""
    if share >= VAST:
        return f">{VAST:.0%}"
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def edges_per_second(row: Row) -> str:
    """Sampled edges over the sampling time, in millions."""
    took, edges = row.get("sample_time_s"), row.get("sampled_edges")
    return significant(edges / took / 1e6) if took and edges is not None else ""
