"""One page of all verdicts, whole in itself: figures, the paper's numbers, machines, links to rows.

The page is the template ``page.html`` beside this file.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gnnbench.analysis.report import command, machine, revision
from gnnbench.core import text as safe
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.reproduction import bars
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import Opened
from gnnbench.reproduction.judge import Finding, Judged
from gnnbench.reproduction.picture import svg
from gnnbench.reproduction.text import allowed, count, estimate, measured, printed
from gnnbench.reproduction.verdict import VERDICTS

if TYPE_CHECKING:
    from gnnbench.reproduction.reproduce import Step

NAME = "index.html"
TEMPLATE = "page.html"
READABLE = 0.6  # share of its own size at which a figure can be read


def write(out: Path, size: str, found: Sequence[Judged], steps: Sequence[Step] = ()) -> Path:
    """Write the page of verdicts to ``out/index.html``; returns its path."""
    ensure_folder(out)
    path = out / NAME
    write_text(path, html(out, size, found, steps))
    return path


def html(out: Path, size: str, found: Sequence[Judged], steps: Sequence[Step] = ()) -> str:
    """The page; links to rows are relative to ``out``."""
    runs = _runs(found)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(
        count=count(found),
        size=size,
        machines=list(dict.fromkeys(machine(o.run.record) for o in runs)),
        verdicts=VERDICTS,
        claims=[_claim(out, j) for j in found],
        steps=[(s.run, len(s.claims), s.state, s.reason) for s in steps],
        papers=[_paper(out, name, found) for name in dict.fromkeys(j.claim.paper for j in found)],
        runs=[_run(out, found, opened) for opened in runs],
    )


def _printable(value: object) -> object:
    """Every value of the template: control characters are shown, not sent."""
    return value if isinstance(value, Markup) else safe.printable(str(value))


def _runs(found: Sequence[Judged]) -> list[Opened]:
    """Runs that a verdict rests on, in the order of the claims."""
    by = {f.opened.run.path: f.opened for j in found for f in j.findings if f.opened is not None}
    return list(by.values())


def _paper(out: Path, name: str, found: Sequence[Judged]) -> dict[str, Any]:
    """A paper's claims by table or figure."""
    own = [j for j in found if j.claim.paper == name]
    by_entry: dict[str, list[Judged]] = {}
    for judged in own:
        by_entry.setdefault(judged.claim.entry, []).append(judged)
    figures = [
        {
            "anchor": f"{_anchor(entry)}-figure",
            "bars": Markup(bars.svg(figure)),
            "claims": [_claim(out, j) for j in figure],
        }
        for entry, figure in by_entry.items()
    ]
    return {"title": papers()[name].title, "figures": figures}


def _claim(out: Path, judged: Judged) -> dict[str, Any]:
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


def _finding(out: Path, finding: Finding, unit: str) -> dict[str, Any]:
    opened = finding.opened
    verdict = finding.verdict + (f" ({finding.reason})" if finding.reason else "")
    where = machine(opened.run.record) if opened else "computed"
    return {
        "texts": (
            finding.what, estimate(finding, unit), allowed(finding, unit), verdict, where,
        ),
        "rows": _link(out, opened.table) if opened else None,
    }  # fmt: skip


def _run(out: Path, found: Sequence[Judged], opened: Opened) -> dict[str, Any]:
    """A run: what it is, the claims that rest on it, and its figures, within the page."""
    record = opened.run.record
    claims = [j.claim.id for j in found if any(f.opened is opened for f in j.findings)]
    return {
        "command": command(record),
        "machine": machine(record),
        "revision": revision(record),
        "rows": _link(out, opened.table),
        "claims": [(_anchor(claim), claim) for claim in claims],
        "figures": [_figure(f) for f in sorted((opened.run.path / "figures").glob("*.svg"))],
    }


def _link(out: Path, path: Path) -> tuple[str, str]:
    """Target and text of a link to a file."""
    relative = Path(os.path.relpath(path.resolve(), out.resolve())).as_posix()
    return quote(relative), path.name


def _figure(path: Path) -> dict[str, str]:
    drawn = path.read_bytes()
    data = base64.b64encode(drawn).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    return {"name": path.stem, "width": _least_width(drawn), "source": source}


def _least_width(drawn: bytes) -> str:
    """Points of width below which a wide figure is scrolled rather than shrunk, or ""."""
    found = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', drawn)
    return f"{READABLE * float(found[1]):.0f}" if found else ""


def _anchor(ident: str) -> str:
    return ident.replace("/", "-")
