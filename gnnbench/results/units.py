"""Numbers as people read them; the same in tables, figures and documents."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Ends = tuple[str, str]

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


def taking(time_s: float, memory: int, disk: int) -> str:
    """What an undertaking takes: seconds, bytes of memory and of disk."""
    return f"about {seconds(time_s)}, {binary(memory)} of memory and {binary(disk)} of disk"


def milliseconds(value: float | None) -> str:
    """A time in ms, without its unit."""
    return "" if value is None else f"{value * 1e3:.4g}"


def times(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio with its interval: ``1.32x [1.29, 1.36]``."""
    if value is None:
        return ""
    interval = ""
    if low is not None and high is not None:
        vast = high > VAST * value
        interval = f" [{low:.2f}, {'...' if vast else f'{high:.2f}'}]"
    return f"{value:.2f}x{interval}"


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


def half_width(row: Row, value: str = "judged_s", ends: Ends = ("ci_low_s", "ci_high_s")) -> str:
    """Half of an interval over its value; of the judged time if not told."""
    middle, low, high = (row.get(k) for k in (value, *ends))
    if not middle or low is None or high is None:
        return ""
    share = (high - low) / 2 / middle
    return f"{share:.1%}" if share < VAST else f">{VAST:.0%}"


def edges_per_second(row: Row) -> str:
    """Sampled edges over the sampling time, in millions."""
    time, edges = row.get("sample_time_s"), row.get("sampled_edges")
    return f"{edges / time / 1e6:.3g}" if time and edges is not None else ""
