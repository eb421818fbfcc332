"""Why a number does not decide a claim, and what would decide it, as text."""

from __future__ import annotations

from gnnbench.reproduction.claim import Bounds, Claim
from gnnbench.reproduction.claim_rows import difference_from_paper
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.interval import ON_A_BOUND
from gnnbench.reproduction.multi_machine import COMMAND, MULTI_MACHINE_MEASURES
from gnnbench.reproduction.number_text import number, unit_of
from gnnbench.reproduction.time_ratios import FEW_PAIRS
from gnnbench.statistics.estimates import Estimate
from gnnbench.statistics.stopping_rule import MIN_PAIRS, Rule


def reason_of(claim: Claim, finding: Finding) -> str:
    """The reason of a number's own verdict; of an unclear number with what would decide it."""
    point = claim.claim_points()[finding.point_index]
    if finding.reason == ON_A_BOUND:
        bounds = claim.shape_bounds
        unit = unit_of(claim, point)
        return bounds_in(finding.estimate, finding.expected, bounds, unit, finding.is_time)
    if not finding.doubt or finding.evidence is None:
        return finding.reason
    if any(difference_from_paper(point, row) for row in finding.rows):
        return finding.reason
    is_of_machines = point.measure in MULTI_MACHINE_MEASURES
    command = COMMAND if is_of_machines else finding.evidence.run.record.repeat_command
    more = ""
    if finding.doubt == FEW_PAIRS:
        more = f" with -o pairs=[{MIN_PAIRS}] and a larger -o time_budget_s"
    return f"{finding.reason}; repeat '{command}'{more}"


def bounds_in(
    estimate: Estimate, expected: Bounds, shape: Bounds | None, unit: str, is_time: bool = False
) -> str:
    """``the interval contains the bound 2x``, of an interval that decides nothing.

    One that contains no bound ends within the margin in which two times are not distinguished.
    """
    ends = sorted({*expected, *(shape or ())})
    inside = [number(end, unit) for end in ends if estimate.low <= end <= estimate.high]
    inside = list(dict.fromkeys(inside))
    if inside:
        listed = " and ".join(filter(None, [", ".join(inside[:-1]), inside[-1]]))
        plural = "bounds" if len(inside) > 1 else "bound"
        return f"the interval contains the {plural} {listed}"
    margin = f"the margin of {100 * Rule().margin:.0f} % around " if is_time else ""
    return f"the interval reaches into {margin}the bound {number(1, unit)}"
