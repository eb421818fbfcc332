"""A drawing of a claim: measured intervals over the band of the claimed range."""

from __future__ import annotations

import math
from collections.abc import Callable

from gnnbench.core.text import html as escape
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.judge import ClaimVerdict
from gnnbench.reproduction.text import number
from gnnbench.reproduction.verdict import HOLDS, REFUTED, SHAPE, UNCLEAR

COLOURS = {HOLDS: "#009E73", SHAPE: "#56B4E9", UNCLEAR: "#999999", REFUTED: "#D55E00"}
WIDTH, ROW, EDGE, AXIS = 520, 16, 12, 18
MAX_ROWS = 30  # drawn numbers; the table has all of them


def svg(judged: ClaimVerdict) -> str:
    """Inline SVG; "" where no number has an interval."""
    shown = [f for f in judged.findings if math.isfinite(f.estimate.value)][:MAX_ROWS]
    if not any(math.isfinite(f.estimate.low) for f in shown):
        return ""
    ends = [v for f in shown for v in (*f.expected, *_interval(f)) if math.isfinite(v)]
    low, high = min(ends), max(ends)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        clipped = min(max(value, low), high)
        return EDGE + (WIDTH - 2 * EDGE) * (clipped - low) / (high - low)

    parts = [part for n, f in enumerate(shown) for part in _row(f, n, x)]
    bottom = ROW * len(shown)
    unit = judged.claim.unit
    for value, anchor in ((low + margin, "start"), (high - margin, "end")):
        parts.append(
            f'<text x="{x(value):.1f}" y="{bottom + 13}" text-anchor="{anchor}">'
            f"{escape(number(value, unit))}</text>"
        )
    title = escape(f"{judged.claim.id}: measured intervals over the claimed range")
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + AXIS}" width="{WIDTH}" height="{bottom + AXIS}"'
        f' role="img" aria-label="{title}">{"".join(parts)}</svg>'
    )


def _interval(finding: Finding) -> tuple[float, float]:
    known = finding.estimate
    return (known.value,) * 2 if math.isnan(known.low) else (known.low, known.high)


def _row(finding: Finding, index: int, x: Callable[[float], float]) -> list[str]:
    top, middle = ROW * index, ROW * index + ROW / 2
    colour = COLOURS[finding.verdict]
    parts = []
    if any(map(math.isfinite, finding.expected)):
        left, right = (x(v) for v in finding.expected)
        parts.append(
            f'<rect x="{left:.1f}" y="{top + 2}" width="{max(right - left, 1):.1f}"'
            f' height="{ROW - 4}" fill="#F0E442" fill-opacity="0.5"/>'
        )
    left, right = (x(v) for v in _interval(finding))
    parts.append(
        f'<line x1="{left:.1f}" y1="{middle}" x2="{right:.1f}" y2="{middle}"'
        f' stroke="{colour}" stroke-width="3"/>'
    )
    value = x(finding.estimate.value)
    parts.append(f'<circle cx="{value:.1f}" cy="{middle}" r="4" fill="{colour}"/>')
    return parts
