"""Settings that change nothing that can be measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from gnnbench.cell import PHASES, Until
from gnnbench.results import metrics as m
from gnnbench.results.labels import paths_of
from gnnbench.results.metrics import Metrics

Row = dict[str, Any]

COUNTS = ("pick", "frontier", "batches", "seeds", "sampled_edges", "unique_nodes")
MEMORY = (m.PEAK_ALLOC, m.PEAK_RSS)
MEMORY_TOLERANCE = 0.05
# A setting is worth reporting as dead if it moves no time by more than this or the noise floor:
# intervals of a few rounds often miss 1 by a hair.
TIME_TOLERANCE = 0.05
# Wide intervals of a busy machine overlap whatever a setting does: times further apart are no sign.
APART = 1.4


def dead_settings(
    rows: Sequence[Row], metrics: Sequence[Row], references: Mapping[str, str]
) -> Iterator[tuple[Row, str]]:
    """Rows of one system whose recipes differ while work, counts, memory and time do not.

    ``references``: cell id to the id of its group's reference; only cells of one group compare.
    Yields the later row of each such couple with a sentence that names the settings.
    """
    known = Metrics(metrics)
    for a, b in combinations([r for r in rows if r["status"] == "ok"], 2):
        # Samplers that draw the same edges differ in their time alone.
        if Until.SAMPLE.word in (a["until"], b["until"]):
            continue
        if a["system"] != b["system"] or references[a["id"]] != references[b["id"]]:
            continue
        one, two = paths_of(a), paths_of(b)
        if a["env"] != b["env"] or one == two or not _alike(a, b, known, references):
            continue
        changed = [k for k in sorted(one.keys() | two.keys()) if one.get(k) != two.get(k)]
        shown = ", ".join(f"{k} ({_show(one, k)} or {_show(two, k)})" for k in changed)
        yield (
            b,
            f"setting {shown} changed nothing that was told apart: same work and memory, times"
            " within 5 % or their intervals",
        )


def _show(recipe: Mapping[str, Any], key: str) -> str:
    return json.dumps(recipe[key]) if key in recipe else "not given"


def _alike(a: Row, b: Row, known: Metrics, references: Mapping[str, str]) -> bool:
    if a.get("digest") != b.get("digest") or any(a.get(k) != b.get(k) for k in COUNTS):
        return False
    if _counted(known, a) != _counted(known, b):
        return False
    for what in MEMORY:
        one, two = (known.value(r["id"], m.EPOCH, what) or 0.0 for r in (a, b))
        if abs(one - two) > MEMORY_TOLERANCE * max(one, two):
            return False
    return all(_overlap(a, b, stage, known, references) for stage in (m.EPOCH, *PHASES))


def _counted(known: Metrics, row: Row) -> dict[tuple[str, str, str], float]:
    """What the stages themselves counted."""
    return {
        (r["stage"], r["name"], r["where"]): r["value"]
        for r in known.of(row["id"])
        if r["name"] not in m.OWN
    }


def _overlap(a: Row, b: Row, stage: str, known: Metrics, references: Mapping[str, str]) -> bool:
    """Whether the intervals of both ratios to the reference share a value, give or take the floor,
    and the ratios themselves are less than ``APART`` times each other.

    Without intervals nothing can be said; a phase that neither has is the same.
    """
    if stage in PHASES and all(r.get(f"{stage}_time_s") is None for r in (a, b)):
        return True
    floor = max(TIME_TOLERANCE, *(r.get("noise_floor") or 0.0 for r in (a, b)))
    one, two = (_interval(r, stage, known, references) for r in (a, b))
    if one is None or two is None:
        return False
    overlap = one[0] * (1 - floor) <= two[1] and two[0] * (1 - floor) <= one[1]
    return overlap and max(one[2], two[2]) < APART * min(one[2], two[2])


def _interval(
    row: Row, stage: str, known: Metrics, references: Mapping[str, str]
) -> tuple[float, float, float] | None:
    """Low and high end of the ratio to the reference, and the ratio."""
    if references[row["id"]] == row["id"]:
        return 1.0, 1.0, 1.0
    found = known.row(row["id"], stage, m.SPEEDUP)
    if found is None or found["low"] is None:
        return None
    return found["low"], found["high"], found["value"]
