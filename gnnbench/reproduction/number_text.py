"""Numbers of claims as text: the paper's, the claimed range, and the measured ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gnnbench.core.units import gigabytes, plural
from gnnbench.reproduction.claim import Claim, ClaimPoint
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.findings import Finding

WORDS = "|"  # separates the words for 0 and 1 in a unit
POINTS = "points"  # of a hundred: the unit of a difference of shares
ROUNDED = 1e-6  # a printed bound that differs by more is not the bound itself


def number(value: float, unit: str) -> str:
    """``71.4 %`` of a share, ``2.03x`` of a ratio, ``1.4 GB`` of bytes, else six digits.

    From a million on a count has all digits, in groups of three. A unit that is not one of
    ``Claim.unit``'s follows the number.
    """
    if math.isnan(value):
        return "?"
    if WORDS in unit and value in (0.0, 1.0):
        return unit.split(WORDS)[int(value)]
    if unit == "B":
        return f"{gigabytes(value)} GB"
    if unit == "iB":
        return f"{value / 2**30:.3g} GiB" if value >= 2**30 else f"{value / 2**20:.3g} MiB"
    if unit == "%":
        return f"{100 * value:.4g} %"
    if unit == "x":
        return f"{value:.3g}x"
    if unit == POINTS:
        shown = f"{100 * value:.4g}"
    else:
        shown = f"{value:,.0f}" if 1e6 <= abs(value) < math.inf else f"{value:.6g}"
    if not unit or WORDS in unit:
        return shown
    return f"{shown} {_singular(unit) if shown == '1' else unit}"


def _singular(unit: str) -> str:
    """``launch`` of ``launches``, ``row`` of ``rows``; ``s`` and ``MiB`` have no plural."""
    if len(unit) < 3:
        return unit
    return unit[:-2] if unit.endswith(("ches", "sses")) else unit.removesuffix("s")


def unit_of(claim: Claim, point: ClaimPoint) -> str:
    """The unit of a point's number: a difference of shares is in points."""
    return POINTS if claim.unit == "%" and point.by == "difference" else claim.unit


def printed(claim: Claim) -> str:
    """The paper's numbers, each once."""
    numbers = [expected(claim, point) for point in claim.claim_points() if claim.measure]
    return ", ".join(dict.fromkeys(numbers))


def expected(claim: Claim, point: ClaimPoint) -> str:
    """The paper's number of a point, or its bounds."""
    unit = unit_of(claim, point)
    if point.number is not None:
        if isinstance(point.number, tuple):
            return _range(*point.number, unit)
        prefix = {"upto": "up to ", "mean": "mean "}.get(claim.kind, "")
        return prefix + number(point.number, unit)
    bounds = [_bound("least", point.least, unit), _bound("most", point.most, unit)]
    return ", ".join(filter(None, bounds))


def _bound(side: str, value: float | None, unit: str) -> str:
    """``at least 2x``; ``above 1x`` for a bound that is printed as 1x and lies above it."""
    if value is None:
        return ""
    shown = number(value, unit)
    if unit in ("x", "%", POINTS):
        rounded = float(shown.rstrip("x").partition(" ")[0]) / (1 if unit == "x" else 100)
        if side == "least" and rounded < value - ROUNDED:
            return f"above {shown}"
        if side == "most" and rounded > value + ROUNDED:
            return f"below {shown}"
    return f"at {side} {shown}"


def measured(judged: ClaimVerdict) -> str:
    """The measured number with its interval, two of them, or the range of more.

    Those of the published variant: the reason has the improved one's.
    """
    claim = judged.claim
    points = claim.claim_points()
    known = [f for f in judged.findings if not math.isnan(f.estimate.value)]
    texts = dict.fromkeys(estimate(f, unit_of(claim, points[f.point_index])) for f in known)
    if len(known) < 2 or (len(known) == len(texts) == 2 and any("[" in text for text in texts)):
        return ", ".join(texts)
    known.sort(key=lambda f: f.estimate.value)
    units = [unit_of(claim, points[f.point_index]) for f in known]
    first, last = known[0].estimate.value, known[-1].estimate.value
    if len(texts) == 1:
        shown = next(iter(texts))
    elif claim.has_words or units[0] != units[-1]:
        shown = ", ".join(dict.fromkeys((number(first, units[0]), number(last, units[-1]))))
    else:
        shown = _range(first, last, units[0])
    return f"{shown} ({_how_many(known)})"


def _range(first: float, last: float, unit: str) -> str:
    """``1.16x to 1.44x``, ``1 to 4 GB``; one number where both are printed alike."""
    low, high = number(first, unit), number(last, unit)
    if low == high:
        return low
    values, name = _without_unit(low, high)
    return f"{' to '.join(values)}{name}"


def _without_unit(*shown: str) -> tuple[list[str], str]:
    """Numbers without the unit that follows the last after a blank, and that unit with the blank.

    Where another number has another unit, such as MiB and GiB, all numbers keep theirs.
    """
    parts = [text.rpartition(" ") for text in shown]
    name = parts[-1][2]
    if all(blank and own in (name, _singular(name)) for _, blank, own in parts):
        return [value for value, _, _ in parts], f" {name}"
    return list(shown), ""


def _how_many(findings: Sequence[Finding]) -> str:
    """``8 numbers``, or ``8 numbers on 2 machines``: the same cells may be among them twice."""
    machines = {f.evidence.machine for f in findings if f.evidence is not None}
    where = f" on {len(machines)} machines" if len(machines) > 1 else ""
    return f"{plural(len(findings), 'number')}{where}"


def allowed(finding: Finding, unit: str) -> str:
    """The claimed range of a number; "" where only the mean of several numbers is claimed."""
    if all(map(math.isfinite, finding.expected)):
        return _range(*finding.expected, unit)
    low, high = (number(v, unit) if math.isfinite(v) else "" for v in finding.expected)
    return f"at least {low}" if low else f"at most {high}" if high else ""


def estimate(finding: Finding, unit: str) -> str:
    """``0.72x [0.71x, 0.74x]``, ``72 [71, 74] %``; only the number where both ends print as it."""
    known = finding.estimate
    value = number(known.value, unit)
    if math.isnan(known.low):
        return value
    low, high = number(known.low, unit), number(known.high, unit)
    if low == value == high:
        return value
    (value, low, high), name = _without_unit(value, low, high)
    return f"{value} [{low}, {high}]{name}"
