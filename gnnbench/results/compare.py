"""Two runs held against each other, cell by cell."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gnnbench.errors import UsageError
from gnnbench.measure.stats import Estimate, ratio_of_medians, verdict
from gnnbench.results import reader
from gnnbench.results.labels import system_label
from gnnbench.results.reader import Run

Row = dict[str, Any]

# What a cell is, whatever the machine; a failed cell does not know its pick and frontier.
KEY = (
    "system", "dataset", "model", "device", "batch_size", "fanouts", "hidden", "learning_rate",
    "seed", "options", "stand_in_for",
)  # fmt: skip
RULES = ("pick", "frontier")
WORK_TOLERANCE = 0.01
NOT_MEASURED = ("missing_dep", "unsupported")
VERDICTS = {
    "faster": "B takes less time than A; the interval lies wholly beyond the threshold",
    "slower": "B takes more time than A, likewise: a regression",
    "tie": "the interval reaches into the threshold around 1",
    "incomparable": "one side was not measured, or did other work; `reason` says which",
}


@dataclass(frozen=True)
class Compared:
    """One cell in both runs; ``ratio`` is A's median epoch time over B's, above 1 B is faster.

    ``threshold`` is the relative difference that the interval had to leave behind.
    """

    system: str
    dataset: str
    model: str
    device: str
    batch_size: int
    fanouts: str
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
    """Every cell of either run, and what makes the whole doubtful."""

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
    found = Comparison(warnings=_warnings(a, b, threshold))
    left = list(b.cells)
    for row in a.cells:
        other = _match(row, left)
        if other is None:
            found.only_a.append(describe(row))
            continue
        left.remove(other)
        found.cells.append(_judge(row, other, a, b, threshold))
    found.only_b = [describe(row) for row in left]
    if not found.cells:
        raise UsageError(
            f"'{a.path}' and '{b.path}' share no cell; compare runs of the same definition"
        )
    return found


def describe(row: Row) -> str:
    """A cell in a line: what it is."""
    return (
        f"{system_label(row)} on {row['dataset']} ({row['model']}, {row['device']}, batch"
        f" {row['batch_size']}, {row['fanouts']})"
    )


def _match(row: Row, others: Sequence[Row]) -> Row | None:
    for other in others:
        if other["id"] == row["id"]:
            return other
    # The definition's name is in the id: the same cell of two experiments matches by what it is.
    return next((o for o in others if _same(row, o)), None)


def _same(a: Row, b: Row) -> bool:
    if any(_value(a, k) != _value(b, k) for k in KEY):
        return False
    if None in (a.get("epoch_wall_s"), b.get("epoch_wall_s")):
        return True
    return all(a[k] == b[k] for k in (*RULES, "batches"))


def _value(row: Row, key: str) -> Any:
    return json.loads(row["options"] or "{}") if key == "options" else row.get(key)


def _judge(a: Row, b: Row, run_a: Run, run_b: Run, threshold: float | None) -> Compared:
    reason, regression = _incomparable(a, b)
    times = [_walls(row, run) for row, run in ((a, run_a), (b, run_b))]
    ratio = Estimate(math.nan, math.nan, math.nan, 0)
    if not reason:
        ratio = _ratio(a, b, times)
    limit = max(_floor(a), _floor(b)) if threshold is None else threshold
    called = "incomparable" if reason else verdict(ratio, limit)
    if not called:
        called, reason = "incomparable", "a single epoch on one side gives no interval"
    return Compared(
        system=system_label(b),
        **{k: b[k] for k in ("dataset", "model", "device", "batch_size", "fanouts")},
        a_s=a.get("epoch_wall_s"),
        b_s=b.get("epoch_wall_s"),
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


def _walls(row: Row, run: Run) -> list[float]:
    """Measured epochs behind a row; empty where the run left no samples."""
    return [s["wall_s"] for s in run.samples if s["id"] == row["id"] and counts(s)]


def counts(sample: Row) -> bool:
    """Whether a sample takes part in statistics."""
    return not sample["warmup"] and not sample.get("void")


def _ratio(a: Row, b: Row, times: Sequence[Sequence[float]]) -> Estimate:
    if all(len(t) == row["n"] for t, row in zip(times, (a, b), strict=True)):
        return ratio_of_medians(times[0], times[1], a["seed"] or 0)
    # Only the tables are there: the quotient of the intervals' ends is wider than it need be.
    middle = a["epoch_wall_s"] / b["epoch_wall_s"]
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


def _warnings(a: Run, b: Run, threshold: float | None) -> list[str]:
    found = []
    for key, what in (("machine_id", "machines"), ("versions", "versions of packages")):
        one, two = a.record.get(key), b.record.get(key)
        if one is None or two is None:
            continue
        if one != two:
            found.append(f"the runs were made with different {what}" + _differing(one, two))
    threads = [{r["threads"] for r in run.cells} for run in (a, b)]
    if threads[0] != threads[1]:
        found.append("the runs were made with different numbers of threads")
    if threshold is None and not any(_floor(r) for r in (*a.cells, *b.cells)):
        found.append(
            "neither run was calibrated, so the interval decides alone; 'gnnbench calibrate'"
            " measures the noise floor"
        )
    return found + _doubts(a, b)


def _doubts(a: Run, b: Run) -> list[str]:
    return [
        f"{name}: {describe(row)} is doubtful: {row['doubtful']}"
        for name, run in (("A", a), ("B", b))
        for row in run.cells
        if row.get("doubtful")
    ]


def _differing(one: Any, two: Any) -> str:
    if not isinstance(one, dict):
        return ""
    names = sorted(k for k in one.keys() | two.keys() if one.get(k) != two.get(k))
    return f" ({', '.join(f'{n}: {one.get(n)}, {two.get(n)}' for n in names)})"
