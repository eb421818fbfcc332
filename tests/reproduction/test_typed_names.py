"""Names of papers and figures as users type them."""

import pytest

from gnnbench.core.errors import UsageError
from gnnbench.reproduction import figures
from gnnbench.reproduction.claim import choose


def test_names_ignore_case():
    assert figures.is_one("FastGL/Fig15")
    assert figures.find("FastGL/Fig15").name == "fastgl/fig15"
    assert choose(["FastGL/Table4"]) == choose(["fastgl/table4"])


def test_unknown_paper_lists_known_papers():
    with pytest.raises(UsageError, match=r"unknown paper 'nosuch'; known are [a-z, -]+$"):
        choose(["nosuch"])
