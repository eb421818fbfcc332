import re
import shutil

import pytest

from gnnbench.core.text import Marked, markdown
from gnnbench.reproduction.claim import choose, papers
from gnnbench.reproduction.report import DECIDED, DOCUMENT, PAGES, ROOT, documents
from gnnbench.reproduction.verdict import VERDICTS


@pytest.fixture(scope="module")
def generated():
    return documents(ROOT)


def test_documents_are_up_to_date(generated):
    files = {path.relative_to(ROOT) for path in (ROOT / PAGES).glob("*.md")} | {DOCUMENT}
    assert files == generated.keys()
    for path, text in generated.items():
        assert (ROOT / path).read_text() == text, "run 'python -m gnnbench.reproduction.report'"


def test_every_claim_is_in_the_page_of_its_paper(generated):
    for claim in choose():
        says = f"{claim.says[0].upper()}{claim.says[1:]}."
        row = f"| `{claim.id.partition('/')[2]}` | {claim.source} | {markdown(Marked(says))} |"
        assert row in generated[PAGES / f"{claim.paper}.md"]


def test_undecided_claims_are_collapsed(generated):
    for name in papers():
        text = generated[PAGES / f"{name}.md"]
        shown, _, collapsed = text.partition("<details>")
        assert collapsed.rstrip().endswith("</details>")
        for part, verdicts in ((shown, DECIDED), (collapsed, VERDICTS.keys() - set(DECIDED))):
            verdict_cells = {
                row.rpartition(" | ")[2] for row in part.splitlines() if row[:3] == "| `"
            }
            first = {cell.partition(".")[0].lower() for cell in verdict_cells}
            assert first and first <= set(verdicts)


def test_overview_counts_claims_and_links_pages(generated):
    text = generated[DOCUMENT]
    rows = dict(re.findall(r"\]\(verdicts/([a-z-]+)\.md\) \| (\d+) \|", text))
    assert rows == {name: str(len(choose([name]))) for name in papers()}
    assert len(text.splitlines()) < 40


def test_documents_are_short(generated):
    assert all(len(text.encode()) <= 60_000 for text in generated.values())


def test_documents_depend_on_results(generated, tmp_path):
    run = ROOT / "results" / "reference" / "xeon-2-threads" / "match-degree"
    shutil.copytree(run, tmp_path / "results" / "reference" / "run")
    assert documents(tmp_path)[DOCUMENT] != generated[DOCUMENT]
