"""Settings that change nothing that can be measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from gnnbench.cell import NO_MODEL
from gnnbench.results.schema import FEATURE_PATHS, PHASES

Row = dict[str, Any]

COUNTS = (
    "pick", "frontier", "batches", "seeds", "sampled_edges", "unique_nodes", "h2d_bytes",
    *(f"feature_bytes_{p}" for p in FEATURE_PATHS),
)  # fmt: skip
MEMORY = ("peak_alloc_bytes", "peak_rss_bytes")
MEMORY_TOLERANCE = 0.05
# A setting is worth reporting as dead if it moves no time by more than this or the noise floor:
# intervals of a few rounds often miss 1 by a hair.
TIME_TOLERANCE = 0.05


def dead_options(rows: Sequence[Row], references: Mapping[str, str]) -> Iterator[tuple[Row, str]]:
    """Rows of one system whose settings differ while work, counts, memory and time do not.

    ``references``: cell id to the id of its group's reference; only cells of one group compare.
    Yields the later row of each such couple with a sentence that names the settings.
    """
    for a, b in combinations([r for r in rows if r["status"] == "ok"], 2):
        if a["model"] == NO_MODEL:  # samplers that draw the same edges differ in their time alone
            continue
        if a["system"] != b["system"] or references[a["id"]] != references[b["id"]]:
            continue
        one, two = json.loads(a["options"]), json.loads(b["options"])
        if one == two or not _alike(a, b, references):
            continue
        changed = [k for k in sorted(one.keys() | two.keys()) if one.get(k) != two.get(k)]
        shown = ", ".join(
            f"{k} ({_show(one, k)} or {_show(two, k)})" for k in changed
        )  # fmt: skip
        yield (
            b,
            f"option {shown} changed nothing: same work, memory and times within 5 % or noise",
        )


def _show(options: Mapping[str, Any], key: str) -> str:
    return json.dumps(options[key]) if key in options else "not given"


def _alike(a: Row, b: Row, references: Mapping[str, str]) -> bool:
    if a.get("digest") != b.get("digest") or any(a.get(k) != b.get(k) for k in COUNTS):
        return False
    if any(abs(a[k] - b[k]) > MEMORY_TOLERANCE * max(a[k], b[k]) for k in MEMORY):
        return False
    return all(_overlap(a, b, name, references) for name in ("", *(f"{p}_" for p in PHASES)))


def _overlap(a: Row, b: Row, phase: str, references: Mapping[str, str]) -> bool:
    """Whether the intervals of both ratios to the reference share a value, give or take the floor.

    Without intervals of the wall time nothing can be said; a phase that neither has is the same.
    """
    floor = max(TIME_TOLERANCE, *(r.get("noise_floor") or 0.0 for r in (a, b)))
    one, two = (_interval(r, phase, references) for r in (a, b))
    if one is None or two is None:
        return phase != "" and one == two
    return one[0] * (1 - floor) <= two[1] and two[0] * (1 - floor) <= one[1]


def _interval(row: Row, phase: str, references: Mapping[str, str]) -> tuple[float, float] | None:
    if references[row["id"]] == row["id"]:
        return 1.0, 1.0
    low, high = row.get(f"{phase}speedup_ci_low"), row.get(f"{phase}speedup_ci_high")
    return None if low is None or high is None or low != low else (low, high)
