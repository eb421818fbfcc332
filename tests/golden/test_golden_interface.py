"""What users type and read changes only on purpose."""

from __future__ import annotations

import difflib

import golden_interface
import pytest
from golden_files import HERE, read_lines

CURRENT = golden_interface.current()


@pytest.mark.parametrize("name", CURRENT)
def test_the_public_interface_is_the_golden_one(name: str) -> None:
    golden = read_lines(name)
    changed = "\n".join(difflib.unified_diff(golden, CURRENT[name], "golden", "now", n=0))
    assert not changed, changed


def test_no_golden_text_is_left_over() -> None:
    assert {path.name for path in HERE.glob("*.txt")} == {*CURRENT, "ids.txt", "verdicts.txt"}
