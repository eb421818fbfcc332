"""``docs/verdicts.md``: what the committed runs say of every claim, so that it cannot go stale.

``python -m gnnbench.claims.report`` writes it.
"""

from __future__ import annotations

from pathlib import Path

from gnnbench.claims.claim import choose, papers
from gnnbench.claims.evidence import open_runs
from gnnbench.claims.judge import judge
from gnnbench.claims.text import count, measured, printed
from gnnbench.files import write_text
from gnnbench.results.part import Part
from gnnbench.text import Code

ROOT = Path(__file__).parents[2]
DOCUMENT = Path("docs") / "verdicts.md"
HEAD = """\
# Verdicts

Made from the claims and the committed runs by `python -m gnnbench.claims.report`; do not edit by
hand. What a verdict means and how it comes about: [claims.md](claims.md). The runs:
[results.md](results.md).
"""


def report(root: Path) -> str:
    """The document for the results below ``root/results/reference``."""
    found = judge(choose(), open_runs([root / "results" / "reference"]))
    lines = [HEAD, f"{count(found)}.", ""]
    for name, paper in papers().items():
        own = [j for j in found if j.claim.paper == name]
        rows = [
            {
                "claim": Code(j.claim.id), "says": j.claim.says, "verdict": j.verdict,
                "paper": printed(j.claim), "measured": measured(j),
                "remark": "; ".join(filter(None, (j.reason, j.claim.note))),
            }
            for j in own
        ]  # fmt: skip
        heads = ("claim", "says", "verdict", "paper", "measured", "remark")
        lines += [f"## {paper.title}", "", f"{count(own)}.", "", *Part(heads, rows).markdown(), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    write_text(ROOT / DOCUMENT, report(ROOT))
