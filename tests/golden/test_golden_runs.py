"""Journals of committed runs give the tables that they gave.

The last digit of a number may differ: processors add and round in another order.
"""

from __future__ import annotations

import math

import golden_runs
import pytest

ROUNDING = 1e-13


def are_equal(text: str | None, other: str | None) -> bool:
    """Whether two values of a table are equal but for the rounding of their last digit."""
    if text == other or text is None or other is None:
        return text == other
    try:
        return math.isclose(float(text), float(other), rel_tol=ROUNDING)
    except ValueError:
        return False


@pytest.mark.parametrize("run", golden_runs.names())
def test_tables_of_a_journal_are_the_golden_ones(run: str, tmp_path) -> None:
    golden_runs.unpack(run, tmp_path)
    current, golden = golden_runs.compute(tmp_path), golden_runs.expected(run)
    assert current.keys() == golden.keys()
    for name, table in golden.items():
        rows, pinned = (golden_runs.without_text(one) for one in (current[name], table))
        assert len(rows) == len(pinned), name
        for place, (row, one) in enumerate(zip(rows, pinned, strict=True)):
            changed = {
                k: (one.get(k), row.get(k))
                for k in {**one, **row}
                if not are_equal(one.get(k), row.get(k))
            }
            assert not changed, f"{name}, row {place + 1}: {changed}"
