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
from gnnbench.core.text import Code, Marked
from gnnbench.reproduction.claim import UPTO_TOLERANCE, Claim, choose, papers
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.number_text import measured, printed
from gnnbench.reproduction.text import count
from gnnbench.reproduction.verdict import CONTRADICTED, IMPROVED, SUPPORTED, VERDICTS

ROOT = Path(__file__).parents[2]
DOCUMENT = Path("docs") / "verdicts.md"
PAGES = Path("docs") / "verdicts"
DECIDED = (*SUPPORTED, IMPROVED, *CONTRADICTED)
HEAD = """\
# Verdicts

What the committed [results](results.md) say about the papers' claims.
`python -m gnnbench.reproduction.report` writes this page and the pages of the papers; do not edit
them by hand. How claims are judged: [claims.md](claims.md).
"""
RULES = f"""
For a mean, the mean counts. For "up to X", the best number counts: it must reach
{100 * (1 - UPTO_TOLERANCE):.0f} % of X or the claim's own tolerance. Otherwise every number counts.
"""
# Fields that differ between two claims about the same numbers.
OWN_FIELDS = {"id", "source", "says", "note", "cells", "runs"}
PAGE_HEAD = """\
# {title}

`python -m gnnbench.reproduction.report` writes this page; do not edit it by hand. The meaning of
each verdict: [verdicts](../verdicts.md). Runs and intervals of all numbers:
`gnnbench verdicts results/reference --paper {name} --html report.html`.

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
    return "\n".join(lines) + f"\n{RULES}"


def _page(name: str, own: Sequence[ClaimVerdict]) -> str:
    """The page of a paper: a table of decided claims, and a collapsed one of the others."""
    decided = [j for j in own if j.verdict in DECIDED]
    others = [j for j in own if j.verdict not in DECIDED]
    by = Counter(j.verdict for j in others)
    counts = ", ".join(f"{by[verdict]} {verdict}" for verdict in VERDICTS if by[verdict])
    lines = [_page_head(name, own)]
    lines += [*_table(decided), ""] if decided else []
    if others:
        lines += [f"<details><summary>{len(others)} undecided claims: {counts}</summary>", ""]
        lines += [*_table(others), "", "</details>"]
    return "\n".join(lines).rstrip() + "\n"


def _page_head(name: str, own: Sequence[ClaimVerdict]) -> str:
    paper = papers()[name]
    head = PAGE_HEAD.format(name=name, title=safe.markdown(paper.title), count=count(own))
    remarks = "".join(f"- {safe.markdown(Marked(sentence(text)))}\n" for text in paper.remarks)
    return head + (f"\nOn several claims:\n\n{remarks}" if remarks else "")


def _table(claims: Sequence[ClaimVerdict]) -> list[str]:
    rows = [
        {
            "claim": Code(j.claim.id.partition("/")[2]), "source": j.claim.source,
            "statement": Marked(sentence(j.claim.says)), "paper": printed(j.claim),
            "measured": measured(j), "verdict": _verdict(j),
        }
        for j in claims
    ]  # fmt: skip
    heads = ("claim", "source", "statement", "paper", "measured", "verdict")
    return TextTable(heads, rows).markdown()


def _verdict(judged: ClaimVerdict) -> Marked:
    """Verdict, reason, the claim's note, and the claim that it repeats, as sentences."""
    claim = judged.claim
    same = repeated(claim)
    repeats = f"the same numbers as of `{same.partition('/')[2]}`" if same else ""
    texts = (judged.verdict, judged.reason, claim.note, repeats)
    return Marked(" ".join(sentence(text) for text in texts if text))


def sentence(text: str) -> str:
    """A text with a full stop and, unless it begins with code, a capital letter."""
    return f"{text[0].upper()}{text[1:]}."


def repeated(claim: Claim) -> str:
    """The id of the paper's first claim with the same numbers and bounds; "" for that claim."""
    if not claim.measure:
        return ""
    fields = claim.model_dump(exclude=OWN_FIELDS)
    first = next(
        c for c in papers()[claim.paper].claim if c.model_dump(exclude=OWN_FIELDS) == fields
    )
    return "" if first.id == claim.id else first.id


def write(root: Path) -> None:
    """Write all documents."""
    for path, text in documents(root).items():
        ensure_folder((root / path).parent)
        write_text(root / path, text)


if __name__ == "__main__":
    write(ROOT)
