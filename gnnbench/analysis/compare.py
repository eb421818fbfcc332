"""Compare two runs cell by cell."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TypedDict

from gnnbench.analysis.labels import Labels, labels
from gnnbench.core.cell import IMPLEMENTATION, implementations
from gnnbench.core.errors import UsageError
from gnnbench.schema import CellRow, SampleRow
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric
from gnnbench.statistics.estimates import NOTHING, exponential, welch
from gnnbench.statistics.stopping_rule import MIN_PAIRS, Rule

# Columns that identify a cell on any machine. A failed cell does not know its pick and frontier.
KEY = (
    "system", "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden",
    "learning_rate", "dropout", "precision", "threads", "seed", "max_batches", "evaluate",
    "recipe", "stand_in_for", "env",
)  # fmt: skip
SAMPLER_RULES = ("pick", "frontier")
WORK_TOLERANCE = 0.01
NOT_JUDGED, INCOMPARABLE = "not judged", "incomparable"
Sides = tuple[str, str]
SIDES: Sides = ("in A", "in B")  # what reasons call the two rows
VERDICTS = {
    "faster": "relative to its reference, B is faster than A by more than the margin",
    "slower": "relative to its reference, B is slower than A by more than the margin: a regression",
    "same": "the change is within +-3 %",
    "unclear": "none of these; more pairs would decide",
    NOT_JUDGED: "one of the runs has no usable ratio; `reason` says why. Times are no evidence",
    INCOMPARABLE: "one side was not measured, or did other work; `reason` says which",
}


@dataclass(frozen=True)
class ComparedCell:
    """One cell in both runs.

    ``ratio_a`` and ``ratio_b`` are its ratios to the reference of each run. ``change`` is
    ratio_b / ratio_a with Welch's 95 % interval over the pairs of both runs; above 1 the cell is
    faster in B. Changes of the machine affect the reference too and cancel. ``cell`` is the label,
    ``judged`` the primary metric, ``a_s`` and ``b_s`` its values (s), on which no verdict rests.
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
    pairs_a: int
    pairs_b: int
    ratio_a: float | None
    ratio_b: float | None
    change: float | None
    change_ci_low: float | None
    change_ci_high: float | None
    margin: float
    verdict: str
    reason: str
    regression: bool


class ComparisonJson(TypedDict):
    """A comparison as ``--format json`` prints it. A cell has the fields of ``ComparedCell``."""

    common: str
    cells: list[dict[str, str | int | float | bool | None]]
    only_a: list[str]
    only_b: list[str]
    warnings: list[str]
    regression: bool


@dataclass
class Comparison:
    """Cells of both runs, the settings that all cells share, and warnings."""

    common: str = ""
    cells: list[ComparedCell] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def regressions(self) -> list[ComparedCell]:
        """Cells that are slower in B, or that only A could measure."""
        return [c for c in self.cells if c.regression]

    @property
    def judged(self) -> list[ComparedCell]:
        """Cells whose change has an interval."""
        return [c for c in self.cells if c.verdict not in (NOT_JUDGED, INCOMPARABLE)]

    def to_json(self) -> ComparisonJson:
        """The comparison as JSON values."""
        return {
            "common": self.common, "cells": [asdict(cell) for cell in self.cells],
            "only_a": self.only_a, "only_b": self.only_b, "warnings": self.warnings,
            "regression": bool(self.regressions),
        }  # fmt: skip


def compare(a: Run, b: Run, margin: float = Rule.margin) -> Comparison:
    """Match the cells of two runs and give each a verdict.

    A cell is a ``regression`` if it became slower relative to its reference by more than
    ``margin``, or if A measured it and B failed. Pairs of both runs are pooled only if they were
    measured with the same stage implementations, package versions and GPU. Raises ``UsageError``
    if the runs share no cell.
    """
    named = labels([*a.cells, *b.cells])
    comparison = Comparison(named.title(), warnings=_warnings(a, b, named))
    matches, only_a, only_b = match_cells(a.cells, b.cells)
    comparison.only_a = [named.of(row) for row in only_a]
    comparison.only_b = [named.of(row) for row in only_b]
    if any(one["threads"] != other["threads"] for one, other in matches):
        comparison.warnings.append("the runs were made with different numbers of threads")
    comparison.cells = [_compare_cell(one, other, a, b, margin, named) for one, other in matches]
    if not comparison.cells:
        raise UsageError(
            f"'{a.path}' and '{b.path}' share no cell; compare runs of the same definition"
        )
    return comparison


def match_cells(
    a: Iterable[CellRow], b: Iterable[CellRow]
) -> tuple[list[tuple[CellRow, CellRow]], list[CellRow], list[CellRow]]:
    """The rows of equal cells, the rows without one in ``b``, and those without one in ``a``."""
    unmatched = list(b)
    matches, only_a = [], []
    for row in a:
        other = _match(row, unmatched)
        if other is None:
            only_a.append(row)
            continue
        unmatched.remove(other)
        matches.append((row, other))
    return matches, only_a, unmatched


def _match(row: CellRow, others: Sequence[CellRow]) -> CellRow | None:
    """The row with the same id and system, or else with the same settings (for older runs)."""
    for other in others:
        if (other["id"], other["system"]) == (row["id"], row["system"]):
            return other
    return next((o for o in others if has_same_settings(row, o)), None)


def has_same_settings(a: CellRow, b: CellRow, keys: Iterable[str] = KEY) -> bool:
    """Whether two rows have equal settings in these columns, and batches of the same rules."""
    if any(_setting(a, k) != _setting(b, k) for k in keys):
        return False
    if None in (a.get("judged_s"), b.get("judged_s")):
        return True
    return all(a[k] == b[k] for k in (*SAMPLER_RULES, "batches"))


def _setting(row: CellRow, key: str) -> object:
    if key == "recipe":
        return _comparable_recipe(json.loads(row["recipe"] or "{}"))
    if key == "max_batches":  # a limit that does not cut the epoch equals no limit
        limit, whole = row[key] or 0, row["epoch_batches"]
        return limit if not whole or limit < whole else 0
    return row.get(key)


def _comparable_recipe(recipe: Mapping[str, Mapping[str, object]]) -> object:
    """The recipe without pick and frontier, which a failed cell may lack, and without
    implementation numbers, which make matching cells incomparable."""
    rules = {k: v for k, v in recipe.get("sampler", {}).items() if k not in SAMPLER_RULES}
    return _without_implementations({**recipe, "sampler": rules})


def _without_implementations(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {k: _without_implementations(v) for k, v in value.items() if k != IMPLEMENTATION}


def _compare_cell(
    a: CellRow, b: CellRow, run_a: Run, run_b: Run, margin: float, named: Labels
) -> ComparedCell:
    reason, regression = _incomparable(a, b)
    verdict, ratio = INCOMPARABLE, NOTHING
    statuses = {a["status"], b["status"]}
    if "unstable" in statuses and statuses <= {"ok", "unstable"}:
        verdict = NOT_JUDGED
    logs_a, logs_b = pair_logs(a, run_a), pair_logs(b, run_b)
    if not reason:
        verdict = NOT_JUDGED
        reason = _unusable_ratio(a, b, len(logs_a), len(logs_b))
        reason = reason or other_conditions(a, b, run_a, run_b)
    if not reason:
        change = welch(logs_a, logs_b)
        verdict, ratio = Rule(margin=margin).classify(change), exponential(change)
    return ComparedCell(
        cell=named.of(b),
        **{f.name: b[f.name] for f in fields(ComparedCell) if f.name in KEY},
        judged=primary_metric.of(b["until"]).name,
        a_s=a.get("judged_s"),
        b_s=b.get("judged_s"),
        pairs_a=len(logs_a),
        pairs_b=len(logs_b),
        ratio_a=a.get("ratio"),
        ratio_b=b.get("ratio"),
        change=_number(ratio.value),
        change_ci_low=_number(ratio.low),
        change_ci_high=_number(ratio.high),
        margin=margin,
        verdict=verdict,
        reason=reason,
        regression=regression or verdict == "slower",
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def pair_logs(row: CellRow, run: Run) -> list[float]:
    """log(reference / system) of each pair behind a row's ratio: the median over its rounds.

    Empty if the row has no ratio or the run has no samples.
    """
    value = primary_metric.of(row["until"]).value
    trials: dict[int, dict[int, dict[bool, float]]] = {}  # by trial, round, whether the system's
    for s in run.samples:
        reference, _, system = s["pair"].partition("-")
        if (reference, system) == (row["reference_id"], row["id"]) and is_in_statistics(s):
            sides = trials.setdefault(s["life"], {}).setdefault(s["round"], {})
            sides[s["id"] == system] = value(s)
    logs = [
        [
            math.log(r[False] / r[True])
            for r in rounds.values()
            if len(r) == 2 and min(r.values()) > 0
        ]
        for rounds in trials.values()
    ]
    return [statistics.median(of_pair) for of_pair in logs if of_pair]


def is_in_statistics(sample: SampleRow) -> bool:
    """Whether a sample is neither a warm-up nor void."""
    return not sample["warmup"] and not sample.get("void")


def _unusable_ratio(a: CellRow, b: CellRow, pairs_a: int, pairs_b: int) -> str:
    """Why the ratios of two rows give no verdict; "" if they do."""
    if "reference" in (a["verdict"], b["verdict"]):
        return "it is the reference itself; only ratios have a verdict"
    if reason := other_reference(a, b):
        return reason
    for row, name in ((a, "A"), (b, "B")):
        if row.get("ratio") is None:
            return f"it has no ratio in {name}; run it with a reference, in this version"
        if row.get("doubtful"):
            return f"its time is unreliable in {name}"
    if min(pairs_a, pairs_b) < MIN_PAIRS:
        return f"fewer than {MIN_PAIRS} pairs: {pairs_a} in A, {pairs_b} in B"
    return ""


def other_reference(a: CellRow, b: CellRow, sides: Sides = SIDES) -> str:
    """How the references of two rows differ; "" if they do not."""
    if a["reference"] == b["reference"]:
        return ""
    return f"its reference is {a['reference']} {sides[0]}, {b['reference']} {sides[1]}"


def other_gpu(a: CellRow, b: CellRow, run_a: Run, run_b: Run, sides: Sides = SIDES) -> str:
    """How the GPU models of two rows differ; "" if they do not or one is unknown."""
    one, two = gpu(a, run_a), gpu(b, run_b)
    if one == two or not (one and two):
        return ""
    return f"its GPU is {one} {sides[0]}, {two} {sides[1]}"


def gpu(row: CellRow, run: Run) -> str:
    """The model of the GPU on which a row was measured; "" for a CPU or if it is unknown."""
    gpus = run.record.machine.gpus
    return gpus[0].name if gpus and row["device"] == "cuda" else ""


def package_versions(row: CellRow, run: Run) -> dict[str, str]:
    """Versions of the packages of a row and of its reference, without Python's."""
    reference = next((r for r in run.cells if r["id"] == row.get("reference_id")), None)
    versions: dict[str, str] = {}
    for prefix, one in (("", row), ("the reference's ", reference)):
        if one:
            versions |= {prefix + name: version for name, version in own_versions(one).items()}
    return versions


def own_versions(row: CellRow) -> dict[str, str]:
    """Versions of the packages in a row's worker, without Python's."""
    parts = [part.partition(" ") for part in str(row.get("versions") or "").split(", ")]
    return {name: version for name, _, version in parts if version and name != "python"}


def other_conditions(a: CellRow, b: CellRow, run_a: Run, run_b: Run) -> str:
    """Why pairs of two runs cannot be pooled, or "". A value that is not recorded is no reason."""
    if reason := other_gpu(a, b, run_a, run_b):
        return f"{reason}; measure both on one GPU model"
    one, two = package_versions(a, run_a), package_versions(b, run_b)
    for name in sorted(one.keys() & two.keys()):
        if one[name] != two[name]:
            return f"{name} is {one[name]} in A, {two[name]} in B; measure both with one version"
    return ""


def _incomparable(a: CellRow, b: CellRow) -> tuple[str, bool]:
    """Why two rows cannot be compared ("" if they can), and whether this is a regression."""
    if a["status"] != b["status"]:
        worse = a["status"] == "ok" and b["status"] != "unstable"
        return f"{a['status']} in A, {b['status']} in B", worse
    if a["status"] != "ok":
        return f"both are {a['status']}", False
    return other_work(a, b), False


def other_work(a: CellRow, b: CellRow, sides: Sides = SIDES) -> str:
    """How the work of two measured rows differs; "" if it does not."""
    one, two = (implementations(json.loads(row["recipe"] or "{}")) for row in (a, b))
    for path in sorted(one.keys() | two.keys()):
        if (old := one.get(path, 1)) != (new := two.get(path, 1)):
            return f"other work: {path} is implementation {old} {sides[0]}, {new} {sides[1]}"
    for key in ("law", "frontier", "batches", "seeds"):
        if a[key] != b[key]:
            return f"other work: {key} is {a[key]} {sides[0]}, {b[key]} {sides[1]}"
    for key in ("sampled_edges", "unique_nodes"):
        if None in (a[key], b[key]):
            continue
        if abs(a[key] - b[key]) > WORK_TOLERANCE * abs(a[key]):
            return f"other work: {key} is {a[key]} {sides[0]}, {b[key]} {sides[1]}"
    return ""


def _warnings(a: Run, b: Run, named: Labels) -> list[str]:
    """Differences between the conditions of two runs, and unreliable cells."""
    one, two = a.record, b.record
    warnings = []
    if None not in (one.machine_id, two.machine_id) and one.machine_id != two.machine_id:
        warnings.append("the runs were made with different machines")
    if "versions" in one and "versions" in two and one.versions != two.versions:
        warnings.append(
            "the runs were made with different versions of packages"
            + _differences(one.versions, two.versions)
        )
    for name in [name for name in one.environments if name in two.environments]:
        own, other = one.environments[name].versions, two.environments[name].versions
        if own != other:
            warnings.append(f"environment '{name}' had other versions" + _differences(own, other))
    return [*warnings, *_unreliable_cells(a, b, named)]


def _unreliable_cells(a: Run, b: Run, named: Labels) -> list[str]:
    return [
        f"{name}: the time of {named.of(row)} is unreliable: {row['doubtful']}"
        for name, run in (("A", a), ("B", b))
        for row in run.cells
        if row.get("doubtful")
    ]


def _differences(one: Mapping[str, str | None], two: Mapping[str, str | None]) -> str:
    names = sorted(k for k in one.keys() | two.keys() if one.get(k) != two.get(k))
    return f" ({', '.join(f'{n}: {one.get(n)}, {two.get(n)}' for n in names)})"
