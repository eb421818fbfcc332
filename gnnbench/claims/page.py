"""One page of all verdicts, whole in itself: pictures, the paper's numbers, machine, rows."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gnnbench.claims import bars
from gnnbench.claims.claim import papers
from gnnbench.claims.evidence import Opened
from gnnbench.claims.judge import VERDICTS, Finding, Judged
from gnnbench.claims.picture import svg
from gnnbench.claims.text import allowed, count, estimate, measured, printed
from gnnbench.files import ensure_folder, write_text
from gnnbench.results.report import command, machine, revision
from gnnbench.text import html as escape

if TYPE_CHECKING:
    from gnnbench.claims.reproduce import Step

NAME = "index.html"
READABLE = 0.6  # of its own size a figure can be read
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em;
  color: #222; background: #fff; }
h2 { margin-top: 2em; border-bottom: 1px solid #ccc; }
article { margin: 1.2em 0; padding: .6em 1em; border-left: 4px solid #ccc; }
article h3 { margin: 0; font-size: 1em; }
article p { margin: .3em 0; }
table { border-collapse: collapse; margin: .5em 0; font-size: .9em; }
td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { overflow-wrap: normal; }
svg { max-width: 100%; }
svg text { font: 11px system-ui, sans-serif; fill: #555; }
svg text.name { fill: #222; }
.figure { overflow-x: auto; }
.figure img { max-width: 100%; }
.verdict { font-weight: bold; }
.v0 { border-color: #009E73; } .v1 { border-color: #56B4E9; } .v3 { border-color: #D55E00; }
.small { color: #666; font-size: .9em; }
"""


def write(out: Path, size: str, found: Sequence[Judged], steps: Sequence[Step] = ()) -> Path:
    """Write the page of verdicts to ``out/index.html``; returns its path."""
    ensure_folder(out)
    path = out / NAME
    write_text(path, html(out, size, found, steps))
    return path


def html(out: Path, size: str, found: Sequence[Judged], steps: Sequence[Step] = ()) -> str:
    """The page; links to rows are relative to ``out``."""
    runs = _runs(found)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>gnnbench: which claims hold on this machine</title>",
        f"<style>{STYLE}</style></head><body>",
        "<h1>Which claims hold on this machine</h1>",
        f"<p>{escape(count(found))}. Profile {escape(size)}.</p>",
        *(f"<p>{escape(text)}</p>" for text in _machines(runs)),
        _meanings(),
        _contents(found),
        _plan(steps),
        *_claims(out, found),
        *_figures(out, found, runs),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _runs(found: Sequence[Judged]) -> list[Opened]:
    """Runs that a verdict rests on, in the order of the claims."""
    by = {f.opened.run.path: f.opened for j in found for f in j.findings if f.opened is not None}
    return list(by.values())


def _machines(runs: Sequence[Opened]) -> list[str]:
    return list(dict.fromkeys(machine(o.run.record) for o in runs))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML."""
    head = "".join(f"<th>{h}</th>" for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _meanings() -> str:
    return _table(
        ("verdict", "meaning"), [(escape(v), escape(text)) for v, text in VERDICTS.items()]
    )


def _contents(found: Sequence[Judged]) -> str:
    rows = [
        (
            f'<a href="#{_anchor(j.claim.id)}">{escape(j.claim.id)}</a>',
            escape(j.verdict), escape(printed(j.claim)), escape(measured(j)),
        )
        for j in found
    ]  # fmt: skip
    return "<h2>All claims</h2>" + _table(("claim", "verdict", "paper", "measured"), rows)


def _plan(steps: Sequence[Step]) -> str:
    if not steps:
        return ""
    rows = [(escape(s.run), str(len(s.claims)), escape(s.state), escape(s.reason)) for s in steps]
    return "<h2>Runs</h2>" + _table(("run", "claims", "state", "remark"), rows)


def _claims(out: Path, found: Sequence[Judged]) -> list[str]:
    parts = []
    for name in dict.fromkeys(j.claim.paper for j in found):
        parts.append(f"<h2>{escape(papers()[name].title)}</h2>")
        own = [j for j in found if j.claim.paper == name]
        for entry in dict.fromkeys(j.claim.entry for j in own):
            figure = [j for j in own if j.claim.entry == entry]
            parts.append(f'<section id="{_anchor(entry)}-figure">{bars.svg(figure)}')
            parts += [_claim(out, j) for j in figure]
            parts.append("</section>")
    return parts


def _claim(out: Path, judged: Judged) -> str:
    claim = judged.claim
    place = list(VERDICTS).index(judged.verdict)
    lines = [
        f'<article class="v{place}" id="{_anchor(claim.id)}">',
        f"<h3>{escape(claim.id)}: {escape(claim.source)}</h3>",
        f"<p>{escape(claim.says)}</p>",
        f'<p><span class="verdict">{escape(judged.verdict)}</span>'
        + (f": {escape(judged.reason)}" if judged.reason else "")
        + "</p>",
    ]
    if paper := printed(claim):
        told = measured(judged) or "nothing"
        lines.append(f"<p>paper {escape(paper)}; measured {escape(told)}</p>")
    if claim.note:
        lines.append(f'<p class="small">{escape(claim.note)}</p>')
    lines.append(svg(judged))
    if judged.findings:
        rows = [_row(out, f, claim.unit) for f in judged.findings]
        lines.append(_table(("of", "measured", "allowed", "by itself", "on", "rows"), rows))
    return "".join([*lines, "</article>"])


def _row(out: Path, finding: Finding, unit: str) -> tuple[str, ...]:
    opened = finding.opened
    verdict = finding.verdict + (f" ({finding.reason})" if finding.reason else "")
    where = machine(opened.run.record) if opened else "computed"
    link = _link(out, opened.table) if opened else ""
    told = (finding.what, estimate(finding, unit), allowed(finding, unit), verdict, where)
    return (*map(escape, told), link)


def _link(out: Path, path: Path) -> str:
    relative = Path(os.path.relpath(path.resolve(), out.resolve())).as_posix()
    return f'<a href="{escape(quote(relative))}">{escape(path.name)}</a>'


def _figures(out: Path, found: Sequence[Judged], runs: Sequence[Opened]) -> list[str]:
    """Figures of the runs, within the page."""
    parts = []
    for opened in runs:
        path, record = opened.run.path, opened.run.record
        claims = [j.claim.id for j in found if any(f.opened is opened for f in j.findings)]
        told = ", ".join(f'<a href="#{_anchor(c)}">{escape(c)}</a>' for c in claims)
        parts.append(
            f"<h2>{escape(command(record))}</h2><p>{escape(machine(record))}"
            f" {escape(revision(record))}. {_link(out, opened.table)}. Claims: {told}</p>"
        )
        for figure in sorted((path / "figures").glob("*.svg")):
            drawn = figure.read_bytes()
            data = base64.b64encode(drawn).decode("ascii")
            parts.append(
                f'<p class="figure"><img alt="{escape(figure.stem)}"{_least_width(drawn)}'
                f' src="data:image/svg+xml;base64,{data}"></p>'
            )
    return parts


def _least_width(drawn: bytes) -> str:
    """A wide figure is scrolled rather than made too small to be read."""
    found = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', drawn)
    return f' style="min-width: {READABLE * float(found[1]):.0f}pt"' if found else ""


def _anchor(ident: str) -> str:
    return ident.replace("/", "-")
