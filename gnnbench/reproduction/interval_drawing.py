"""Draw measured intervals over the claimed range, each as a line of inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from gnnbench.reproduction.claim import Bounds
from gnnbench.reproduction.findings import Finding

WIDTH, HEIGHT, EDGE = 150, 14, 6


@dataclass(frozen=True)
class Scale:
    """The values at the left and at the right end of the drawings of a claim."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Position of a value; one outside the scale is drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return EDGE + (WIDTH - 2 * EDGE) * share


def scale_of(findings: Iterable[Finding], printed: Iterable[Bounds]) -> Scale | None:
    """A scale for the intervals, the claimed ranges and the paper's numbers.

    None where no finding has an interval.
    """
    findings = list(findings)
    if not any(math.isfinite(f.estimate.low) for f in findings):
        return None
    ranges = [*printed, *(f.expected for f in findings), *map(_interval, findings)]
    ends = [value for bounds in ranges for value in bounds if math.isfinite(value)]
    low, high = min(ends), max(ends)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Scale(low - margin, high + margin)


def svg(scale: Scale, finding: Finding, printed: Bounds | None) -> Markup:
    """Inline SVG of a number: the claimed range, the paper's number as a tick, the interval.

    Colours are classes of the page. The numbers are text of the same row, so the drawing is hidden
    from screen readers.
    """
    parts = []
    if any(map(math.isfinite, finding.expected)):
        left, right = map(scale.x, finding.expected)
        parts.append(
            f'<path class="range" d="M{left:.0f} 1H{max(right, left + 1):.0f}V13H{left:.0f}z"/>'
        )
    if printed is not None:
        ticks = "".join(f"M{scale.x(v):.0f} 0V14" for v in dict.fromkeys(printed))
        parts.append(f'<path class="tick" d="{ticks}"/>')
    if math.isfinite(finding.estimate.value):
        left, right = map(scale.x, _interval(finding))
        middle = scale.x(finding.estimate.value)
        parts.append(
            f'<path class="interval" d="M{left:.1f} 7H{right:.1f}"/>'
            f'<circle cx="{middle:.1f}" cy="7" r="3.5"/>'
        )
    return Markup(
        f'<svg class="{slug(finding.verdict)}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'
    )


def slug(verdict: str) -> str:
    """A verdict as a class of the page: ``not-measured``."""
    return verdict.replace(" ", "-")


def _interval(finding: Finding) -> Bounds:
    known = finding.estimate
    return (known.value, known.value) if math.isnan(known.low) else (known.low, known.high)
