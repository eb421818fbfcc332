"""Every planted fault still fits the code, so that ``mutants.py`` can plant it."""

from pathlib import Path

import mutants
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", mutants.mutants(), ids=lambda mutant: mutant.name)
def test_a_planted_fault_has_one_place_and_tests(mutant):
    assert mutants.place(mutant, ROOT / "gnnbench").is_file()
    assert mutants.files(mutant, ROOT)


def test_a_fault_without_a_place_is_reported(tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    stale = mutants.Mutant("stale", "area", "y = 2", "y = 3", ["test_cell"])
    with pytest.raises(LookupError, match="stale: its text occurs 0 times"):
        mutants.place(stale, tmp_path)
