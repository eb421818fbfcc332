"""Journals of committed runs give the tables that they gave."""

from __future__ import annotations

import golden_runs
import pytest


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
                k: (one.get(k), row.get(k)) for k in {**one, **row} if one.get(k) != row.get(k)
            }
            assert not changed, f"{name}, row {place + 1}: {changed}"
