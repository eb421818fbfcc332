"""What a folder of results says of each claim: by intervals, never by a number alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gnnbench.claims.across import ACROSS, COMMAND
from gnnbench.claims.causes import rates_here
from gnnbench.claims.claim import Bounds, Claim, Point
from gnnbench.claims.evidence import MEASURED, Opened, couples, graph_of, pools, select, steps
from gnnbench.claims.formulas import FORMULAS
from gnnbench.claims.inside import pooled
from gnnbench.claims.measures import MEASURES, TIMED, TIMES, time_ratio
from gnnbench.measure.rule import Rule
from gnnbench.measure.stats import Estimate

HOLDS, SHAPE, UNCLEAR, REFUTED = "holds", "holds in shape", "unclear", "refuted"
NOT_CHECKABLE, ILL_POSED, NOT_MEASURED = "not checkable here", "ill-posed", "not measured"
VERDICTS = {
    HOLDS: "every interval lies wholly within what the claim allows",
    SHAPE: "the order is right and the size is not; or it is right on a twin, not on the graph",
    UNCLEAR: "an interval reaches across a bound, a time is doubtful, or there is no interval",
    REFUTED: "an interval lies wholly outside",
    NOT_CHECKABLE: "one machine with one GPU cannot tell; the reason says what it would take",
    ILL_POSED: "the paper contradicts itself, or does not say what would be measured",
    NOT_MEASURED: "no result in the folder; the reason has the command, or what is not built yet",
}
TWIN = "~twin"
_ANY = (-math.inf, math.inf)  # of a point of which only the mean with others is claimed
# From the best to the worst that points can come to: of all, the worst counts; of "up to" the best,
# where one that is unclear may reach what others have not.
_OF_ALL = (HOLDS, SHAPE, UNCLEAR, REFUTED)
_OF_THE_BEST = (HOLDS, UNCLEAR, SHAPE, REFUTED)
Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A number that was measured for one point, and what it comes to by itself."""

    what: str
    estimate: Estimate
    expected: Bounds
    number: Any
    verdict: str
    reason: str
    opened: Opened | None = None
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, why, and the numbers that it rests on."""

    claim: Claim
    verdict: str
    reason: str
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class _Number:
    """An estimate with a doubt of its own, or "", and the rows that it is of."""

    estimate: Estimate
    doubt: str
    rows: tuple[Row, ...]


def judge(claims: Iterable[Claim], runs: Sequence[Opened]) -> list[Judged]:
    """Judge claims by runs, the oldest first: of a cell measured twice on a machine the last."""
    return [_judge(claim, runs) for claim in claims]


def _judge(claim: Claim, runs: Sequence[Opened]) -> Judged:
    if claim.verdict:
        return Judged(claim, claim.verdict, claim.because)
    if claim.lacks:
        return Judged(claim, NOT_MEASURED, claim.lacks)
    found: list[Finding] = []
    missing: list[str] = []
    for point in claim.numbers():
        own = _computed(claim, point) if point.measure in FORMULAS else _found(claim, point, runs)
        found += own
        if not own:
            missing.append(_why_not(claim, point, runs))
    if not found or (missing and claim.kind == "mean"):
        return Judged(claim, NOT_MEASURED, missing[0], found)
    verdict, reason = _together(claim, found)
    # One point is enough to refute, but what is claimed of the best of all, which one can show.
    decided = HOLDS if claim.kind == "upto" else REFUTED
    if missing and verdict != decided:
        verdict, reason = UNCLEAR, f"not all of it is measured: {missing[0]}"
    verdict, reason = _of_the_graph(claim, found, verdict, reason)
    if verdict == REFUTED and claim.of_a_machine:
        verdict, reason = UNCLEAR, f"{reason}; but this size is one of the paper's machine"
    if verdict == REFUTED and claim.measure in ACROSS and ACROSS[claim.measure].of_time:
        verdict, reason = UNCLEAR, f"{reason}; but emulated machines share their cores"
    if verdict == REFUTED and claim.cause:
        reason = "; ".join(filter(None, (reason, rates_here(claim.paper, found[0].opened, runs))))
    return Judged(claim, verdict, reason, found)


def _computed(claim: Claim, point: Point) -> list[Finding]:
    value = FORMULAS[point.measure](*point.arguments)
    words = f"{point.measure}({', '.join(map(str, point.arguments))})"
    return [_finding(claim, point, words, _Number(Estimate(value, value, value, 1), "", ()), None)]


def _found(claim: Claim, point: Point, runs: Sequence[Opened]) -> list[Finding]:
    found: dict[tuple[str, ...], Finding] = {}
    for opened in runs:
        for number in _numbers(claim, point, opened):
            if not number.estimate.n and not number.doubt:
                continue
            ids = tuple(r["id"] for r in number.rows)
            names = [r.get("words") or opened.named.of(r) for r in number.rows]
            told = {"ratio": " over ", "difference": " less "}.get(point.by, ", ").join(names)
            found[(opened.machine, *ids)] = _finding(claim, point, told, number, opened)
    return list(found.values())


def _numbers(claim: Claim, point: Point, opened: Opened) -> Iterable[_Number]:
    if point.measure in ACROSS:
        for found in ACROSS[point.measure].numbers(opened, point.of, point.beside, point.rows):
            yield _Number(*found)
        return
    if point.along and point.beside:
        yield from _growth(claim, point, opened)
        return
    first = _rows(claim, point, opened, point.of)
    if point.along:
        pairs = steps(first, point.along, point.along_with)
    elif point.beside:
        second = _rows(claim, point, opened, point.beside, point.beside_rows)
        pairs = couples(first, second, (point.of, point.beside), point.beside_rows)
    elif point.over:
        for pool in pools(first, point.over):
            if len(pool) < 2:  # one alone tells nothing of how they differ
                continue
            doubt = next(filter(None, (_doubt(point, row) for row in pool)), "")
            each = [MEASURES[point.measure](opened, row) for row in pool]
            yield _Number(pooled(each), doubt, tuple(pool))
        return
    else:
        for row in first:
            doubt = _doubt(point, row)
            yield _Number(MEASURES[point.measure](opened, row), doubt, (row,))
        return
    for a, b in pairs:
        doubt = _doubt(point, a) or _doubt(point, b)
        if point.measure in TIMES:
            estimate, own = time_ratio(opened, a, b, point.measure)
            if estimate.n or own:  # else the two did not run beside one another
                yield _Number(estimate, doubt or own, (a, b))
        else:
            mine, other = (MEASURES[point.measure](opened, row) for row in (a, b))
            yield _Number(_of_two(mine, other, point.by), doubt, (a, b))


def _growth(claim: Claim, point: Point, opened: Opened) -> Iterable[_Number]:
    """Ratios of couples, each over that of the couple one step earlier along an axis."""
    ratios = list(_numbers(claim, point.model_copy(update={"along": ""}), opened))
    of: dict[str, list[_Number]] = {}
    for number in ratios:
        of.setdefault(number.rows[0]["id"], []).append(number)
    firsts = list({number.rows[0]["id"]: number.rows[0] for number in ratios}.values())
    for later, earlier in steps(firsts, point.along, point.along_with):
        for a, b in product(of[later["id"]], of[earlier["id"]]):
            if steps([a.rows[1], b.rows[1]], point.along, point.along_with):
                grown = _of_two(a.estimate, b.estimate, "ratio")
                yield _Number(grown, a.doubt or b.doubt, (*a.rows, *b.rows))


def _rows(
    claim: Claim, point: Point, opened: Opened, label: str, but: Row | None = None
) -> list[Row]:
    return [r for r in _named(claim, point, opened, label, but) if r["status"] in MEASURED]


def _named(
    claim: Claim, point: Point, opened: Opened, label: str, but: Row | None = None
) -> list[Row]:
    """Rows of the experiments that the claim names, whatever their status."""
    wanted = {**({"device": claim.device} if claim.device else {}), **point.rows, **(but or {})}
    experiments = {run.partition(" ")[0] for run in claim.runs}
    found = select(opened, label, wanted, point.nodes, point.full_batch)
    return [r for r in found if r["experiment"] in experiments]


def _doubt(point: Point, row: Row) -> str:
    """Why a row's times are not to be trusted, where the number is made of them."""
    if point.measure not in TIMED and point.measure not in TIMES:
        return ""
    return str(row["doubtful"] or (row["reason"] if row["status"] == "unstable" else ""))


def _of_two(a: Estimate, b: Estimate, by: str) -> Estimate:
    """Of independent numbers, end against end: never narrower than it is."""
    n = min(a.n, b.n)
    if by == "difference":
        return Estimate(a.value - b.value, a.low - b.high, a.high - b.low, n)
    if not (b.value > 0 and (math.isnan(b.low) or b.low > 0)):
        return Estimate(math.nan, math.nan, math.nan, n)
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low, n)


def _finding(
    claim: Claim, point: Point, what: str, number: _Number, opened: Opened | None
) -> Finding:
    expected = _ANY if claim.kind == "mean" else point.expected(claim.kind)
    time = point.measure in TIMES or (point.measure in ACROSS and ACROSS[point.measure].of_time)
    verdict, reason = place(number.estimate, expected, claim.shape, number.doubt, time)
    return Finding(
        what, number.estimate, expected, point.number, verdict, reason, opened, number.rows
    )


def place(
    found: Estimate, expected: Bounds, shape: Bounds | None, doubt: str = "", time: bool = False
) -> tuple[str, str]:
    """Where an interval lies, and why it tells nothing where it does not."""
    if doubt:
        return UNCLEAR, doubt
    if math.isnan(found.low) or math.isnan(found.high):
        return UNCLEAR, "a single epoch or process has no interval"
    if _within(found, expected, time):
        return HOLDS, ""
    if _beyond(found, expected, time):
        if shape is None or _beyond(found, shape, time):
            return REFUTED, "the interval lies outside of what the claim allows"
        if _within(found, shape, time):
            return SHAPE, "the order is right, the size is not"
    return UNCLEAR, "the interval reaches across a bound of the claim"


def _within(found: Estimate, bounds: Bounds, time: bool) -> bool:
    low, high = bounds
    if time and 1.0 in bounds:
        return (low != 1 or _called(found) == "faster") and (
            high != 1 or _called(found) == "slower"
        ) and low <= found.low and found.high <= high  # fmt: skip
    return low <= found.low and found.high <= high


def _beyond(found: Estimate, bounds: Bounds, time: bool) -> bool:
    low, high = bounds
    if time and low == 1 and found.high < 1:
        return _called(found) == "slower"
    if time and high == 1 and found.low > 1:
        return _called(found) == "faster"
    return found.high < low or found.low > high


def _called(found: Estimate) -> str:
    """The suite's own verdict of a ratio of times: equals are neither above 1 nor below."""
    value, low, high = (math.log(v) for v in (found.value, found.low, found.high))
    return Rule().called_by(Estimate(value, low, high, found.n))


def _together(claim: Claim, found: list[Finding]) -> tuple[str, str]:
    if claim.kind == "mean":
        return _mean(claim, found)
    if claim.kind == "upto":
        chosen = min(found, key=lambda f: _OF_THE_BEST.index(f.verdict))
    else:
        chosen = max(found, key=lambda f: _OF_ALL.index(f.verdict))
    return chosen.verdict, f"{chosen.what}: {chosen.reason}" if chosen.reason else ""


def _mean(claim: Claim, found: list[Finding]) -> tuple[str, str]:
    """The points' mean, its ends those of means of their ends: as if all erred alike."""
    if doubtful := next((f for f in found if f.verdict == UNCLEAR), None):
        return UNCLEAR, f"{doubtful.what}: {doubtful.reason}"
    n = len(found)
    value, low, high = (
        sum(getattr(f.estimate, end) for f in found) / n for end in ("value", "low", "high")
    )
    whole = Estimate(value, low, high, n)
    expected = claim.expected(claim.kind)
    return place(whole, expected, claim.shape, time=claim.measure in TIMES)


def _of_the_graph(claim: Claim, found: list[Finding], verdict: str, reason: str) -> tuple[str, str]:
    """A number of a graph that a twin gave is one of the twin."""
    names = [str(r["dataset"]) for f in found for r in f.rows if TWIN in str(r["dataset"])]
    if not claim.of_graph or not names or verdict not in (HOLDS, REFUTED):
        return verdict, reason
    graphs = dict.fromkeys(map(graph_of, names))
    if verdict == REFUTED:
        return UNCLEAR, f"{reason}; but on a twin of {', '.join(graphs)}, not on the graph itself"
    fitted = [g for g in graphs if g in claim.fitted]
    how = f"; that of {', '.join(fitted)} was fitted to this very number" if fitted else ""
    return SHAPE, f"on a twin of {', '.join(graphs)}{how}"


def _why_not(claim: Claim, point: Point, runs: Sequence[Opened]) -> str:
    """Why there is no number, and the command that would have it."""
    if point.measure in ACROSS:
        return f"no result of it; '{COMMAND}' measures it, as root"
    for opened in reversed(runs):
        for label, but in ((point.of, {}), (point.beside, point.beside_rows)):
            rows = _named(claim, point, opened, label, but) if label else []
            failed = [r for r in rows if r["status"] not in MEASURED]
            if failed and len(failed) == len(rows):
                return f"'{label}' ended as {failed[0]['status']}: {failed[0]['reason']}"
    run = next((r for r in claim.runs if not r.endswith(" smoke")), claim.runs[0])
    command = f"gnnbench run {run.replace(' ', ' --profile ')}"
    where = " on a GPU" if claim.device == "cuda" else ""
    return f"no result of it; '{command}' measures it{where}"
