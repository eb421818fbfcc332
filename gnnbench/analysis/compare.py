"""Two runs held against each other, cell by cell."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gnnbench.analysis.labels import Labels, labels
from gnnbench.core.cell import IMPLEMENTATION, implementations
from gnnbench.core.errors import UsageError
from gnnbench.schema.reader import Run
from gnnbench.statistics import primary_metric as judged
from gnnbench.statistics.estimates import NOTHING, exponential, welch
from gnnbench.statistics.stopping_rule import MIN_PAIRS, Rule

Row = Mapping[str, Any]

# What a cell is, whatever the machine; a failed cell does not know its pick and frontier.
KEY = (
    "system", "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden",
    "learning_rate", "threads", "seed", "max_batches", "evaluate", "recipe", "stand_in_for", "env",
)  # fmt: skip
RULES = ("pick", "frontier")
WORK_TOLERANCE = 0.01
NOT_MEASURED = ("missing_dep", "missing_data", "unsupported")
NOT_JUDGED = "not judged"
VERDICTS = {
    "faster": "against the reference beside it, B's is faster than A's by more than the margin",
    "slower": "likewise slower: a regression",
    "same": "the change lies within +-3 %",
    "unclear": "none of these; more pairs would tell",
    NOT_JUDGED: "there is no usable ratio in both runs; `reason` says why, times are no evidence",
    "incomparable": "one side was not measured, or did other work; `reason` says which",
}


@dataclass(frozen=True)
class Compared:
    """One cell in both runs.

    ``ratio_a`` and ``ratio_b`` are those over the reference beside it in either run; ``change`` is
    B's over A's, with Welch's 95 % interval over the pairs of both: above 1 it got faster. What a
    day of a machine does to the reference as well cancels. ``cell`` says what sets it apart,
    ``judged`` which time was compared; ``a_s`` and ``b_s`` are that time, and decide nothing.
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


def compare(a: Run, b: Run, margin: float = Rule.margin) -> Comparison:
    """Match the cells of two runs and judge each.

    A cell is a ``regression`` where it got slower against its reference by more than ``margin``,
    or where A measured it and B ended in a failure. Pairs of both runs are pooled only where they
    were measured with the same stage implementations, package versions and GPU. Raises
    ``UsageError`` where the runs share no cell.
    """
    named = labels([*a.cells, *b.cells])
    found = Comparison(named.title(), warnings=_warnings(a, b, named))
    left: list[Row] = list(b.cells)
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
    found.cells = [_judge(one, other, a, b, margin, named) for one, other in couples]
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
    """The recipe without pick and frontier, which a failed cell may lack, and without
    implementation numbers, which make matching cells incomparable."""
    sampler = {k: v for k, v in recipe.get("sampler", {}).items() if k not in RULES}
    return _without_implementations({**recipe, "sampler": sampler})


def _without_implementations(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: _without_implementations(v) for k, v in value.items() if k != IMPLEMENTATION}


def _judge(a: Row, b: Row, run_a: Run, run_b: Run, margin: float, named: Labels) -> Compared:
    reason, regression = _incomparable(a, b)
    called, found = "incomparable", NOTHING
    logs = [pair_logs(row, run) for row, run in ((a, run_a), (b, run_b))]
    if not reason:
        called, reason = NOT_JUDGED, _unjudged(a, b, logs) or _other_conditions(a, b, run_a, run_b)
    if not reason:
        change = welch(logs[0], logs[1])
        called, found = Rule(margin=margin).called_by(change), exponential(change)
    return Compared(
        cell=named.of(b),
        **{f.name: b[f.name] for f in fields(Compared) if f.name in KEY},
        judged=judged.of(b["until"]).name,
        a_s=a.get("judged_s"),
        b_s=b.get("judged_s"),
        pairs_a=len(logs[0]),
        pairs_b=len(logs[1]),
        ratio_a=a.get("ratio"),
        ratio_b=b.get("ratio"),
        change=_number(found.value),
        change_ci_low=_number(found.low),
        change_ci_high=_number(found.high),
        margin=margin,
        verdict=called,
        reason=reason,
        regression=regression or called == "slower",
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def pair_logs(row: Row, run: Run) -> list[float]:
    """d of every pair behind a row's ratio; empty where it has none, or the run left no samples."""
    value = judged.of(row["until"]).value
    lives: dict[int, dict[int, dict[bool, float]]] = {}
    for s in run.samples:
        reference, _, system = s["pair"].partition("-")
        if (reference, system) == (row["reference_id"], row["id"]) and counts(s):
            sides = lives.setdefault(s["life"], {}).setdefault(s["round"], {})
            sides[s["id"] == system] = value(s)
    found = [
        [math.log(r[False] / r[True]) for r in life.values() if len(r) == 2 and min(r.values()) > 0]
        for life in lives.values()
    ]
    return [statistics.median(d) for d in found if d]


def counts(sample: Row) -> bool:
    """Whether a sample takes part in statistics."""
    return not sample["warmup"] and not sample.get("void")


def _unjudged(a: Row, b: Row, logs: Sequence[Sequence[float]]) -> str:
    """Why the ratios of two rows are no evidence ("": they are)."""
    if "reference" in (a["verdict"], b["verdict"]):
        return "it is the reference itself: only times beside one another are judged"
    if a["reference"] != b["reference"]:
        return f"its reference is {a['reference']} in A, {b['reference']} in B"
    for row, name in ((a, "A"), (b, "B")):
        if row.get("ratio") is None:
            return f"it has no ratio in {name}; run it beside a reference, in this version"
        if row.get("doubtful"):
            return f"its time is in doubt in {name}"
    if min(map(len, logs)) < MIN_PAIRS:
        return f"fewer than {MIN_PAIRS} pairs: {len(logs[0])} in A, {len(logs[1])} in B"
    return ""


def gpu(row: Row, run: Run) -> str:
    """The model of the GPU that a row was measured on; "" of a CPU or where it is not known."""
    gpus = run.record.get("machine", {}).get("gpus") or []
    return str(gpus[0]["name"]) if gpus and row["device"] == "cuda" else ""


def package_versions(row: Row, run: Run) -> dict[str, str]:
    """Versions of the packages that a row and its reference ran with, without Python's."""
    beside = next((r for r in run.cells if r["id"] == row.get("reference_id")), None)
    found = {}
    for prefix, one in (("", row), ("the reference's ", beside)):
        for part in str((one or {}).get("versions") or "").split(", "):
            name, _, version = part.partition(" ")
            if version and name != "python":
                found[prefix + name] = version
    return found


def _other_conditions(a: Row, b: Row, run_a: Run, run_b: Run) -> str:
    """Why pairs of two runs cannot be pooled, or "". What a run does not record is no reason."""
    cards = gpu(a, run_a), gpu(b, run_b)
    if all(cards) and cards[0] != cards[1]:
        return f"its GPU is {cards[0]} in A, {cards[1]} in B; measure both on one GPU model"
    one, two = package_versions(a, run_a), package_versions(b, run_b)
    for name in sorted(one.keys() & two.keys()):
        if one[name] != two[name]:
            return f"{name} is {one[name]} in A, {two[name]} in B; measure both with one version"
    return ""


def _incomparable(a: Row, b: Row) -> tuple[str, bool]:
    """Why two rows cannot be compared ("": they can), and whether B got worse by it."""
    if a["status"] != b["status"] or a["status"] != "ok":
        worse = a["status"] == "ok" and b["status"] not in ("ok", "unstable", *NOT_MEASURED)
        text = f"both are {a['status']}" if a["status"] == b["status"] else (
            f"{a['status']} in A, {b['status']} in B"
        )  # fmt: skip
        return text, worse
    one, two = (implementations(json.loads(row["recipe"] or "{}")) for row in (a, b))
    for path in sorted(one.keys() | two.keys()):
        if (old := one.get(path, 1)) != (new := two.get(path, 1)):
            return f"other work: {path} is implementation {old} in A, {new} in B", False
    for key in ("law", "frontier", "batches", "seeds"):
        if a[key] != b[key]:
            return f"other work: {key} is {a[key]} in A, {b[key]} in B", False
    for key in ("sampled_edges", "unique_nodes"):
        if None in (a[key], b[key]):
            continue
        if abs(a[key] - b[key]) > WORK_TOLERANCE * abs(a[key]):
            return f"other work: {key} is {a[key]} in A, {b[key]} in B", False
    return "", False


def _warnings(a: Run, b: Run, named: Labels) -> list[str]:
    found = []
    for key, what in (("machine_id", "machines"), ("versions", "versions of packages")):
        one, two = a.record.get(key), b.record.get(key)
        if one is None or two is None:
            continue
        if one != two:
            found.append(f"the runs were made with different {what}" + _differing(one, two))
    one, two = (run.record.get("environments", {}) for run in (a, b))
    for name in [name for name in one if name in two]:
        own, other = one[name]["versions"], two[name]["versions"]
        if own != other:
            found.append(f"environment '{name}' had other versions" + _differing(own, other))
    return found + _doubts(a, b, named)


def _doubts(a: Run, b: Run, named: Labels) -> list[str]:
    return [
        f"{name}: the time of {named.of(row)} is in doubt: {row['doubtful']}"
        for name, run in (("A", a), ("B", b))
        for row in run.cells
        if row.get("doubtful")
    ]


def _differing(one: Any, two: Any) -> str:
    if not isinstance(one, dict):
        return ""
    names = sorted(k for k in one.keys() | two.keys() if one.get(k) != two.get(k))
    return f" ({', '.join(f'{n}: {one.get(n)}, {two.get(n)}' for n in names)})"
