"""Who is fastest, in words: of what was held against one reference, with the interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.reliability import is_unreliable
from gnnbench.core.units import plural, times
from gnnbench.statistics import primary_metric

Row = Mapping[str, Any]

MOST = 6  # groups told; a grid has more, and a table
NAMES = 4  # of rows, in a sentence


def winners(rows: Sequence[Row]) -> list[str]:
    """One sentence for each reference and all that was to be held against it.

    Told are how many were compared, and who was not, and why. Nobody wins of whom the rule does not
    say ``faster`` (nor the reference, of whom it does not say ``slower`` of all): then the largest
    ratio is told with the reason why it tells nothing. A winner from which others cannot be told
    apart, since their intervals overlap, is told with them.
    """
    named = labels(rows)
    known = {r["id"]: r for r in rows}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if reference := row.get("reference_id"):
            beside = groups.setdefault(reference, [])
            beside += [row] * (row["id"] != reference)
    several = {i: group for i, group in groups.items() if group}
    if not several:
        alone = "nothing stood beside the reference" if groups else "no row ran beside a reference"
        return [f"no winner: {alone}, so there is no ratio"] if rows else []
    told = [_sentence(known.get(i), group, named) for i, group in several.items()]
    more = len(told) - MOST
    return told[:MOST] + [f"... and {plural(more, 'more comparison')}, in the table"] * (more > 0)


def _sentence(reference: Row | None, rows: Sequence[Row], named: Labels) -> str:
    first = reference or rows[0]
    where = ", ".join(named.varying(first, but=("pick", "frontier")).values())
    beside = rows[0].get("reference") or named.system(first)
    compared = [r for r in rows if r.get("ratio") is not None]
    compared = [r for r in compared if not is_unreliable(r)] or compared
    left_out = [f"{_apart(r, first, named)} ({_absent(r)})" for r in rows if r not in compared]
    if compared:
        told = _compared(beside, rows=compared, named=named)
        told += f"; not compared: {_several(left_out)}" if left_out else ""
    else:
        gone = reference is None or reference.get("judged_s") is None
        why = reference["status"] if reference else "it was not measured"
        told = f"no winner: the reference, {beside}, has no result ({why})" if gone else (
            f"no winner: nothing could be compared with {beside}: {_several(left_out)}"
        )  # fmt: skip
    return f"{where}: {told}" if where else told


def _compared(beside: str, rows: Sequence[Row], named: Labels) -> str:
    best = max(rows, key=lambda r: (r.get("verdict") == "faster", r["ratio"]))
    words = f"of {len(rows) + 1} compared by {primary_metric.of(best['until']).words}"
    ratio, _, interval = times(
        best["ratio"], best.get("ratio_ci_low"), best.get("ratio_ci_high")
    ).partition(" ")
    interval = f" {interval}" if interval else ""
    name = named.system(best)
    if best.get("verdict") == "faster":
        close = [named.system(r) for r in rows if r is not best and _close(r, best)]
        told = f"fastest {words}: {name}, {ratio} as fast as {beside}{interval}"
        return told + (f"; not told apart from it: {_several(close)}" if close else "")
    if all(r.get("verdict") == "slower" for r in rows):
        return f"fastest {words}: {beside}; next is {name}, {ratio} as fast{interval}"
    return f"no winner {words}: {name} is {ratio} as fast as {beside}{interval}, {_why(best)}"


def _apart(row: Row, reference: Row, named: Labels) -> str:
    """A row's name, with what it has otherwise than the reference: ``baseline, frontier new``."""
    theirs = named.varying(reference)
    other = [text for axis, text in named.varying(row).items() if theirs.get(axis) != text]
    return ", ".join([named.system(row), *other])


def _close(row: Row, best: Row) -> bool:
    """Whether intervals overlap, so that nothing says which of the two is faster."""
    high, low = row.get("ratio_ci_high"), best.get("ratio_ci_low")
    return high is None or low is None or high >= low


def _several(names: Sequence[str]) -> str:
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {more} more" if more > 0 else "")


def _absent(row: Row) -> str:
    """Why a row has no ratio, or none that can be ranked."""
    if row.get("ratio") is not None:
        return "in doubt"
    if row["status"] != "ok":
        return str(row["status"])
    return "different work" if row.get("work_class") == "different" else "no ratio"


def _why(row: Row) -> str:
    if row.get("verdict"):
        return str(row["verdict"])
    pairs = row.get("pairs")
    return "in doubt" if is_unreliable(row) else f"too few pairs for a verdict ({pairs})"
