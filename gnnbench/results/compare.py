"""Two runs held against each other, cell by cell."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gnnbench.errors import UsageError
from gnnbench.measure import judged
from gnnbench.measure.stats import Estimate, ratio_of_medians, verdict
from gnnbench.results import reader
from gnnbench.results.labels import Labels, labels
from gnnbench.results.reader import Run

Row = dict[str, Any]

# What a cell is, whatever the machine; a failed cell does not know its pick and frontier.
KEY = (
    "system", "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden",
    "learning_rate", "threads", "seed", "max_batches", "recipe", "stand_in_for",
)  # fmt: skip
RULES = ("pick", "frontier")
WORK_TOLERANCE = 0.01
NOT_MEASURED = ("missing_dep", "missing_data", "unsupported")
VERDICTS = {
    "faster": "B takes less time than A; the interval lies wholly beyond the threshold",
    "slower": "B takes more time than A, likewise: a regression",
    "tie": "the interval reaches into the threshold around 1",
    "incomparable": "one side was not measured, or did other work; `reason` says which",
}


@dataclass(frozen=True)
class Compared:
    """One cell in both runs; ``ratio`` is A's median judged time over B's, above 1 B is faster.

    ``cell`` says what sets the cell apart, ``judged`` which time was compared (``a_s``, ``b_s``);
    ``threshold`` is the relative difference that the interval had to leave behind.
    """

    cell: str
    system: str
    dataset: str
    until: str
    model: str
    device: str
    batch_size: int
    fanouts: str
    threads: int
    judged: str
    a_s: float | None
    b_s: float | None
    n_a: int
    n_b: int
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    threshold: float
    verdict: str
    reason: str
    regression: bool


@dataclass
class Comparison:
    """Every cell of either run, what all of them share, and what makes the whole doubtful."""

    common: str = ""
    cells: list[Compared] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def regressions(self) -> list[Compared]:
        """Cells that are slower in B, or that B could not finish."""
        return [c for c in self.cells if c.regression]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "regression": bool(self.regressions)}


def open_run(path: Path) -> Run:
    """A run by its folder or its ``cells.csv``. Raises ``UsageError``."""
    return reader.read(path.parent if path.is_file() and path.name == "cells.csv" else path)


def compare(a: Run, b: Run, threshold: float | None = None) -> Comparison:
    """Match the cells of two runs and judge each.

    A cell is a ``regression`` where the interval of the ratio lies wholly below 1 - ``threshold``
    (default: the larger noise floor of the two rows, 0 where neither was calibrated), or where A
    measured it and B ended in a failure. Raises ``UsageError`` where the runs share no cell.
    """
    named = labels([*a.cells, *b.cells])
    found = Comparison(named.title(), warnings=_warnings(a, b, threshold, named))
    left = list(b.cells)
    couples = []
    for row in a.cells:
        other = _match(row, left)
        if other is None:
            found.only_a.append(named.of(row))
            continue
        left.remove(other)
        couples.append((row, other))
    if any(one["threads"] != other["threads"] for one, other in couples):
        found.warnings.append("the runs were made with different numbers of threads")
    found.cells = [_judge(one, other, a, b, threshold, named) for one, other in couples]
    found.only_b = [named.of(row) for row in left]
    if not found.cells:
        raise UsageError(
            f"'{a.path}' and '{b.path}' share no cell; compare runs of the same definition"
        )
    return found


def _match(row: Row, others: Sequence[Row]) -> Row | None:
    """The same work under the same name; else, of older runs, what is alike in all that it is."""
    for other in others:
        if (other["id"], other["system"]) == (row["id"], row["system"]):
            return other
    return next((o for o in others if _same(row, o)), None)


def _same(a: Row, b: Row) -> bool:
    if any(_value(a, k) != _value(b, k) for k in KEY):
        return False
    if None in (a.get("judged_s"), b.get("judged_s")):
        return True
    return all(a[k] == b[k] for k in (*RULES, "batches"))


def _value(row: Row, key: str) -> Any:
    if key == "recipe":
        return _without_rules(json.loads(row["recipe"] or "{}"))
    if key == "max_batches":  # a limit that leaves the epoch whole is none
        limit, whole = row[key] or 0, row["epoch_batches"]
        return limit if not whole or limit < whole else 0
    return row.get(key)


def _without_rules(recipe: dict[str, Any]) -> dict[str, Any]:
    """A failed cell of version 1 does not know what its sampler would have drawn by."""
    sampler = {k: v for k, v in recipe.get("sampler", {}).items() if k not in RULES}
    return {**recipe, "sampler": sampler}


def _judge(
    a: Row, b: Row, run_a: Run, run_b: Run, threshold: float | None, named: Labels
) -> Compared:
    reason, regression = _incomparable(a, b)
    times = [_times(row, run) for row, run in ((a, run_a), (b, run_b))]
    ratio = Estimate(math.nan, math.nan, math.nan, 0)
    if not reason:
        ratio = _ratio(a, b, times)
    limit = max(_floor(a), _floor(b)) if threshold is None else threshold
    called = "incomparable" if reason else verdict(ratio, limit)
    if not called:
        called, reason = "incomparable", "a single epoch on one side gives no interval"
    return Compared(
        cell=named.of(b),
        **{f.name: b[f.name] for f in fields(Compared) if f.name in KEY},
        judged=judged.of(b["until"]).name,
        a_s=a.get("judged_s"),
        b_s=b.get("judged_s"),
        n_a=a.get("n") or 0,
        n_b=b.get("n") or 0,
        ratio=_number(ratio.median),
        ci_low=_number(ratio.low),
        ci_high=_number(ratio.high),
        threshold=limit,
        verdict=called,
        reason=reason,
        regression=regression or called == "slower",
    )


def _floor(row: Row) -> float:
    return row.get("noise_floor") or 0.0


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _times(row: Row, run: Run) -> list[float]:
    """Judged times of the epochs behind a row; empty where the run left no samples."""
    by = judged.of(row["until"])
    return [by.value(s) for s in run.samples if s["id"] == row["id"] and counts(s)]


def counts(sample: Row) -> bool:
    """Whether a sample takes part in statistics."""
    return not sample["warmup"] and not sample.get("void")


def _ratio(a: Row, b: Row, times: Sequence[Sequence[float]]) -> Estimate:
    if all(len(t) == row["n"] for t, row in zip(times, (a, b), strict=True)):
        return ratio_of_medians(times[0], times[1], a["seed"] or 0)
    # Only the tables are there: the quotient of the intervals' ends is wider than it need be.
    middle = a["judged_s"] / b["judged_s"]
    if any(row.get(k) is None for row in (a, b) for k in ("ci_low_s", "ci_high_s")):
        return Estimate(middle, math.nan, math.nan, 1)
    low, high = a["ci_low_s"] / b["ci_high_s"], a["ci_high_s"] / b["ci_low_s"]
    return Estimate(middle, low, high, min(a["n"], b["n"]))


def _incomparable(a: Row, b: Row) -> tuple[str, bool]:
    """Why two rows cannot be compared ("": they can), and whether B got worse by it."""
    if a["status"] != b["status"] or a["status"] != "ok":
        worse = a["status"] == "ok" and b["status"] not in ("ok", "unstable", *NOT_MEASURED)
        text = f"both are {a['status']}" if a["status"] == b["status"] else (
            f"{a['status']} in A, {b['status']} in B"
        )  # fmt: skip
        return text, worse
    for key in ("law", "frontier", "batches", "seeds"):
        if a[key] != b[key]:
            return f"other work: {key} is {a[key]} in A, {b[key]} in B", False
    for key in ("sampled_edges", "unique_nodes"):
        if abs(a[key] - b[key]) > WORK_TOLERANCE * abs(a[key]):
            return f"other work: {key} is {a[key]} in A, {b[key]} in B", False
    return "", False


def _warnings(a: Run, b: Run, threshold: float | None, named: Labels) -> list[str]:
    found = []
    for key, what in (("machine_id", "machines"), ("versions", "versions of packages")):
        one, two = a.record.get(key), b.record.get(key)
        if one is None or two is None:
            continue
        if one != two:
            found.append(f"the runs were made with different {what}" + _differing(one, two))
    if threshold is None and not any(_floor(r) for r in (*a.cells, *b.cells)):
        found.append(
            "neither run was calibrated, so the interval decides alone; 'gnnbench calibrate'"
            " measures the noise floor"
        )
    return found + _doubts(a, b, named)


def _doubts(a: Run, b: Run, named: Labels) -> list[str]:
    return [
        f"{name}: {named.of(row)} is doubtful: {row['doubtful']}"
        for name, run in (("A", a), ("B", b))
        for row in run.cells
        if row.get("doubtful")
    ]


def _differing(one: Any, two: Any) -> str:
    if not isinstance(one, dict):
        return ""
    names = sorted(k for k in one.keys() | two.keys() if one.get(k) != two.get(k))
    return f" ({', '.join(f'{n}: {one.get(n)}, {two.get(n)}' for n in names)})"
