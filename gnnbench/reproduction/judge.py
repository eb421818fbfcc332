"""Judge claims by the results of runs. A verdict rests on intervals, never on a number alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gnnbench.reproduction.causes import rates_here
from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.combine import combined_verdict, decided_by_one
from gnnbench.reproduction.coverage import Coverage, coverage, overlap_note
from gnnbench.reproduction.evidence import RunEvidence
from gnnbench.reproduction.findings import Finding, computed_findings, measured_findings
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES
from gnnbench.reproduction.number_text import measured
from gnnbench.reproduction.twins import limited_to_twins, twin_doubt
from gnnbench.reproduction.verdict import (
    CONTRADICTED,
    IMPROVED,
    NOT_CHECKABLE,
    NOT_MEASURED,
    NOT_REPRODUCED,
    REFUTED,
    SUPPORTED,
    UNCLEAR,
)


def judge(claims: Iterable[Claim], runs: Sequence[RunEvidence]) -> list[ClaimVerdict]:
    """Judge claims by runs, ordered from the oldest.

    Ratios of times of a cell that was measured twice on a machine are pooled; of its other numbers
    the later ones count. The published variant of a claim decides, unless the results contradict
    it and the claim has an improved one.
    """
    return [_judge(claim, runs) for claim in claims]


def _judge(claim: Claim, runs: Sequence[RunEvidence]) -> ClaimVerdict:
    published = _judge_variant(claim, runs)
    variant = claim.improved_variant()
    if published.verdict not in CONTRADICTED or variant is None:
        return published
    return _judge_both(published, _judge_variant(variant, runs))


def _judge_both(published: ClaimVerdict, improved: ClaimVerdict) -> ClaimVerdict:
    """The verdict on a claim whose published variant is contradicted, by its improved variant."""
    verdict = _verdict_of_both(published.verdict, improved.verdict)
    outside = [f for f in published.findings if f.verdict == REFUTED]
    number = measured(replace(published, findings=outside))
    state = "unclear" if improved.findings else "not measured"
    if improved.verdict in (*SUPPORTED, *CONTRADICTED):
        both = f"published variant {number}, improved variant {measured(improved)}"
        # Where only the improved variant has a doubt, its reason says why nothing is refuted.
        by_improved = verdict == NOT_REPRODUCED != published.verdict
        reason = _join(both, (improved if by_improved else published).reason)
    elif verdict == NOT_REPRODUCED:
        reason = _sentences(published.reason, f"the improved variant is {state}")
        reason = ": ".join(filter(None, (reason, improved.reason)))
    else:
        reason = f"the published variant fails ({number}); the improved one is {state}"
        reason = ": ".join(filter(None, (reason, improved.reason)))
    return replace(published, verdict=verdict, reason=reason, improved=improved.findings)


def _verdict_of_both(published: str, improved: str) -> str:
    """The verdict of a contradicted published variant and an improved one."""
    if improved in SUPPORTED:
        return IMPROVED
    if published == REFUTED:  # only both variants together refute the claim
        return improved if improved in CONTRADICTED else UNCLEAR
    return NOT_REPRODUCED


def _judge_variant(claim: Claim, runs: Sequence[RunEvidence]) -> ClaimVerdict:
    if claim.verdict:
        return ClaimVerdict(claim, claim.verdict, claim.because)
    if claim.lacks:
        return ClaimVerdict(claim, NOT_MEASURED, claim.lacks)
    findings, covered = _evaluate(claim, runs)
    if not findings:
        enough_gpus = claim.gpus <= max([1, *(len(evidence.gpus) for evidence in runs)])
        verdict = NOT_MEASURED if enough_gpus else NOT_CHECKABLE
        reason = _join(covered.missing[0], overlap_note(claim, runs))
        return ClaimVerdict(claim, verdict, reason, findings)
    verdict, reason = combined_verdict(claim, findings)
    verdict, reason = _apply_coverage(claim, covered, verdict, reason)
    verdict, reason = limited_to_twins(claim, findings, verdict, reason)
    if verdict == REFUTED:
        if doubt := _doubt_of_refutation(claim, findings):
            verdict = UNCLEAR if covered.missing else NOT_REPRODUCED
            reason = _join(_missing_points(covered), reason)
            reason = _sentences(reason, f"{doubt}, so it does not refute the claim")
        if claim.cause:
            outside = next((f for f in findings if f.verdict == REFUTED), findings[0])
            rates = rates_here(claim.paper, outside.evidence, runs)
            reason = _sentences(reason, rates)
    return ClaimVerdict(claim, verdict, _join(reason, overlap_note(claim, runs)), findings)


def _doubt_of_refutation(claim: Claim, findings: Sequence[Finding]) -> str:
    """Why numbers outside the claimed range do not refute the claim, or ""."""
    if doubt := twin_doubt(claim, findings):
        return doubt
    if claim.faster_rival:
        return "the rival here is faster than the paper's"
    if claim.is_absolute_size:
        return "it depends on the hardware, which is not the paper's"
    several = MULTI_MACHINE_MEASURES.get(claim.measure)
    if several is not None and several.is_time:
        return "emulated machines share their cores"
    return ""


def _evaluate(claim: Claim, runs: Sequence[RunEvidence]) -> tuple[list[Finding], Coverage]:
    """The numbers of all points of a claim, and which are missing."""
    findings: list[Finding] = []
    points = 0
    missing: list[str] = []
    for index, point in enumerate(claim.claim_points()):
        if point.measure in FORMULAS:
            own, covered = computed_findings(claim, point), Coverage(1)
        else:
            own = measured_findings(claim, point, runs)
            covered = coverage(claim, point, runs, own)
        findings += [replace(finding, point_index=index) for finding in own]
        points += covered.points
        missing += covered.missing
    return findings, Coverage(points, missing)


def _apply_coverage(claim: Claim, covered: Coverage, verdict: str, reason: str) -> tuple[str, str]:
    """Missing points leave a claim unclear, unless one number decides it.

    The reason also has what the measured points leave open or contradict.
    """
    decided = decided_by_one(claim)
    if covered.missing and (verdict != decided or claim.kind == "mean"):
        return UNCLEAR, _join(_missing_points(covered), reason)
    cells = covered.points // len(claim.claim_points())
    if claim.cells > cells and verdict in SUPPORTED:
        return verdict, _join(reason, f"at {cells} of the paper's {claim.cells} cells")
    return verdict, reason


def _missing_points(covered: Coverage) -> str:
    """How many points were measured, and the first that was not; "" for none."""
    if not covered.missing:
        return ""
    count = covered.points - len(covered.missing)
    return f"{count} of {covered.points} points measured: {covered.missing[0]}"


def _join(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _sentences(*texts: str) -> str:
    """Sentences without the last full stop; each later one begins with a capital letter."""
    first, *others = list(filter(None, texts)) or [""]
    return ". ".join([first, *(f"{text[0].upper()}{text[1:]}" for text in others)])
