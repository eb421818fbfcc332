"""Points of a claim that should have been measured and were not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from gnnbench.core.units import plural
from gnnbench.reproduction.claim import Claim, ClaimPoint
from gnnbench.reproduction.claim_rows import WANTED, claim_rows, difference_from_paper
from gnnbench.reproduction.evidence import MEASURED, RunEvidence
from gnnbench.reproduction.findings import Finding, point_estimate
from gnnbench.reproduction.group_labels import group_label
from gnnbench.reproduction.groups import CellGroup, distinct, equal, groups
from gnnbench.reproduction.measures import PHASE_MEASURES
from gnnbench.reproduction.multi_machine import COMMAND, MULTI_MACHINE_MEASURES
from gnnbench.reproduction.old_words import in_current_terms
from gnnbench.reproduction.phase_measures import phases_overlap
from gnnbench.reproduction.planned import INTERRUPTED, PLANNED, is_interrupted, were_paired
from gnnbench.reproduction.time_ratios import TIME_MEASURES

# Kinds of claims about every cell of a grid, so that a missing cell matters.
GRID_KINDS = ("order", "range", "mean", "upto", "bound")


@dataclass(frozen=True)
class Coverage:
    """``points``: numbers that were to be measured; ``missing``: a reason for each that was not."""

    points: int
    missing: list[str] = field(default_factory=list)


def coverage(
    claim: Claim, point: ClaimPoint, runs: Sequence[RunEvidence], findings: list[Finding]
) -> Coverage:
    """Compare the numbers that the runs have with those that they were to measure."""
    free = {"threads", "max_batches", *filter(None, [point.over])}
    known = distinct((f.group for f in findings if f.group is not None), free)
    missing: list[tuple[CellGroup, str]] = []
    if claim.kind in GRID_KINDS and point.measure not in MULTI_MACHINE_MEASURES:
        for evidence in runs:
            for group, reason in _unmeasured(claim, point, evidence):
                if not any(equal(group, g, free) for g in [*known, *(g for g, _ in missing)]):
                    label = group_label(point, group, evidence)
                    missing.append((group, f"{label}: {in_current_terms(reason)}"))
    reasons = [reason for _, reason in missing]
    if claim.kind in GRID_KINDS:
        evidences = [f.evidence for f in findings if f.evidence is not None]
        reasons += [e.unplanned for e in evidences if e.unplanned][:1]
    if not findings:
        reasons = [_why_nothing(claim, point, runs)]
    return Coverage(max(len(known), bool(findings)) + len(reasons), reasons)


def _unmeasured(
    claim: Claim, point: ClaimPoint, evidence: RunEvidence
) -> Iterator[tuple[CellGroup, str]]:
    """Groups that a run was to measure and did not, each with the reason."""
    for group in groups(point, partial(claim_rows, claim, point, evidence, statuses=WANTED)):
        if any(difference_from_paper(point, row) for row in group.rows()):
            continue
        rows = [row for side in group.sides for row in side]
        failed = [row for row in rows if row["status"] not in MEASURED]
        if point.measure in TIME_MEASURES:
            pairs = [CellGroup(group.first, group.second), *filter(None, [group.earlier])]
            if not all(were_paired(evidence.run, p.first[0], p.second[0]) for p in pairs):
                continue
            if (
                not failed
                and is_interrupted(evidence.run)
                and point_estimate(point, evidence, group) is None
            ):
                yield group, _interrupted(evidence)
        if failed:
            status, reason = failed[0]["status"], failed[0]["reason"]
            ended = f"ended as {status}: {reason}"
            yield group, _interrupted(evidence) if status == PLANNED else ended


def _interrupted(evidence: RunEvidence) -> str:
    """Why a planned cell has no number, and the command that measures it."""
    return f"{INTERRUPTED}; run '{evidence.run.record.repeat_command}'"


def _why_nothing(claim: Claim, point: ClaimPoint, runs: Sequence[RunEvidence]) -> str:
    """Why no run has a number, and the command that would measure it."""
    if point.measure in MULTI_MACHINE_MEASURES:
        return f"run '{COMMAND}' as root"
    for evidence in reversed(runs):
        for label, overrides in ((point.of, {}), (point.versus, point.versus_rows)):
            rows = claim_rows(claim, point, evidence, label, overrides) if label else []
            failed = [r for r in rows if r["status"] not in (*MEASURED, PLANNED)]
            if failed and len(failed) == len(rows):
                return f"'{label}' ended as {failed[0]['status']}: {failed[0]['reason']}"
    needs_gpu = "cuda" in (claim.device, point.as_printed.get("device"))
    run = next((r for r in claim.runs if not r.endswith(" smoke")), claim.runs[0])
    command = f"gnnbench run {run.replace(' ', ' --profile ')}"
    if claim.gpus > 1:
        return f"needs {claim.gpus} GPUs; run '{command}' on them"
    return f"run '{command}'" + (" on a GPU" if needs_gpu else "")


def overlap_note(claim: Claim, runs: Sequence[RunEvidence]) -> str:
    """How many cells have no number because their phases overlap; "" for none."""
    cells = {
        (evidence.machine, row["id"])
        for point in claim.claim_points()
        if point.measure in PHASE_MEASURES
        for evidence in runs
        for label, overrides in ((point.of, {}), (point.versus, point.versus_rows))
        for row in (claim_rows(claim, point, evidence, label, overrides, MEASURED) if label else ())
        if phases_overlap(evidence, row)
    }
    return f"{plural(len(cells), 'cell')} left out because phases overlap" if cells else ""
