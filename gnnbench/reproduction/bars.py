"""A table or figure of a paper as bars: its printed numbers, and beside each what was measured.

Made of the claims' points alone: a group of bars a point, or a graph where the paper prints one
number for each. Numbers of one unit share a panel and its scale; those without a unit are counts
of their own kinds, a panel a claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gnnbench.core.text import html as escape
from gnnbench.reproduction.claim import Point
from gnnbench.reproduction.evidence import graph_of
from gnnbench.reproduction.judge import Finding, Judged
from gnnbench.reproduction.picture import COLOURS
from gnnbench.reproduction.text import estimate, expected, number

WIDTH, TEXT = 860, 340  # of the picture, and of the numbers at its right
LINE, BAR, GAP, HEAD = 15, 12, 6, 22
MOST = 4  # bars of one group; the claim's table has all
LONGEST = 140  # characters of a name
PALE = "#F0E442"


@dataclass(frozen=True)
class Bars:
    """A number of the paper, from ``low`` to ``high``, and what was measured of it.

    ``verdict`` is what the claim comes to: a number by itself may say more of a twin than of the
    graph.
    """

    name: str
    told: str
    low: float
    high: float
    unit: str
    verdict: str
    found: list[Finding] = field(default_factory=list)


def svg(figure: Sequence[Judged]) -> str:
    """Inline SVG of a figure's claims; "" where the paper prints no number that was measured."""
    panels: dict[str, list[Bars]] = {}
    for judged in figure:
        own = _bars(judged)
        if any(_shown(b) for b in own):
            panels.setdefault(judged.claim.unit or judged.claim.id, []).extend(own)
    if not panels:
        return ""
    parts: list[str] = []
    top = HEAD
    for groups in panels.values():
        drawn, top = _panel(groups, top)
        parts += drawn
    title = escape(f"{figure[0].claim.entry}: the paper's numbers beside those measured")
    return (
        f'<svg viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" role="img"'
        f' aria-label="{title}">{_legend()}{"".join(parts)}</svg>'
    )


def _legend() -> str:
    """What pale and solid are, and what colours say."""
    words = [("the paper", PALE, 0.5), *((v, colour, 1.0) for v, colour in COLOURS.items())]
    return "".join(
        f'<rect x="{110 * n}" y="2" width="12" height="10" fill="{colour}"'
        f' fill-opacity="{opacity}"/><text x="{110 * n + 17}" y="11">{escape(word)}</text>'
        for n, (word, colour, opacity) in enumerate(words)
    )


def _bars(judged: Judged) -> list[Bars]:
    """A claim's numbers, in the paper's order."""
    claim = judged.claim
    name = claim.id.partition("/")[2].removeprefix(claim.entry.partition("/")[2] + ".")
    found = []
    points = claim.numbers() if claim.measure else []
    for place, point in enumerate(points):
        own = [f for f in judged.findings if f.place == place]
        if point.values:
            for key, value in point.values.items():
                these = [f for f in own if _of(f, key)]
                told = number(value, claim.unit)
                found.append(
                    Bars(f"{name}: {key}", told, value, value, claim.unit, judged.verdict, these)
                )
            continue
        if point.number is None:
            continue
        ends = point.number if isinstance(point.number, tuple) else (point.number,) * 2
        words = f"{name}: {claim.says}"
        if len(points) > 1:
            words = f"{name}: {' '.join(_words(points, point))}" if place else words
        found.append(Bars(words, expected(claim, point), *ends, claim.unit, judged.verdict, own))
    return found


def _of(finding: Finding, key: str) -> bool:
    """Whether a number is one of what a key names: a graph, or a graph and a model."""
    graph, _, model = key.partition(" ")
    row = finding.rows[0] if finding.rows else {}
    return graph_of(str(row.get("dataset", ""))) == graph and model in ("", row.get("model"))


def _tokens(point: Point) -> list[str]:
    rows = [f"{_text(value)}" for value in point.rows.values()]
    over = ["over", *point.beside.split()] if point.beside else []
    return [*point.of.split(), *over, *rows, *(str(a) for a in point.arguments)]


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _words(points: Sequence[Point], point: Point) -> list[str]:
    """What tells a point from the claim's others."""
    shared = set.intersection(*(set(_tokens(p)) for p in points))
    return [t for t in _tokens(point) if t not in shared]


def _shown(bars: Bars) -> list[Finding]:
    return [f for f in bars.found if math.isfinite(f.estimate.value)][:MOST]


def _panel(groups: Sequence[Bars], top: int) -> tuple[list[str], int]:
    """Drawn from ``top`` down; and where it ends."""
    ends = [0.0] + [v for g in groups for v in (g.low, g.high)]
    ends += [v for g in groups for one in _shown(g) for v in _interval(one)]
    low, high = min(ends), max(ends)
    scale = (WIDTH - TEXT) / ((high - low) or 1.0)

    def x(value: float) -> float:
        return (value - low) * scale

    parts = []
    for group in groups:
        name = group.name if len(group.name) <= LONGEST else group.name[: LONGEST - 1] + "…"
        parts.append(f'<text x="0" y="{top + 11}" class="name">{escape(name)}</text>')
        top += LINE
        first = group.low if group.high > group.low else 0.0
        parts += _bar(x(first), x(group.high), top, PALE, group.told, 0.5)
        top += BAR
        for one in _shown(group):
            told = " ".join(filter(None, (estimate(one, group.unit), _where(one))))
            parts += _bar(x(0.0), x(one.estimate.value), top, COLOURS[group.verdict], told)
            left, right = map(x, _interval(one))
            parts.append(_whisker(left, right, top))
            top += BAR
        if more := len(group.found) - len(_shown(group)):
            parts.append(
                f'<text x="{WIDTH - TEXT + 8}" y="{top + 10}">and {more} more, below</text>'
            )
            top += BAR
        top += GAP
    return parts, top + GAP


def _interval(finding: Finding) -> tuple[float, float]:
    found = finding.estimate
    known = math.isfinite(found.low) and math.isfinite(found.high)
    return (found.low, found.high) if known else (found.value, found.value)


def _bar(
    first: float, last: float, top: int, colour: str, told: str, opacity: float = 1.0
) -> list[str]:
    left, right = sorted((first, last))
    return [
        f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{BAR - 2}"'
        f' fill="{colour}" fill-opacity="{opacity}"/>',
        f'<text x="{WIDTH - TEXT + 8}" y="{top + 9}">{escape(told)}</text>',
    ]


def _whisker(left: float, right: float, top: int) -> str:
    middle = top + (BAR - 2) / 2
    return f'<line x1="{left:.1f}" y1="{middle}" x2="{right:.1f}" y2="{middle}" stroke="#222222"/>'


def _where(finding: Finding) -> str:
    """The graph of a number, and the machine where it has a GPU."""
    if not finding.rows or finding.opened is None:
        return ""
    row = finding.rows[0]
    gpus = finding.opened.run.record.get("machine", {}).get("gpus") or []
    card = str(gpus[0].get("name", "")).removeprefix("NVIDIA ") if gpus else ""
    return " ".join(filter(None, (str(row["dataset"]), card)))
