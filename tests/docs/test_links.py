"""Documents point to files and headings that are there, and are as short as they should be."""

import re

import pytest
from documents import PAGES, ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
LONGEST = {
    "README.md": 80,
    "CHANGELOG.md": 120,
    "docs/architecture.md": 110,
    "docs/style.md": 80,
}


def anchors(page):
    """Headings as a forge names them in links."""
    heads = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("name", LONGEST)
def test_documents_that_are_read_first_are_short(name):
    assert len((ROOT / name).read_text().splitlines()) <= LONGEST[name]


def test_the_glossary_is_short():
    rows = [r for r in (ROOT / "docs/glossary.md").read_text().splitlines() if r.startswith("| ")]
    assert len(rows) - 1 < 25
