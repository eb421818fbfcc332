"""A table or figure of a paper as bars: the paper's numbers next to the measured ones.

A group of bars is a point of a claim, or a graph where the paper prints one number for each.
Numbers of one unit share a panel and its scale. Claims without a unit have a panel each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gnnbench.core.text import html as escape
from gnnbench.reproduction.claim import ClaimPoint
from gnnbench.reproduction.evidence import graph_of
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.judge import ClaimVerdict
from gnnbench.reproduction.picture import COLOURS
from gnnbench.reproduction.text import estimate, expected, number

WIDTH, TEXT_WIDTH = 860, 340  # of the drawing, and of the numbers on its right
LINE, BAR, GAP, HEAD = 15, 12, 6, 22
MAX_BARS = 4  # bars of one group; the claim's table has all numbers
MAX_NAME = 140  # characters of a name
PAPER_COLOUR = "#F0E442"


@dataclass(frozen=True)
class BarGroup:
    """A number of the paper, from ``low`` to ``high``, and the measured numbers.

    ``text`` is the paper's number with its unit. ``verdict`` is the claim's and sets the colour: a
    number of a twin may hold by itself although the claim does not.
    """

    name: str
    text: str
    low: float
    high: float
    unit: str
    verdict: str
    findings: list[Finding] = field(default_factory=list)


def svg(figure: Sequence[ClaimVerdict]) -> str:
    """Inline SVG of a figure's claims; "" where the paper prints no number that was measured."""
    panels: dict[str, list[BarGroup]] = {}
    for judged in figure:
        own = _bar_groups(judged)
        if any(_shown(b) for b in own):
            panels.setdefault(judged.claim.unit or judged.claim.id, []).extend(own)
    if not panels:
        return ""
    parts: list[str] = []
    top = HEAD
    for groups in panels.values():
        drawn, top = _panel(groups, top)
        parts += drawn
    title = escape(f"{figure[0].claim.entry}: the paper's numbers and the measured ones")
    return (
        f'<svg viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" role="img"'
        f' aria-label="{title}">{_legend()}{"".join(parts)}</svg>'
    )


def _legend() -> str:
    """Names of the colours."""
    entries = [("the paper", PAPER_COLOUR, 0.5), *((v, c, 1.0) for v, c in COLOURS.items())]
    return "".join(
        f'<rect x="{110 * n}" y="2" width="12" height="10" fill="{colour}"'
        f' fill-opacity="{opacity}"/><text x="{110 * n + 17}" y="11">{escape(name)}</text>'
        for n, (name, colour, opacity) in enumerate(entries)
    )


def _bar_groups(judged: ClaimVerdict) -> list[BarGroup]:
    """A claim's numbers, in the paper's order."""
    claim, unit, verdict = judged.claim, judged.claim.unit, judged.verdict
    name = claim.id.partition("/")[2].removeprefix(claim.entry.partition("/")[2] + ".")
    result = []
    points = claim.claim_points() if claim.measure else []
    for index, point in enumerate(points):
        own = [f for f in judged.findings if f.point_index == index]
        if point.values:
            for key, value in point.values.items():
                of_key = [f for f in own if _is_of(f, key)]
                text = number(value, unit)
                result.append(BarGroup(f"{name}: {key}", text, value, value, unit, verdict, of_key))
            continue
        if point.number is None:
            continue
        ends = point.number if isinstance(point.number, tuple) else (point.number,) * 2
        title = f"{name}: {claim.says}"
        if index:
            title = f"{name}: {' '.join(_distinguishing(points, point))}"
        result.append(BarGroup(title, expected(claim, point), *ends, unit, verdict, own))
    return result


def _is_of(finding: Finding, key: str) -> bool:
    """Whether a number belongs to a graph, or to a graph and a model."""
    graph, _, model = key.partition(" ")
    row = finding.rows[0] if finding.rows else {}
    return graph_of(str(row.get("dataset", ""))) == graph and model in ("", row.get("model"))


def _tokens(point: ClaimPoint) -> list[str]:
    rows = [f"{_text(value)}" for value in point.rows.values()]
    versus = ["over", *point.versus.split()] if point.versus else []
    return [*point.of.split(), *versus, *rows, *(str(a) for a in point.arguments)]


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _distinguishing(points: Sequence[ClaimPoint], point: ClaimPoint) -> list[str]:
    """The tokens of a point that the claim's other points do not share."""
    shared = set.intersection(*(set(_tokens(p)) for p in points))
    return [t for t in _tokens(point) if t not in shared]


def _shown(group: BarGroup) -> list[Finding]:
    return [f for f in group.findings if math.isfinite(f.estimate.value)][:MAX_BARS]


def _panel(groups: Sequence[BarGroup], top: int) -> tuple[list[str], int]:
    """SVG elements of a panel that begins at ``top``, and its bottom."""
    ends = [0.0] + [v for g in groups for v in (g.low, g.high)]
    ends += [v for g in groups for one in _shown(g) for v in _interval(one)]
    low, high = min(ends), max(ends)
    scale = (WIDTH - TEXT_WIDTH) / ((high - low) or 1.0)

    def x(value: float) -> float:
        return (value - low) * scale

    parts = []
    for group in groups:
        name = group.name if len(group.name) <= MAX_NAME else group.name[: MAX_NAME - 1] + "…"
        parts.append(f'<text x="0" y="{top + 11}" class="name">{escape(name)}</text>')
        top += LINE
        first = group.low if group.high > group.low else 0.0
        parts += _bar(x(first), x(group.high), top, PAPER_COLOUR, group.text, 0.5)
        top += BAR
        for one in _shown(group):
            text = " ".join(filter(None, (estimate(one, group.unit), _origin(one))))
            parts += _bar(x(0.0), x(one.estimate.value), top, COLOURS[group.verdict], text)
            left, right = map(x, _interval(one))
            parts.append(_whisker(left, right, top))
            top += BAR
        if more := len(group.findings) - len(_shown(group)):
            parts.append(
                f'<text x="{WIDTH - TEXT_WIDTH + 8}" y="{top + 10}">and {more} more, below</text>'
            )
            top += BAR
        top += GAP
    return parts, top + GAP


def _interval(finding: Finding) -> tuple[float, float]:
    known = finding.estimate
    bounded = math.isfinite(known.low) and math.isfinite(known.high)
    return (known.low, known.high) if bounded else (known.value, known.value)


def _bar(
    first: float, last: float, top: int, colour: str, text: str, opacity: float = 1.0
) -> list[str]:
    left, right = sorted((first, last))
    return [
        f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{BAR - 2}"'
        f' fill="{colour}" fill-opacity="{opacity}"/>',
        f'<text x="{WIDTH - TEXT_WIDTH + 8}" y="{top + 9}">{escape(text)}</text>',
    ]


def _whisker(left: float, right: float, top: int) -> str:
    middle = top + (BAR - 2) / 2
    return f'<line x1="{left:.1f}" y1="{middle}" x2="{right:.1f}" y2="{middle}" stroke="#222222"/>'


def _origin(finding: Finding) -> str:
    """The graph of a number, and the GPU of its machine."""
    if not finding.rows or finding.evidence is None:
        return ""
    row, gpus = finding.rows[0], finding.evidence.gpus
    card = str(gpus[0].get("name", "")).removeprefix("NVIDIA ") if gpus else ""
    return " ".join(filter(None, (str(row["dataset"]), card)))
