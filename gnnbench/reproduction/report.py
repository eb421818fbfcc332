"""Write ``docs/verdicts.md`` and a page for each paper in ``docs/verdicts/``, from committed runs.

Command: ``python -m gnnbench.reproduction.report``. A test compares the files with claims and runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gnnbench.analysis.table_layout import TextTable
from gnnbench.core import text as safe
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.core.text import Code
from gnnbench.reproduction.claim import choose, papers
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.text import count, measured, printed
from gnnbench.reproduction.verdict import HOLDS, IMPROVED, REFUTED, SHAPE, VERDICTS

ROOT = Path(__file__).parents[2]
DOCUMENT = Path("docs") / "verdicts.md"
PAGES = Path("docs") / "verdicts"
DECIDED = (HOLDS, SHAPE, IMPROVED, REFUTED)
HEAD = """\
# Verdicts

What the committed [results](results.md) say about the papers' claims.
`python -m gnnbench.reproduction.report` writes this page and the pages of the papers; do not edit
them by hand. How claims are judged: [claims.md](claims.md).
"""
PAGE_HEAD = """\
# {title}

`python -m gnnbench.reproduction.report` writes this page; do not edit it by hand. The meaning of
each verdict: [verdicts](../verdicts.md).

{count}.
"""


def documents(root: Path) -> dict[Path, str]:
    """All generated documents by their paths below ``root``, for the runs in its ``results``."""
    verdicts = judge(choose(), open_runs([root / "results" / "reference"]))
    by_paper = {name: [j for j in verdicts if j.claim.paper == name] for name in papers()}
    pages = {PAGES / f"{name}.md": _page(name, own) for name, own in by_paper.items()}
    return {DOCUMENT: _overview(verdicts, by_paper), **pages}


def _overview(verdicts: Sequence[ClaimVerdict], by_paper: dict[str, list[ClaimVerdict]]) -> str:
    lines = [HEAD, f"{count(verdicts)}.", ""]
    lines += [
        "| paper | claims | " + " | ".join(VERDICTS) + " |",
        "| --- |" + " ---: |" * (len(VERDICTS) + 1),
    ]
    for name, own in by_paper.items():
        by = Counter(j.verdict for j in own)
        counts = " | ".join(str(by[verdict] or "") for verdict in VERDICTS)
        title = safe.markdown(papers()[name].title)
        lines += [f"| [{title}](verdicts/{name}.md) | {len(own)} | {counts} |"]
    meanings = [{"verdict": verdict, "meaning": text} for verdict, text in VERDICTS.items()]
    lines += ["", *TextTable(("verdict", "meaning"), meanings).markdown()]
    return "\n".join(lines) + "\n"


def _page(name: str, own: Sequence[ClaimVerdict]) -> str:
    """The page of a paper: a table of decided claims, and a collapsed one of the others."""
    decided = [j for j in own if j.verdict in DECIDED]
    others = [j for j in own if j.verdict not in DECIDED]
    by = Counter(j.verdict for j in others)
    counts = ", ".join(f"{by[verdict]} {verdict}" for verdict in VERDICTS if by[verdict])
    lines = [PAGE_HEAD.format(title=safe.markdown(papers()[name].title), count=count(own))]
    lines += [*_table(decided), ""] if decided else []
    if others:
        lines += [f"<details><summary>{len(others)} undecided claims: {counts}</summary>", ""]
        lines += [*_table(others), "", "</details>"]
    return "\n".join(lines).rstrip() + "\n"


def _table(claims: Sequence[ClaimVerdict]) -> list[str]:
    rows = [
        {
            "claim": Code(j.claim.id.partition("/")[2]), "statement": j.claim.says,
            "paper": printed(j.claim), "measured": measured(j), "verdict": _verdict(j),
        }
        for j in claims
    ]  # fmt: skip
    return TextTable(("claim", "statement", "paper", "measured", "verdict"), rows).markdown()


def _verdict(judged: ClaimVerdict) -> str:
    """Verdict, reason and the claim's note as sentences."""
    sentences = (judged.verdict, judged.reason, judged.claim.note)
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences if text)


def write(root: Path) -> None:
    """Write all documents."""
    for path, text in documents(root).items():
        ensure_folder((root / path).parent)
        write_text(root / path, text)


if __name__ == "__main__":
    write(ROOT)
