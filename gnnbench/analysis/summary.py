"""The fastest system of each comparison, in sentences with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.reliability import is_unreliable, verdict
from gnnbench.core.units import plural, times
from gnnbench.schema import CellRow
from gnnbench.statistics import primary_metric

MOST = 6  # sentences; a grid has more comparisons, and a table
NAMES = 4  # systems named in a sentence


def winners(rows: Sequence[CellRow]) -> list[str]:
    """One sentence for each reference and the systems compared with it.

    It gives the number of systems compared, and who was not compared and why. A system is fastest
    only with the verdict ``faster``, the reference only if all others are ``slower``; otherwise the
    sentence gives the largest ratio and says why it is no result. Systems whose intervals overlap
    the winner's are named with it.
    """
    named = labels(rows)
    by_id = {r["id"]: r for r in rows}
    groups: dict[str, list[CellRow]] = {}
    for row in rows:
        if reference := row.get("reference_id"):
            group = groups.setdefault(reference, [])
            group += [row] * (row["id"] != reference)
    comparisons = {reference: group for reference, group in groups.items() if group}
    if not comparisons:
        why = "nothing was compared with the reference" if groups else "no row has a reference"
        return [f"No verdict: {why}, so there is no ratio"] if rows else []
    sentences = [_sentence(by_id.get(i), group, named) for i, group in comparisons.items()]
    more = len(sentences) - MOST
    rest = [f"... and {plural(more, 'more comparison')}, in the table"] * (more > 0)
    return sentences[:MOST] + rest


def _sentence(reference: CellRow | None, rows: Sequence[CellRow], named: Labels) -> str:
    first = reference or rows[0]
    where = ", ".join(named.varying(first, but=("pick", "frontier")).values())
    name = rows[0].get("reference") or named.system(first)
    with_ratio = [r for r in rows if r.get("ratio") is not None]
    compared = [r for r in with_ratio if not is_unreliable(r)] or with_ratio
    rest = [f"{_label(r, first, named)} ({_missing_ratio(r)})" for r in rows if r not in compared]
    if compared:
        sentence = _comparison(name, compared, named)
        sentence += f"; not compared: {_names(rest)}" if rest else ""
    elif reference is None or reference.get("judged_s") is None:
        why = reference["status"] if reference else "it was not measured"
        sentence = f"no verdict: the reference, {name}, has no result ({why})"
    else:
        sentence = f"no verdict: nothing could be compared with {name}: {_names(rest)}"
    return f"{where}: {sentence}" if where else sentence[:1].upper() + sentence[1:]


def _comparison(reference: str, rows: Sequence[CellRow], named: Labels) -> str:
    best = max(rows, key=lambda r: (verdict(r) == "faster", not _is_unknown(r), r["ratio"]))
    words = f"of {len(rows) + 1} compared by {primary_metric.of(best['until']).words}"
    name = named.system(best)
    if _is_unknown(best):
        return f"no verdict {words}: pairs scatter too much ({plural(best['pairs'], 'pair')})"
    ratio, _, interval = _times(best).partition(" ")
    interval = f" {interval}" if interval else ""
    if verdict(best) == "faster":
        close = [named.system(r) for r in rows if r is not best and _overlaps(r, best)]
        sentence = f"fastest here: {name}, {ratio} as fast as {reference}{interval}, {words}"
        return sentence + (f"; not distinguishable from it: {_names(close)}" if close else "")
    if all(verdict(r) == "slower" for r in rows):
        next_one = f"next is {name}, {ratio} as fast{interval}"
        return f"fastest here: {reference}, {words}; {next_one}"
    at_best = "at best " if len(rows) > 1 else ""
    return (
        f"no winner {words}: {at_best}{name} is {ratio} as fast as {reference}{interval},"
        f" {_missing_winner(best)}"
    )


def _times(row: CellRow) -> str:
    """The ratio with its interval; ``unknown`` where the interval is too wide."""
    return times(row["ratio"], row.get("ratio_ci_low"), row.get("ratio_ci_high"), row.get("pairs"))


def _is_unknown(row: CellRow) -> bool:
    return _times(row).startswith("unknown")


def _label(row: CellRow, reference: CellRow, named: Labels) -> str:
    """The system, and the settings in which it differs from the reference."""
    settings = named.varying(reference)
    other = [text for axis, text in named.varying(row).items() if settings.get(axis) != text]
    return ", ".join([named.system(row), *other])


def _overlaps(row: CellRow, best: CellRow) -> bool:
    """Whether the intervals of two ratios overlap or one is unknown."""
    high, low = row.get("ratio_ci_high"), best.get("ratio_ci_low")
    return high is None or low is None or high >= low


def _names(names: Sequence[str]) -> str:
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {more} more" if more > 0 else "")


def _missing_ratio(row: CellRow) -> str:
    """Why a row has no ratio, or none that can be ranked."""
    if row.get("ratio") is not None:
        return "unreliable"
    if row["status"] != "ok":
        return str(row["status"])
    return "different work" if row.get("work_class") == "different" else "no ratio"


def _missing_winner(row: CellRow) -> str:
    """Why the largest ratio is no result."""
    if text := verdict(row):
        return text
    pairs = row.get("pairs")
    return "unreliable" if is_unreliable(row) else f"too few pairs for a verdict ({pairs})"
