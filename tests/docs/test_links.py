"""Links of the documents, and limits on their lengths."""

import re

import pytest
from documents import PAGES, ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
MAX_LINES = {
    "README.md": 80,
    "CHANGELOG.md": 120,
    "docs/architecture.md": 110,
    "docs/style.md": 80,
}


def anchors(page):
    """Anchors that GitHub derives from the headings."""
    heads = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_link_targets_exist(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("name", MAX_LINES)
def test_document_is_within_its_length_limit(name):
    assert len((ROOT / name).read_text().splitlines()) <= MAX_LINES[name]


def test_glossary_has_fewer_than_25_entries():
    rows = [r for r in (ROOT / "docs/glossary.md").read_text().splitlines() if r.startswith("| ")]
    assert len(rows) - 1 < 25
