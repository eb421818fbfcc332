"""A self-contained HTML page of all verdicts: figures, numbers, machines, links to rows.

The template is ``page.html`` in this folder.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gnnbench.analysis.report import command, machine, revision
from gnnbench.core import text as safe
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.reproduction import bars
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import RunEvidence
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.judge import ClaimVerdict
from gnnbench.reproduction.picture import svg
from gnnbench.reproduction.text import allowed, count, estimate, measured, printed
from gnnbench.reproduction.verdict import VERDICTS

if TYPE_CHECKING:
    from gnnbench.reproduction.reproduce import RunStep

NAME = "index.html"
TEMPLATE = "page.html"
MIN_SCALE = 0.6  # of a figure's own size; below it its text cannot be read

Link = tuple[str, str]
"""Target and text."""


class FindingView(TypedDict):
    """A number of a claim as the template shows it."""

    texts: tuple[str, ...]
    rows: Link | None


class ClaimView(TypedDict):
    """A claim as the template shows it."""

    id: str
    anchor: str
    place: int
    source: str
    says: str
    verdict: str
    reason: str
    printed: str
    measured: str
    note: str
    drawing: Markup
    findings: list[FindingView]


class FigureView(TypedDict):
    """A table or figure of a paper with its claims."""

    anchor: str
    bars: Markup
    claims: list[ClaimView]


class PaperView(TypedDict):
    """A paper with its tables and figures."""

    title: str
    figures: list[FigureView]


class RunView(TypedDict):
    """A run with the claims that rest on it."""

    command: str
    machine: str
    revision: str
    rows: Link
    claims: list[Link]
    figures: list[dict[str, str]]


def write(
    out: Path, size: str, verdicts: Sequence[ClaimVerdict], steps: Sequence[RunStep] = ()
) -> Path:
    """Write the page of verdicts to ``out/index.html``; returns its path."""
    ensure_folder(out)
    path = out / NAME
    write_text(path, html(out, size, verdicts, steps))
    return path


def html(
    out: Path, size: str, verdicts: Sequence[ClaimVerdict], steps: Sequence[RunStep] = ()
) -> str:
    """The page; links to rows are relative to ``out``."""
    runs = _runs(verdicts)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(
        count=count(verdicts),
        size=size,
        machines=list(dict.fromkeys(machine(e.run.record) for e in runs)),
        verdicts=VERDICTS,
        claims=[_claim(out, j) for j in verdicts],
        steps=[(s.run, len(s.claims), s.state, s.reason) for s in steps],
        papers=[
            _paper(out, name, verdicts) for name in dict.fromkeys(j.claim.paper for j in verdicts)
        ],
        runs=[_run(out, verdicts, evidence) for evidence in runs],
    )


def _printable(value: object) -> object:
    """Escape the control characters of a value of the template."""
    return value if isinstance(value, Markup) else safe.printable(str(value))


def _runs(verdicts: Sequence[ClaimVerdict]) -> list[RunEvidence]:
    """Runs that a verdict rests on, in the order of the claims."""
    evidences = [f.evidence for j in verdicts for f in j.findings if f.evidence is not None]
    return list({evidence.run.path: evidence for evidence in evidences}.values())


def _paper(out: Path, name: str, verdicts: Sequence[ClaimVerdict]) -> PaperView:
    """A paper's claims by table or figure."""
    own = [j for j in verdicts if j.claim.paper == name]
    by_entry: dict[str, list[ClaimVerdict]] = {}
    for judged in own:
        by_entry.setdefault(judged.claim.entry, []).append(judged)
    figures: list[FigureView] = [
        {
            "anchor": f"{_anchor(entry)}-figure",
            "bars": Markup(bars.svg(figure)),
            "claims": [_claim(out, j) for j in figure],
        }
        for entry, figure in by_entry.items()
    ]
    return {"title": papers()[name].title, "figures": figures}


def _claim(out: Path, judged: ClaimVerdict) -> ClaimView:
    claim = judged.claim
    return {
        "id": claim.id,
        "anchor": _anchor(claim.id),
        "place": list(VERDICTS).index(judged.verdict),
        "source": claim.source,
        "says": claim.says,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "printed": printed(claim),
        "measured": measured(judged),
        "note": claim.note,
        "drawing": Markup(svg(judged)),
        "findings": [_finding(out, f, claim.unit) for f in judged.findings],
    }


def _finding(out: Path, finding: Finding, unit: str) -> FindingView:
    evidence = finding.evidence
    verdict = finding.verdict + (f" ({finding.reason})" if finding.reason else "")
    where = machine(evidence.run.record) if evidence else "computed"
    return {
        "texts": (
            finding.label, estimate(finding, unit), allowed(finding, unit), verdict, where,
        ),
        "rows": _link(out, evidence.table) if evidence else None,
    }  # fmt: skip


def _run(out: Path, verdicts: Sequence[ClaimVerdict], evidence: RunEvidence) -> RunView:
    """A run: its command and machine, the claims that rest on it, and its figures."""
    record = evidence.run.record
    claims = [j.claim.id for j in verdicts if any(f.evidence is evidence for f in j.findings)]
    return {
        "command": command(record),
        "machine": machine(record),
        "revision": revision(record),
        "rows": _link(out, evidence.table),
        "claims": [(_anchor(claim), claim) for claim in claims],
        "figures": [_figure(f) for f in sorted((evidence.run.path / "figures").glob("*.svg"))],
    }


def _link(out: Path, path: Path) -> Link:
    """Target and text of a link to a file."""
    relative = Path(os.path.relpath(path.resolve(), out.resolve())).as_posix()
    return quote(relative), path.name


def _figure(path: Path) -> dict[str, str]:
    content = path.read_bytes()
    data = base64.b64encode(content).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    return {"name": path.stem, "width": _min_width(content), "source": source}


def _min_width(content: bytes) -> str:
    """Width in points below which a wide figure is scrolled rather than shrunk, or ""."""
    width = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', content)
    return f"{MIN_SCALE * float(width[1]):.0f}" if width else ""


def _anchor(ident: str) -> str:
    return ident.replace("/", "-")
