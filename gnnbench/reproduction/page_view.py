"""What the HTML report shows: papers, claims with their evidence, runs and machines."""

from __future__ import annotations

import base64
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from gnnbench.analysis.report import machine, revision
from gnnbench.reproduction.claim import Bounds, Claim, ClaimPoint, papers
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.evidence import RunEvidence, graph_of
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.interval import ON_A_BOUND, OTHER_SIZE, OUTSIDE
from gnnbench.reproduction.interval_drawing import Scale, scale_of, slug, svg
from gnnbench.reproduction.number_text import (
    allowed,
    estimate,
    expected,
    measured,
    number,
    printed,
    unit_of,
)
from gnnbench.reproduction.text import count
from gnnbench.reproduction.verdict import VERDICTS

MIN_SCALE = 0.6  # of a figure's own size; below it its text cannot be read
MISSING = "not measured"
DRAWN = (OUTSIDE, OTHER_SIZE, ON_A_BOUND)  # reasons that the drawing of an interval shows


@dataclass(frozen=True)
class EvidenceRow:
    """A number of a claim, or one of the paper's that was not measured.

    ``run`` is the number of its run, 0 for a number without one.
    """

    label: str
    paper: str
    measured: str
    drawing: Markup
    allowed: str
    verdict: str
    reason: str
    run: int = 0

    @property
    def slug(self) -> str:
        """The verdict as a class of the page."""
        return slug(self.verdict)


@dataclass(frozen=True)
class Evidence:
    """The numbers of a claim. ``ends`` are the values at both ends of the drawings, or ""."""

    rows: list[EvidenceRow]
    ends: tuple[str, str] | None

    @property
    def allowed(self) -> str:
        """The claimed range if it is the same for all numbers, else ""."""
        ranges = {row.allowed for row in self.rows if row.verdict}
        return next(iter(ranges)) if len(ranges) == 1 else ""

    @property
    def has_paper(self) -> bool:
        """Whether the paper has different numbers for the rows."""
        return len({row.paper for row in self.rows}) > 1

    @property
    def has_allowed(self) -> bool:
        """Whether the claimed range differs between the rows."""
        return len({row.allowed for row in self.rows if row.verdict}) > 1


@dataclass(frozen=True)
class ClaimView:
    """A claim with its verdict and evidence. ``machines`` are numbers of machines."""

    id: str
    says: str
    verdict: str
    reason: str
    printed: str
    measured: str
    note: str
    machines: list[int]
    evidence: Evidence

    @property
    def anchor(self) -> str:
        """Id of its element."""
        return anchor(self.id)

    @property
    def slug(self) -> str:
        """The verdict as a class of the page."""
        return slug(self.verdict)


@dataclass(frozen=True)
class EntryView:
    """A table or figure of a paper with its claims."""

    name: str
    source: str
    title: str
    claims: list[ClaimView]

    @property
    def anchor(self) -> str:
        """Id of its element."""
        return f"{anchor(self.name)}-entry"


@dataclass(frozen=True)
class PaperView:
    """A paper: the number of claims by verdict, the headline claims, tables and figures."""

    key: str
    name: str
    title: str
    remarks: list[str]
    summary: str
    counts: list[tuple[str, str, int]]
    headlines: list[ClaimView]
    entries: list[EntryView]


@dataclass(frozen=True)
class RunView:
    """A run that claims rest on. ``machine`` is the number of its machine."""

    number: int
    command: str
    machine: int
    revision: str
    date: str
    folder: str
    claims: int
    figures: list[FigureView]


@dataclass(frozen=True)
class FigureView:
    """A figure of a run; ``width`` in points below which it is scrolled, not shrunk, or ""."""

    name: str
    width: str
    source: str


class Sources:
    """The runs that verdicts rest on and their machines, numbered from 1 in order of the claims."""

    def __init__(self, verdicts: Sequence[ClaimVerdict]) -> None:
        evidences = [f.evidence for j in verdicts for f in j.numbers if f.evidence is not None]
        by_path = {evidence.run.path: evidence for evidence in evidences}
        self.runs: list[RunEvidence] = list(by_path.values())
        self.machines: list[str] = list(dict.fromkeys(machine(e.run.record) for e in self.runs))
        self._numbers = {path: number for number, path in enumerate(by_path, 1)}

    def run_number(self, evidence: RunEvidence) -> int:
        """Number of a run."""
        return self._numbers[evidence.run.path]

    def machine_number(self, evidence: RunEvidence) -> int:
        """Number of the machine of a run."""
        return self.machines.index(machine(evidence.run.record)) + 1


def anchor(ident: str) -> str:
    """Id of an element of the page."""
    return ident.replace("/", "-")


def verdict_counts(verdicts: Sequence[ClaimVerdict]) -> list[tuple[str, str, int]]:
    """Verdicts that occur: name, class of the page, number of claims."""
    by = Counter(j.verdict for j in verdicts)
    return [(verdict, slug(verdict), by[verdict]) for verdict in VERDICTS if by[verdict]]


def paper_views(verdicts: Sequence[ClaimVerdict], sources: Sources) -> list[PaperView]:
    """The papers of the claims, in order."""
    result = []
    for key in dict.fromkeys(j.claim.paper for j in verdicts):
        paper = papers()[key]
        own = [j for j in verdicts if j.claim.paper == key]
        claims = {j.claim.id: _claim_view(j, sources) for j in own}
        entries = []
        for name in dict.fromkeys(j.claim.entry for j in own):
            views = [claims[j.claim.id] for j in own if j.claim.entry == name]
            source = next(j.claim.source for j in own if j.claim.entry == name)
            title = paper.entries.get(name.partition("/")[2], "")
            entries.append(EntryView(name, source, title, views))
        headlines = [claims[i] for h in paper.headlines if (i := f"{key}/{h}") in claims]
        view = PaperView(
            key, paper.name, paper.title, paper.remarks, count(own), verdict_counts(own),
            headlines, entries,
        )  # fmt: skip
        result.append(view)
    return result


def run_views(folder: Path, verdicts: Sequence[ClaimVerdict], sources: Sources) -> list[RunView]:
    """The runs in the order of their numbers; their folders are relative to ``folder``."""
    return [_run_view(folder, verdicts, sources, evidence) for evidence in sources.runs]


def _run_view(
    folder: Path, verdicts: Sequence[ClaimVerdict], sources: Sources, evidence: RunEvidence
) -> RunView:
    record, path = evidence.run.record, evidence.run.path
    day = str(record.get("started", ""))[:8]
    relative = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    return RunView(
        sources.run_number(evidence),
        record.repeat_command,
        sources.machine_number(evidence),
        revision(record),
        f"{day[:4]}-{day[4:6]}-{day[6:]}" if len(day) == 8 else "",
        relative,
        sum(any(f.evidence is evidence for f in j.numbers) for j in verdicts),
        [_figure_view(p) for p in sorted((path / "figures").glob("*.svg"))],
    )


def _figure_view(path: Path) -> FigureView:
    content = path.read_bytes()
    width = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', content)
    data = base64.b64encode(content).decode("ascii")
    return FigureView(
        path.stem,
        f"{MIN_SCALE * float(width[1]):.0f}" if width else "",
        f"data:image/svg+xml;base64,{data}",
    )


def _claim_view(judged: ClaimVerdict, sources: Sources) -> ClaimView:
    claim = judged.claim
    evidences = [f.evidence for f in judged.numbers if f.evidence is not None]
    return ClaimView(
        claim.id, claim.says, judged.verdict, judged.reason, printed(claim), measured(judged),
        claim.note, sorted({sources.machine_number(e) for e in evidences}),
        _evidence(judged, sources),
    )  # fmt: skip


def _evidence(judged: ClaimVerdict, sources: Sources) -> Evidence:
    """A row for each number, and for each number of the paper by graph that was not measured."""
    claim = judged.claim
    if not judged.findings:
        return Evidence([], None)
    points = claim.claim_points()
    findings = judged.numbers
    paper = [_printed_number(claim, points[f.point_index], f) for f in findings]
    scale = scale_of(findings, [bounds for _, bounds in paper if bounds is not None])
    rows = [
        _row(unit_of(claim, points[finding.point_index]), finding, *printed_number, scale, sources)
        for finding, printed_number in zip(findings, paper, strict=True)
    ]
    for row in range(len(judged.findings), len(findings)):
        rows[row] = replace(rows[row], label=f"improved: {rows[row].label}")
    for index, point in enumerate(points):
        own = [f for f in findings if f.point_index == index]
        rows += [
            EvidenceRow(key, number(value, unit_of(claim, point)), MISSING, Markup(), "", "", "")
            for key, value in point.values.items()
            if not any(_is_of(finding, key) for finding in own)
        ]
    unit = unit_of(claim, points[0])
    ends = (number(scale.low, unit), number(scale.high, unit)) if scale else None
    return Evidence(rows, ends)


def _row(
    unit: str,
    finding: Finding,
    paper: str,
    bounds: Bounds | None,
    scale: Scale | None,
    sources: Sources,
) -> EvidenceRow:
    return EvidenceRow(
        finding.label, paper, estimate(finding, unit),
        svg(scale, finding, bounds) if scale else Markup(),
        allowed(finding, unit), finding.verdict,
        "" if finding.reason in DRAWN else finding.reason,
        sources.run_number(finding.evidence) if finding.evidence else 0,
    )  # fmt: skip


def _printed_number(claim: Claim, point: ClaimPoint, finding: Finding) -> tuple[str, Bounds | None]:
    """The paper's number for a measured one, as text and as a range; "" and None without one."""
    for key, value in point.values.items():
        if _is_of(finding, key):
            return number(value, unit_of(claim, point)), (value, value)
    if point.number is None or point.values:
        return "", None
    ends = point.number if isinstance(point.number, tuple) else (point.number, point.number)
    return expected(claim, point), ends


def _is_of(finding: Finding, key: str) -> bool:
    """Whether a number belongs to a graph, or to a graph and a model."""
    graph, _, model = key.partition(" ")
    row = finding.rows[0] if finding.rows else {}
    return graph_of(str(row.get("dataset", ""))) == graph and model in ("", row.get("model"))
