"""The verdict of several numbers of one claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gnnbench.analysis.compare import package_versions
from gnnbench.core.units import plural
from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.interval import ON_A_BOUND, OUTSIDE, judge_interval
from gnnbench.reproduction.measures import TIME_DEPENDENT
from gnnbench.reproduction.number_text import estimate, number, unit_of
from gnnbench.reproduction.open_numbers import bounds_in, reason_of
from gnnbench.reproduction.time_ratios import TIME_MEASURES
from gnnbench.reproduction.verdict import HOLDS, REFUTED, SHAPE, UNCLEAR
from gnnbench.statistics.estimates import Estimate, t_quantile

# From the best verdict to the worst. The worst number decides, except for "up to": there the best
# decides, and an unclear number may reach what the others do not.
_WORST_DECIDES = (HOLDS, SHAPE, UNCLEAR, REFUTED)
_BEST_DECIDES = (HOLDS, UNCLEAR, SHAPE, REFUTED)


def combined_verdict(claim: Claim, findings: Sequence[Finding]) -> tuple[str, str]:
    """Verdict and reason of all numbers of a claim together."""
    if claim.kind == "mean":
        return _of_mean(claim, findings)
    if claim.kind == "upto":
        decisive = min(findings, key=_distance_from_best)
        reversed_point = _reversed_point(findings) if decisive.verdict == SHAPE else None
        decisive = reversed_point or decisive
    else:
        decisive = max(findings, key=lambda f: (_WORST_DECIDES.index(f.verdict), _gap(f)))
    if decisive.verdict == decided_by_one(claim) and not _any_stands_alone(claim, findings):
        chance = _maybe_chance(claim, decisive, findings)
        return UNCLEAR, f"{_named(claim, decisive, findings)}: {chance}"
    if claim.has_words and decisive.reason == OUTSIDE:  # the two words say it
        return decisive.verdict, ""
    reason = reason_of(claim, decisive)
    return decisive.verdict, f"{_named(claim, decisive, findings)}: {reason}" if reason else ""


def _distance_from_best(finding: Finding) -> tuple[int, float]:
    """Orders numbers from the best verdict to the worst; of equal verdicts the largest is first."""
    value = finding.estimate.value
    return _BEST_DECIDES.index(finding.verdict), math.inf if math.isnan(value) else -value


def _reversed_point(findings: Sequence[Finding]) -> Finding | None:
    """The plainest number of a point whose numbers all reverse the order, if there is one."""
    points: dict[int, list[Finding]] = {}
    for finding in findings:
        points.setdefault(finding.point_index, []).append(finding)
    reversed_points = [own for own in points.values() if {f.verdict for f in own} == {REFUTED}]
    return max((f for own in reversed_points for f in own), key=_gap, default=None)


def _gap(finding: Finding) -> float:
    """How far an interval is from the claimed range, relative to the bound; 0 if they touch."""
    low, high = finding.expected
    estimate = finding.estimate
    return max(
        (low - estimate.high) / abs(low) if math.isfinite(low) and low else 0.0,
        (estimate.low - high) / abs(high) if math.isfinite(high) and high else 0.0,
        0.0,
    )


def _named(claim: Claim, finding: Finding, findings: Sequence[Finding]) -> str:
    """The label of a number; of several with its value, and with its dataset if these differ.

    An interval that contains a bound is always stated.
    """
    unit = unit_of(claim, claim.claim_points()[finding.point_index])
    if len(findings) == 1:
        is_open = finding.reason == ON_A_BOUND
        return f"{finding.label} ({estimate(finding, unit)})" if is_open else finding.label
    datasets = {str(row["dataset"]) for f in findings for row in f.rows}
    own = list(dict.fromkeys(str(row["dataset"]) for row in finding.rows))
    where = f", {own[0]}" if len(datasets) > 1 == len(own) and own[0] not in finding.label else ""
    return f"{finding.label}{where} ({estimate(finding, unit)})"


def _maybe_chance(claim: Claim, decisive: Finding, findings: Sequence[Finding]) -> str:
    """How many numbers decide alone, of how many, and the interval that would have to decide."""
    by_one = decided_by_one(claim)
    count = sum(f.verdict == by_one for f in findings)
    one_verb, verb = ("reaches", "reach") if by_one == HOLDS else ("contradicts", "contradict")
    few = f"only one of {len(findings)} numbers {one_verb}"
    if count > 1:
        few = f"only {count} of {len(findings)} numbers {verb}"
    unit = unit_of(claim, claim.claim_points()[decisive.point_index])
    wide = replace(decisive, estimate=simultaneous(decisive.estimate, len(findings)))
    bounds = bounds_in(wide.estimate, wide.expected, claim.shape_bounds, unit, wide.is_time)
    return (
        f"{few} it, which may be chance; for {len(findings)} numbers together it is"
        f" {estimate(wide, unit)}, and {bounds}"
    )


def decided_by_one(claim: Claim) -> str:
    """The verdict that one number alone can decide.

    One number confirms an "up to", and one refutes a claim about every point.
    """
    return HOLDS if claim.kind == "upto" else REFUTED


def _any_stands_alone(claim: Claim, findings: Sequence[Finding]) -> bool:
    """Whether one number decides with an interval for as many numbers (Bonferroni)."""
    by_one = decided_by_one(claim)
    return any(
        judge_interval(
            simultaneous(f.estimate, len(findings)), f.expected, claim.shape_bounds,
            is_time=f.is_time,
        )[0] == by_one
        for f in findings if f.verdict == by_one
    )  # fmt: skip


def simultaneous(estimate: Estimate, numbers: int) -> Estimate:
    """Widen a 95 % interval so that ``numbers`` of them hold together with 95 % confidence.

    It has the degrees of freedom of its own samples, without those of a prior: rather too wide.
    """
    degrees = max(estimate.n - 1, 1)
    factor = t_quantile(1 - 0.05 / numbers, degrees) / t_quantile(0.95, degrees)
    value, low, high = estimate.value, estimate.low, estimate.high
    if low > 0:  # a ratio: its logarithm is symmetric
        return Estimate(
            value, value * (low / value) ** factor, value * (high / value) ** factor, estimate.n
        )
    return Estimate(
        value, value - (value - low) * factor, value + (high - value) * factor, estimate.n
    )


def _of_mean(claim: Claim, findings: Sequence[Finding]) -> tuple[str, str]:
    """The verdict of the mean of the numbers.

    Times of different machines or package versions are not pooled: each pool has a mean, and the
    worst verdict counts.
    """
    if claim.measure not in TIME_DEPENDENT and claim.measure not in TIME_MEASURES:
        return _of_pool(claim, _each_once(findings))
    verdicts = [_of_pool(claim, pool) for pool in _pools(findings)]
    return max(verdicts, key=lambda verdict: _WORST_DECIDES.index(verdict[0]))


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without earlier ones of the same cells, on whatever machine."""
    latest = {tuple(str(row["id"]) for row in f.rows): f for f in findings}
    return list(latest.values())


def _pools(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings grouped by machine and compatible package versions."""
    pools: list[tuple[str, dict[str, str], list[Finding]]] = []
    for finding in findings:
        evidence = finding.evidence
        versions: dict[str, str] = {}
        if evidence is not None:
            for row in finding.rows:
                versions |= package_versions(row, evidence.run)
        machine = "" if evidence is None else evidence.machine
        for pool_machine, known, pool in pools:
            agree = all(known.get(name, v) == v for name, v in versions.items())
            if pool_machine == machine and agree:
                known.update(versions)
                pool.append(finding)
                break
        else:
            pools.append((machine, versions, [finding]))
    return [pool for _, _, pool in pools]


def _of_pool(claim: Claim, findings: Sequence[Finding]) -> tuple[str, str]:
    """The mean of the numbers; its bounds are the means of the bounds (errors fully correlated)."""
    if unclear := next((f for f in findings if f.verdict == UNCLEAR), None):
        return UNCLEAR, f"{_named(claim, unclear, findings)}: {reason_of(claim, unclear)}"
    n = len(findings)
    value, low, high = (
        sum(getattr(f.estimate, end) for f in findings) / n for end in ("value", "low", "high")
    )
    mean = Estimate(value, low, high, n)
    expected, is_time = claim.expected(claim.kind), claim.measure in TIME_MEASURES
    unit = unit_of(claim, claim.claim_points()[0])
    verdict, reason = judge_interval(mean, expected, claim.shape_bounds, is_time=is_time)
    shown = number(value, unit)
    if reason == ON_A_BOUND:
        shown = estimate(replace(findings[0], estimate=mean), unit)
        reason = bounds_in(mean, expected, claim.shape_bounds, unit, is_time)
    return verdict, ": ".join(filter(None, [f"mean of {plural(n, 'number')}, {shown}", reason]))
