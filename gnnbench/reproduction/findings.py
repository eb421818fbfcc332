"""The numbers that runs have for a point of a claim, each with its own verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gnnbench.analysis.compare import other_conditions
from gnnbench.reproduction.claim import Bounds, Claim, ClaimPoint
from gnnbench.reproduction.claim_rows import claim_rows, difference_from_paper, doubt_of
from gnnbench.reproduction.evidence import MEASURED, RunEvidence
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.group_labels import JOINTS, group_label, marked_name
from gnnbench.reproduction.groups import CellGroup, equal, groups
from gnnbench.reproduction.interval import judge_interval
from gnnbench.reproduction.interval_arithmetic import combined, mean_over_cells
from gnnbench.reproduction.measures import MEASURES
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES
from gnnbench.reproduction.old_words import in_current_terms
from gnnbench.reproduction.time_ratios import TIME_MEASURES, time_ratio
from gnnbench.schema import CellRow
from gnnbench.statistics.estimates import Estimate

UNBOUNDED: Bounds = (-math.inf, math.inf)  # only the mean of several points is claimed


@dataclass(frozen=True)
class Finding:
    """A number for one point of a claim, and the verdict that it would give alone.

    ``label`` has the cells, with names between backticks, ``expected`` is the claimed range, and
    ``point_index`` counts the claim's points. A number computed by a formula has no ``evidence``.
    ``is_time``: it is a ratio of times, so that the suite's own rule says what is faster.
    ``doubt``: why it is unreliable.
    """

    label: str
    estimate: Estimate
    expected: Bounds
    verdict: str
    reason: str
    evidence: RunEvidence | None = None
    rows: tuple[CellRow, ...] = ()
    group: CellGroup | None = None
    point_index: int = 0
    is_time: bool = False
    doubt: str = ""


@dataclass(frozen=True)
class PointEstimate:
    """An estimate, a reason to doubt it or "", and the rows that it comes from."""

    estimate: Estimate
    doubt: str
    rows: tuple[CellRow, ...]
    group: CellGroup | None = None


def computed_findings(claim: Claim, point: ClaimPoint) -> list[Finding]:
    """The number of a formula."""
    value = FORMULAS[point.measure](*point.arguments)
    label = f"`{point.measure}({', '.join(map(str, point.arguments))})`"
    number = PointEstimate(Estimate(value, value, value, 1), "", ())
    return [_finding(claim, point, label, number, None)]


def measured_findings(
    claim: Claim, point: ClaimPoint, runs: Sequence[RunEvidence]
) -> list[Finding]:
    """All numbers of a point, runs in order.

    Ratios of times that several runs of a machine measured are pooled, so that repeating a run
    until a claim holds does not help. Of other numbers, and of ratios that cannot be pooled, the
    latest reliable one counts. An unreliable number is left out where another machine has a
    reliable one of the same cells. Where some rows have the paper's setting, the others are left
    out.
    """
    repeats: list[list[Finding]] = []  # the same number of several runs, oldest first
    for evidence in runs:
        own = [
            _finding(claim, point, _label(point, number, evidence), number, evidence)
            for number in _estimates(claim, point, evidence)
            if number.estimate.n or (number.doubt and point.measure in TIME_MEASURES)
        ]
        new_numbers = []
        for new in own:
            same = [known for known in repeats if any(_repeats(new, f, point) for f in known)]
            repeats = [known for known in repeats if not any(known is s for s in same)]
            new_numbers.append([*chain.from_iterable(same), new])
        repeats += new_numbers
    findings = _without_replaced([_of_repeats(claim, known) for known in repeats], point)
    as_printed = [f for f in findings if not any(difference_from_paper(point, r) for r in f.rows)]
    return as_printed or findings


def _of_repeats(claim: Claim, known: Sequence[Finding]) -> Finding:
    """The number that counts of those that several runs measured, oldest first."""
    reliable = [f for f in known if not f.doubt]
    latest = (reliable or known)[-1]
    pool = [f for f in reliable if f is latest or _poolable(latest, f)]
    if not latest.is_time or len(pool) < 2:
        return latest
    return _judged_again(claim, latest, pooled([f.estimate for f in pool]))


def _without_replaced(findings: Sequence[Finding], point: ClaimPoint) -> list[Finding]:
    """The findings without unreliable ones, where another has the same number reliably."""
    reliable = [f for f in findings if not f.doubt]
    return [f for f in findings if not f.doubt or not any(_same(f, r, point) for r in reliable)]


def _repeats(later: Finding, earlier: Finding, point: ClaimPoint) -> bool:
    """Whether both are the same number on the same machine, whatever version measured it."""
    if earlier.evidence is None or later.evidence is None:
        return False
    return earlier.evidence.machine == later.evidence.machine and _same(later, earlier, point)


def _same(later: Finding, earlier: Finding, point: ClaimPoint) -> bool:
    """Whether both are the same number, whatever machine and version measured it."""
    if [r["id"] for r in earlier.rows] == [r["id"] for r in later.rows]:
        return True
    if earlier.group is None or later.group is None:
        return False
    return equal(earlier.group, later.group, {"max_batches", *filter(None, [point.over])})


def _poolable(later: Finding, earlier: Finding) -> bool:
    """Whether both have an interval and the same cells, package versions and GPU model."""
    if later.evidence is None or earlier.evidence is None:
        return False
    if later.group is None or not all(f.estimate.low > 0 for f in (later, earlier)):
        return False
    if [r["id"] for r in earlier.rows] != [r["id"] for r in later.rows]:
        return False
    return not any(
        other_conditions(a, b, earlier.evidence.run, later.evidence.run)
        for a, b in zip(earlier.rows, later.rows, strict=True)
    )


def _judged_again(claim: Claim, finding: Finding, estimate: Estimate) -> Finding:
    """The finding with another estimate."""
    verdict, reason = judge_interval(
        estimate, finding.expected, claim.shape_bounds, is_time=finding.is_time
    )
    return replace(finding, estimate=estimate, verdict=verdict, reason=reason)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """Pool the ratios of times of several runs: geometric mean, weighted by pairs.

    Runs of a machine differ by more than their pairs explain, and a few runs do not determine by
    how much. So pooling does not narrow the interval: it is as wide as that of an average run, and
    it contains the value of every run. In simulations with 5 pairs a run it covers the true value
    in 98 % of the pools of two runs that differ by as much as their standard errors.
    """
    n = sum(e.n for e in estimates)
    shares = [e.n / n for e in estimates]
    logs = [math.log(e.value) for e in estimates]
    middle = sum(s * v for s, v in zip(shares, logs, strict=True))
    squares = [(math.log(e.high / e.low) / 2) ** 2 for e in estimates]
    average = math.sqrt(sum(s * v for s, v in zip(shares, squares, strict=True)))
    half = max(average, *(abs(v - middle) for v in logs))
    return Estimate(math.exp(middle), math.exp(middle - half), math.exp(middle + half), n)


def _label(point: ClaimPoint, number: PointEstimate, evidence: RunEvidence) -> str:
    if number.group is not None:
        return group_label(point, number.group, evidence)
    names = [marked_name(row.id) for row in number.rows]  # systems of several machines
    return JOINTS.get(point.by, ", ").join(names)


def _estimates(claim: Claim, point: ClaimPoint, evidence: RunEvidence) -> Iterator[PointEstimate]:
    if point.measure in MULTI_MACHINE_MEASURES:
        for estimate, doubt, rows in MULTI_MACHINE_MEASURES[point.measure].estimates(
            evidence, point.of, point.versus, point.rows
        ):
            yield PointEstimate(estimate, doubt, rows)
        return
    for group in groups(point, partial(claim_rows, claim, point, evidence, statuses=MEASURED)):
        number = point_estimate(point, evidence, group)
        if number is not None:
            yield number


def point_estimate(
    point: ClaimPoint, evidence: RunEvidence, group: CellGroup
) -> PointEstimate | None:
    """The number of a group of measured cells; None for times of cells that were not paired."""
    doubt = next(filter(None, (doubt_of(point, row) for side in group.sides for row in side)), "")
    if group.earlier is not None:
        later = point_estimate(point, evidence, CellGroup(group.first, group.second))
        earlier = point_estimate(point, evidence, group.earlier)
        if later is None or earlier is None:
            return None
        growth = combined(later.estimate, earlier.estimate, point.by)
        return PointEstimate(growth, later.doubt or earlier.doubt, group.rows(), group)
    if point.measure in TIME_MEASURES:
        a, b = group.first[0], group.second[0]
        estimate, ratio_doubt = time_ratio(evidence, a, b, point.measure)
        if not estimate.n and not ratio_doubt:
            return None
        return PointEstimate(estimate, doubt or ratio_doubt, (a, b), group)
    value = _value(point, evidence, group.first)
    if group.second:
        value = combined(value, _value(point, evidence, group.second), point.by)
    return PointEstimate(value, doubt, group.rows(), group)


def _value(point: ClaimPoint, evidence: RunEvidence, rows: Sequence[CellRow]) -> Estimate:
    estimates = [MEASURES[point.measure](evidence, row) for row in rows]
    return mean_over_cells(estimates) if point.over else estimates[0]


def _finding(
    claim: Claim,
    point: ClaimPoint,
    label: str,
    number: PointEstimate,
    evidence: RunEvidence | None,
) -> Finding:
    doubt = in_current_terms(number.doubt)
    expected = UNBOUNDED if claim.kind == "mean" else point.expected(claim.kind)
    several = MULTI_MACHINE_MEASURES.get(point.measure)
    is_time = point.measure in TIME_MEASURES or (several is not None and several.is_time)
    verdict, reason = judge_interval(number.estimate, expected, claim.shape_bounds, doubt, is_time)
    return Finding(
        label, number.estimate, expected, verdict, reason, evidence, number.rows, number.group,
        is_time=is_time, doubt=doubt,
    )  # fmt: skip
