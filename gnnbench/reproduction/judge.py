"""What a folder of results says of each claim: by intervals, never by a number alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gnnbench.analysis.compare import package_versions
from gnnbench.core.units import plural
from gnnbench.reproduction.causes import rates_here
from gnnbench.reproduction.cell_internals import pooled
from gnnbench.reproduction.claim import Bounds, Claim, Point
from gnnbench.reproduction.evidence import MEASURED, Opened, graph_of, select
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.groups import Group, equal, groups, unlike
from gnnbench.reproduction.interval import judge_interval
from gnnbench.reproduction.measures import GAINS, MEASURES, OF_PHASES, TIMED, overlaps
from gnnbench.reproduction.multi_machine import ACROSS, COMMAND
from gnnbench.reproduction.planned import PLANNED, beside, stopped
from gnnbench.reproduction.times import TIMES, time_ratio
from gnnbench.reproduction.verdict import (
    HOLDS,
    NOT_CHECKABLE,
    NOT_MEASURED,
    REFUTED,
    SHAPE,
    UNCLEAR,
)
from gnnbench.statistics.estimates import Estimate
from gnnbench.statistics.stopping_rule import MIN_PAIRS

TWIN = "~twin"
OF_HARDWARE = "absolute sizes depend on the paper's hardware"
_ANY = (-math.inf, math.inf)  # of a point of which only the mean with others is claimed
# From the best to the worst that points can come to: of all, the worst counts; of "up to" the best,
# where one that is unclear may reach what others have not.
_OF_EVERY = ("order", "range", "mean", "upto")  # of a grid: a value or a bound is told by each cell
_OF_ALL = (HOLDS, SHAPE, UNCLEAR, REFUTED)
_OF_THE_BEST = (HOLDS, UNCLEAR, SHAPE, REFUTED)
Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A number that was measured for one point, and what it comes to by itself.

    ``place`` is that of the point among its claim's.
    """

    what: str
    estimate: Estimate
    expected: Bounds
    number: Any
    verdict: str
    reason: str
    opened: Opened | None = None
    rows: tuple[Row, ...] = ()
    group: Group | None = None
    place: int = 0


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
    group: Group | None = None


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
    points = 0
    for place, point in enumerate(claim.numbers()):
        if point.measure in FORMULAS:
            own, left = _computed(claim, point), Left(1)
        else:
            own = _found(claim, point, runs)
            left = _left(claim, point, runs, own)
        found += [replace(finding, place=place) for finding in own]
        points += left.points
        missing += left.missing
    if not found:
        able = claim.gpus <= max([1, *(opened.gpus for opened in runs)])
        verdict = NOT_MEASURED if able else NOT_CHECKABLE
        return Judged(claim, verdict, _also(missing[0], _passed_over(claim, runs)), found)
    verdict, reason = _together(claim, found)
    # One point is enough to refute, but what is claimed of the best of all, which one can show.
    decided = HOLDS if claim.kind == "upto" else REFUTED
    if missing and (verdict != decided or claim.kind == "mean"):
        some = f"{points - len(missing)} of {points} points measured"
        verdict, reason = UNCLEAR, f"{some}: {missing[0]}"
    elif claim.cells > (cells := points // len(claim.numbers())) and verdict in (HOLDS, SHAPE):
        some = f"at {cells} of the paper's {claim.cells} cells"
        reason = _also(reason, some)
    verdict, reason = _of_the_graph(claim, found, verdict, reason)
    if verdict == REFUTED and claim.of_a_machine:
        verdict, reason = UNCLEAR, f"{reason}, but {OF_HARDWARE}"
    if verdict == REFUTED and claim.measure in ACROSS and ACROSS[claim.measure].of_time:
        verdict, reason = UNCLEAR, f"{reason}, but emulated machines share their cores"
    if verdict == REFUTED and claim.cause:
        reason = _also(reason, rates_here(claim.paper, found[0].opened, runs))
    return Judged(claim, verdict, _also(reason, _passed_over(claim, runs)), found)


def _also(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _passed_over(claim: Claim, runs: Sequence[Opened]) -> str:
    """How many cells have no number for that their phases overlap; "" where none."""
    there = {
        (opened.machine, row["id"])
        for point in claim.numbers()
        if point.measure in OF_PHASES
        for opened in runs
        for label, but in ((point.of, {}), (point.beside, point.beside_rows))
        for row in (_measured(claim, point, opened, label, but) if label else ())
        if overlaps(opened, row)
    }
    return f"{plural(len(there), 'cell')} left out because phases overlap" if there else ""


def _computed(claim: Claim, point: Point) -> list[Finding]:
    value = FORMULAS[point.measure](*point.arguments)
    words = f"{point.measure}({', '.join(map(str, point.arguments))})"
    return [_finding(claim, point, words, _Number(Estimate(value, value, value, 1), "", ()), None)]


def _found(claim: Claim, point: Point, runs: Sequence[Opened]) -> list[Finding]:
    found: list[Finding] = []
    for opened in runs:
        own = [
            _finding(claim, point, _told(point, number.rows, opened), number, opened)
            for number in _numbers(claim, point, opened)
            if number.estimate.n or (number.doubt and point.measure in TIMES)
        ]
        found = [f for f in found if not any(_again(f, new, point) for new in own)] + own
    as_there = [f for f in found if not any(_unlike_paper(point, r) for r in f.rows)]
    return as_there or found


def _again(before: Finding, after: Finding, point: Point) -> bool:
    """Whether a later run measured the same on the same machine, whichever version of the suite."""
    if before.opened is None or after.opened is None:
        return False
    if before.opened.machine != after.opened.machine:
        return False
    if [r["id"] for r in before.rows] == [r["id"] for r in after.rows]:
        return True
    if before.group is None or after.group is None:
        return False
    return equal(before.group, after.group, {"max_batches", *filter(None, [point.over])})


def _told(point: Point, rows: Iterable[Row], opened: Opened) -> str:
    """What a number is of, in words."""
    names = [r.get("words") or opened.named.of(r) for r in rows]
    return {"ratio": " over ", "difference": " less "}.get(point.by, ", ").join(names)


def _numbers(claim: Claim, point: Point, opened: Opened) -> Iterable[_Number]:
    if point.measure in ACROSS:
        for estimate, doubt, told in ACROSS[point.measure].numbers(
            opened, point.of, point.beside, point.rows
        ):
            yield _Number(estimate, doubt, told)
        return
    for group in groups(point, partial(_measured, claim, point, opened)):
        found = _number(point, opened, group)
        if found is not None:
            yield found


def _number(point: Point, opened: Opened, group: Group) -> _Number | None:
    """The number of cells that were measured; None where two did not run beside one another."""
    doubt = next(filter(None, (_doubt(point, row) for side in group.sides for row in side)), "")
    if group.earlier is not None:
        later = _number(point, opened, Group(group.first, group.second))
        before = _number(point, opened, group.earlier)
        if later is None or before is None:
            return None
        grown = _of_two(later.estimate, before.estimate, point.by)
        doubt = later.doubt or before.doubt
        return _Number(grown, doubt, group.rows(), group)
    if point.measure in TIMES:
        a, b = group.first[0], group.second[0]
        estimate, own = time_ratio(opened, a, b, point.measure)
        known = estimate.n or own
        return _Number(estimate, doubt or own, (a, b), group) if known else None
    mine = _value(point, opened, group.first)
    if group.second:
        mine = _of_two(mine, _value(point, opened, group.second), point.by)
    return _Number(mine, doubt, group.rows(), group)


def _value(point: Point, opened: Opened, rows: Sequence[Row]) -> Estimate:
    each = [MEASURES[point.measure](opened, row) for row in rows]
    return pooled(each) if point.over else each[0]


@dataclass(frozen=True)
class Left:
    """How many points a run was to measure, and of each that it did not why."""

    points: int
    missing: list[str] = field(default_factory=list)


def _left(claim: Claim, point: Point, runs: Sequence[Opened], found: list[Finding]) -> Left:
    """Of all numbers that the runs were to measure those that none of them has."""
    free = {"threads", "max_batches", *filter(None, [point.over])}
    there = unlike((f.group for f in found if f.group is not None), free)
    missing: list[tuple[Group, str]] = []
    if claim.kind in _OF_EVERY and point.measure not in ACROSS:
        for opened in runs:
            for group, why in _unmeasured(claim, point, opened):
                known = [*there, *(g for g, _ in missing)]
                if not any(equal(group, g, free) for g in known):
                    missing.append((group, f"{_told(point, group.rows(), opened)}: {why}"))
    lost = [f.opened.unplanned for f in found if f.opened is not None and f.opened.unplanned]
    lost = lost if claim.kind in _OF_EVERY else []
    reasons = [why for _, why in missing] + lost[:1]
    if not found:
        reasons = [_why_not(claim, point, runs)]
    return Left(max(len(there), bool(found)) + len(reasons), reasons)


def _unmeasured(claim: Claim, point: Point, opened: Opened) -> Iterable[tuple[Group, str]]:
    """Groups that a run was to measure and did not, each with the reason."""
    for group in groups(point, partial(_planned, claim, point, opened)):
        if any(_unlike_paper(point, row) for row in group.rows()):
            continue
        rows = [row for side in group.sides for row in side]
        failed = [row for row in rows if row["status"] not in MEASURED]
        if point.measure in TIMES:
            couples = [Group(group.first, group.second), *filter(None, [group.earlier])]
            if not all(beside(opened.run, c.first[0], c.second[0]) for c in couples):
                continue
            if not failed and stopped(opened.run) and _number(point, opened, group) is None:
                yield group, "its run was stopped before measuring it"
        if failed:
            told = {PLANNED: ""}.get(failed[0]["status"], f"ended as {failed[0]['status']}: ")
            yield group, f"{told}{failed[0]['reason']}"


def _measured(claim: Claim, point: Point, opened: Opened, label: str, but: Row) -> list[Row]:
    return [r for r in _named(claim, point, opened, label, but) if r["status"] in MEASURED]


def _planned(claim: Claim, point: Point, opened: Opened, label: str, but: Row) -> list[Row]:
    """Those that were to be measured: not what is no system at all."""
    return [r for r in _named(claim, point, opened, label, but) if r["status"] != "unsupported"]


def _named(
    claim: Claim, point: Point, opened: Opened, label: str, but: Row | None = None
) -> list[Row]:
    """Rows of the experiments that the claim names, whatever their status."""
    wanted = {**({"device": claim.device} if claim.device else {}), **point.rows, **(but or {})}
    experiments = {run.partition(" ")[0] for run in claim.runs}
    found = select(opened, label, wanted, point.nodes, point.full_batch)
    return [r for r in found if r["experiment"] in experiments]


def _unlike_paper(point: Point, row: Row) -> str:
    """In what a row is not as the paper has it, in words; "" where it is."""
    other = [key for key, value in point.as_printed.items() if row.get(key) != value]
    told = (f"{key} is {row.get(key)}, the paper has {point.as_printed[key]}" for key in other)
    return "; ".join(told)


def _doubt(point: Point, row: Row) -> str:
    """Why a row is not to be judged by: what it was run with, or, of times, what disturbed them."""
    if other := _unlike_paper(point, row):
        return other
    if point.measure not in TIMED and point.measure not in TIMES:
        return ""
    if point.measure in GAINS and (row["pairs"] or 0) < MIN_PAIRS:
        return f"fewer than {MIN_PAIRS} pairs of fresh processes"
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
    verdict, reason = judge_interval(number.estimate, expected, claim.shape, number.doubt, time)
    return Finding(
        what, number.estimate, expected, point.number, verdict, reason, opened, number.rows,
        number.group,
    )  # fmt: skip


def _together(claim: Claim, found: list[Finding]) -> tuple[str, str]:
    if claim.kind == "mean":
        return _mean(claim, found)
    if claim.kind == "upto":
        chosen = min(found, key=lambda f: _OF_THE_BEST.index(f.verdict))
    else:
        chosen = max(found, key=lambda f: _OF_ALL.index(f.verdict))
    return chosen.verdict, f"{chosen.what}: {chosen.reason}" if chosen.reason else ""


def _mean(claim: Claim, found: list[Finding]) -> tuple[str, str]:
    """The points' mean. Times of two machines or package versions are not pooled: each pool has a
    mean, and the worst counts."""
    if claim.measure not in TIMED and claim.measure not in TIMES:
        return _mean_of(claim, found)
    verdicts = [_mean_of(claim, pool) for pool in _pools(found)]
    return max(verdicts, key=lambda verdict: _OF_ALL.index(verdict[0]))


def _pools(found: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one machine whose packages have the same versions, together."""
    pools: list[tuple[str, dict[str, str], list[Finding]]] = []
    for finding in found:
        opened = finding.opened
        versions: dict[str, str] = {}
        if opened is not None:
            for row in finding.rows:
                versions |= package_versions(row, opened.run)
        machine = "" if opened is None else opened.machine
        for where, known, pool in pools:
            if where == machine and all(known.get(k, v) == v for k, v in versions.items()):
                known.update(versions)
                pool.append(finding)
                break
        else:
            pools.append((machine, versions, [finding]))
    return [pool for _, _, pool in pools]


def _mean_of(claim: Claim, found: list[Finding]) -> tuple[str, str]:
    """The points' mean, its ends those of means of their ends: as if all erred alike."""
    if doubtful := next((f for f in found if f.verdict == UNCLEAR), None):
        return UNCLEAR, f"{doubtful.what}: {doubtful.reason}"
    n = len(found)
    value, low, high = (
        sum(getattr(f.estimate, end) for f in found) / n for end in ("value", "low", "high")
    )
    whole = Estimate(value, low, high, n)
    expected = claim.expected(claim.kind)
    return judge_interval(whole, expected, claim.shape, time=claim.measure in TIMES)


def _of_the_graph(claim: Claim, found: list[Finding], verdict: str, reason: str) -> tuple[str, str]:
    """A number of a graph that a twin gave is one of the twin."""
    names = [str(r["dataset"]) for f in found for r in f.rows if TWIN in str(r["dataset"])]
    if not claim.of_graph or not names or verdict not in (HOLDS, REFUTED):
        return verdict, reason
    graphs = dict.fromkeys(map(graph_of, names))
    if verdict == REFUTED:
        return UNCLEAR, f"{reason}, but on a twin of {', '.join(graphs)}, not on the graph itself"
    fitted = [g for g in graphs if g in claim.fitted]
    how = f"; the twin of {', '.join(fitted)} was fitted to this number" if fitted else ""
    return SHAPE, f"on a twin of {', '.join(graphs)}{how}"


def _why_not(claim: Claim, point: Point, runs: Sequence[Opened]) -> str:
    """Why there is no number, and the command that would have it."""
    if point.measure in ACROSS:
        return f"run '{COMMAND}' as root"
    for opened in reversed(runs):
        for label, but in ((point.of, {}), (point.beside, point.beside_rows)):
            rows = _named(claim, point, opened, label, but) if label else []
            failed = [r for r in rows if r["status"] not in (*MEASURED, PLANNED)]
            if failed and len(failed) == len(rows):
                return f"'{label}' ended as {failed[0]['status']}: {failed[0]['reason']}"
    run = next((r for r in claim.runs if not r.endswith(" smoke")), claim.runs[0])
    command = f"gnnbench run {run.replace(' ', ' --profile ')}"
    where = " on a GPU" if claim.device == "cuda" else ""
    if claim.gpus > 1:
        return f"needs {claim.gpus} GPUs; run '{command}' on them"
    return f"run '{command}'{where}"
