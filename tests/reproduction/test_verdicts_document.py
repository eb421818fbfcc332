import re
import shutil

import pytest

from gnnbench.core.text import markdown
from gnnbench.reproduction.claim import choose, papers
from gnnbench.reproduction.report import DECIDED, DOCUMENT, PAGES, ROOT, documents
from gnnbench.reproduction.verdict import VERDICTS


@pytest.fixture(scope="module")
def made():
    return documents(ROOT)


def test_the_documents_are_what_the_claims_and_the_committed_runs_say(made):
    there = {path.relative_to(ROOT) for path in (ROOT / PAGES).glob("*.md")} | {DOCUMENT}
    assert there == made.keys()
    for path, text in made.items():
        assert (ROOT / path).read_text() == text, "run 'python -m gnnbench.reproduction.report'"


def test_every_claim_stands_in_the_page_of_its_paper(made):
    for claim in choose():
        row = f"| `{claim.id.partition('/')[2]}` | {markdown(claim.says)} |"
        assert row in made[PAGES / f"{claim.paper}.md"]


def test_undecided_claims_are_collapsed(made):
    for name in papers():
        text = made[PAGES / f"{name}.md"]
        shown, _, collapsed = text.partition("<details>")
        assert collapsed.rstrip().endswith("</details>")
        for part, verdicts in ((shown, DECIDED), (collapsed, VERDICTS.keys() - set(DECIDED))):
            found = {row.rpartition(" | ")[2] for row in part.splitlines() if row[:3] == "| `"}
            first = {cell.partition(".")[0].lower() for cell in found}
            assert first and first <= set(verdicts)


def test_the_overview_counts_the_claims_and_links_the_pages(made):
    text = made[DOCUMENT]
    rows = dict(re.findall(r"\]\(verdicts/([a-z-]+)\.md\) \| (\d+) \|", text))
    assert rows == {name: str(len(choose([name]))) for name in papers()}
    assert len(text.splitlines()) < 40


def test_documents_are_short(made):
    assert all(len(text.encode()) <= 60_000 for text in made.values())


def test_other_results_are_another_document(made, tmp_path):
    run = ROOT / "results" / "reference" / "xeon-2-threads" / "match-degree"
    shutil.copytree(run, tmp_path / "results" / "reference" / "run")
    assert documents(tmp_path)[DOCUMENT] != made[DOCUMENT]
