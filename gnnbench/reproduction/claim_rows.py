"""The rows of a run that a point of a claim is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gnnbench.reproduction.claim import Claim, ClaimPoint
from gnnbench.reproduction.evidence import RunEvidence, select
from gnnbench.reproduction.measures import SPEEDUP_MEASURES, TIME_DEPENDENT
from gnnbench.reproduction.planned import PLANNED
from gnnbench.reproduction.time_ratios import FEW_PAIRS
from gnnbench.schema import STATUSES, CellRow
from gnnbench.statistics.stopping_rule import MIN_PAIRS

ANY = (*STATUSES, PLANNED)
# Of rows that were measured or should have been: all except unsupported combinations.
WANTED = tuple(status for status in ANY if status != "unsupported")


def claim_rows(
    claim: Claim,
    point: ClaimPoint,
    evidence: RunEvidence,
    label: str,
    overrides: Mapping[str, object],
    statuses: Collection[str] = ANY,
) -> list[CellRow]:
    """Rows of these statuses, of the experiments that the claim names."""
    device = {"device": claim.device} if claim.device else {}
    wanted = {**device, **point.rows, **overrides}
    experiments = {run.partition(" ")[0] for run in claim.runs}
    if experiments.isdisjoint(evidence.experiments):  # most claims and runs
        return []
    rows = select(evidence, label, wanted, point.nodes, point.full_batch)
    return [r for r in rows if r["experiment"] in experiments and r["status"] in statuses]


def difference_from_paper(point: ClaimPoint, row: CellRow) -> str:
    """The columns in which a row deviates from the paper's setting, as text; "" for none."""
    return "; ".join(
        f"{key} is {row.get(key)}, the paper has {value}"
        for key, value in point.as_printed.items()
        if row.get(key) != value
    )


def doubt_of(point: ClaimPoint, row: CellRow) -> str:
    """Why no verdict may rest on a row, or "".

    Either its setting deviates from the paper's, or its times are unreliable. Ratios of times have
    doubts of their own (``gnnbench.reproduction.time_ratios``).
    """
    if difference := difference_from_paper(point, row):
        return difference
    if point.measure not in TIME_DEPENDENT:
        return ""
    if point.measure in SPEEDUP_MEASURES and (row["pairs"] or 0) < MIN_PAIRS:
        return FEW_PAIRS
    return str(row["doubtful"] or (row["reason"] if row["status"] == "unstable" else ""))
