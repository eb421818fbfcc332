"""The verdict of several numbers of one claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnnbench.analysis.compare import package_versions
from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.evidence import graph_of
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.interval import judge_interval
from gnnbench.reproduction.measures import TIME_DEPENDENT
from gnnbench.reproduction.time_ratios import TIME_MEASURES
from gnnbench.reproduction.verdict import HOLDS, REFUTED, SHAPE, UNCLEAR
from gnnbench.statistics.estimates import Estimate, t_quantile

TWIN = "~twin"
# From the best verdict to the worst. The worst number decides, except for "up to": there the best
# decides, and an unclear number may reach what the others do not.
_WORST_DECIDES = (HOLDS, SHAPE, UNCLEAR, REFUTED)
_BEST_DECIDES = (HOLDS, UNCLEAR, SHAPE, REFUTED)


def combined_verdict(claim: Claim, findings: Sequence[Finding]) -> tuple[str, str]:
    """Verdict and reason of all numbers of a claim together."""
    if claim.kind == "mean":
        return _of_mean(claim, findings)
    if claim.kind == "upto":
        decisive = min(findings, key=lambda f: _BEST_DECIDES.index(f.verdict))
    else:
        decisive = max(findings, key=lambda f: _WORST_DECIDES.index(f.verdict))
    reason = f"{decisive.label}: {decisive.reason}" if decisive.reason else ""
    if decisive.verdict == decided_by_one(claim) and not _any_stands_alone(claim, findings):
        return UNCLEAR, f"{decisive.label}: decided by one of {len(findings)} numbers, maybe chance"
    return decisive.verdict, reason


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
        return _of_pool(claim, findings)
    verdicts = [_of_pool(claim, pool) for pool in _pools(findings)]
    return max(verdicts, key=lambda verdict: _WORST_DECIDES.index(verdict[0]))


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
        return UNCLEAR, f"{unclear.label}: {unclear.reason}"
    n = len(findings)
    value, low, high = (
        sum(getattr(f.estimate, end) for f in findings) / n for end in ("value", "low", "high")
    )
    expected = claim.expected(claim.kind)
    return judge_interval(
        Estimate(value, low, high, n), expected, claim.shape_bounds,
        is_time=claim.measure in TIME_MEASURES,
    )  # fmt: skip


def weaken_for_twins(
    claim: Claim, findings: Sequence[Finding], verdict: str, reason: str
) -> tuple[str, str]:
    """A number of a graph, measured on a synthetic twin, neither confirms nor refutes the claim."""
    datasets = [str(r["dataset"]) for f in findings for r in f.rows]
    twins = [name for name in datasets if TWIN in name]
    if not claim.of_graph or not twins or verdict not in (HOLDS, REFUTED):
        return verdict, reason
    graphs = dict.fromkeys(map(graph_of, twins))
    if verdict == REFUTED:
        return UNCLEAR, f"{reason}, but on a twin of {', '.join(graphs)}, not on the graph itself"
    fitted = [g for g in graphs if g in claim.fitted]
    note = f"; the twin of {', '.join(fitted)} was fitted to this number" if fitted else ""
    return SHAPE, f"on a twin of {', '.join(graphs)}{note}"
