"""Papers and figures as people type them."""

import pytest

from gnnbench.core.errors import UsageError
from gnnbench.reproduction import figures
from gnnbench.reproduction.claim import choose


def test_letters_may_be_of_either_case():
    assert figures.is_one("FastGL/Fig15")
    assert figures.find("FastGL/Fig15").name == "fastgl/fig15"
    assert choose(["FastGL/Table4"]) == choose(["fastgl/table4"])


def test_an_unknown_paper_is_answered_with_the_papers_alone():
    with pytest.raises(UsageError, match=r"unknown paper 'nosuch'; known are [a-z, -]+$"):
        choose(["nosuch"])
