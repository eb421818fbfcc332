"""The committed results say of every claim what they said."""

from __future__ import annotations

import golden_verdicts
from golden_files import read_json, read_lines


def test_verdicts_and_their_numbers_are_the_golden_ones() -> None:
    current = golden_verdicts.current()
    assert golden_verdicts.lines(current) == read_lines(golden_verdicts.LINES)
    golden = read_json(golden_verdicts.ARCHIVE)
    changed = [claim for claim, known in golden.items() if current.get(claim) != known]
    assert not changed, f"other numbers in: {', '.join(changed)}"
    assert current.keys() == golden.keys()
