"""Who is fastest, in words: of what was held against one reference, with the interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnbench.measure import judged
from gnnbench.results.labels import Labels, labels
from gnnbench.results.units import times

Row = dict[str, Any]

MOST = 6  # groups told; a grid has more, and a table


def winners(rows: Sequence[Row]) -> list[str]:
    """One sentence for each reference and all that was held against it at the same or equal work.

    Nobody wins of whom the rule does not say ``faster`` (nor the reference, of whom it does not say
    ``slower`` of all): then the largest ratio is told with the reason why it tells nothing.
    """
    named = labels(rows)
    known = {r["id"]: r for r in rows}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("ratio") is not None and row.get("reference_id") in known:
            groups.setdefault(row["reference_id"], []).append(row)
    told = [_sentence(known[i], group, named) for i, group in groups.items()]
    more = len(told) - MOST
    return told[:MOST] + [f"... and {more} more comparisons, in the table"] * (more > 0)


def _sentence(reference: Row, rows: Sequence[Row], named: Labels) -> str:
    best = max(rows, key=lambda r: (r.get("verdict") == "faster", r["ratio"]))
    where = ", ".join(named.varying(reference, but=("pick", "frontier")).values())
    words = judged.of(reference["until"]).words
    name, beside = named.system(best), best.get("reference") or named.system(reference)
    ratio = times(best["ratio"], best.get("ratio_ci_low"), best.get("ratio_ci_high"))
    if best.get("verdict") == "faster":
        told = f"fastest: {name}, {ratio} as fast as {beside} ({words})"
    elif all(r.get("verdict") == "slower" for r in rows):
        told = f"fastest: {beside}; next is {name}, {ratio} as fast ({words})"
    else:
        told = f"no winner against {beside}: {name} is {ratio} as fast ({words}), {_why(best)}"
    return f"{where}: {told}" if where else told


def _why(row: Row) -> str:
    if row.get("verdict"):
        return str(row["verdict"])
    pairs = row.get("pairs")
    return "in doubt" if row.get("doubtful") else f"too few pairs for a verdict ({pairs})"
