"""``run --fail-on slower`` ends with the exit code of a regression."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gnnbench.cli import running
from gnnbench.harness import campaign
from gnnbench.schema import CellRow


@dataclass
class Outcome:
    rows: list
    folder: Path = Path("x")
    exit_code: int = 0
    more: list = field(default_factory=list)


@pytest.fixture
def outcome(monkeypatch):
    """Runs nothing; returns the outcome that the command reports."""
    fake = Outcome([])
    monkeypatch.setattr(campaign, "run", lambda request, display: fake)
    monkeypatch.setattr("gnnbench.analysis.plots.draw", lambda folder, figures: [])
    monkeypatch.setattr(running, "_show_run", lambda *shown: None)
    return fake


ROW = {
    "id": "a", "system": "dgl", "reference": "baseline", "ratio": 0.8, "ratio_ci_low": 0.7,
    "ratio_ci_high": 0.9, "pairs": 5,
}  # fmt: skip
COMMAND = ("run", "breakdown", "--profile", "smoke", "--systems", "baseline,fastsample")


@pytest.mark.parametrize(
    "rows,failed,expected",
    [
        ([{"verdict": "slower", "p_adjusted": 0.01}], 0, 5),
        ([{"verdict": "slower", "p_adjusted": None}], 0, 5),
        ([{"verdict": "slower", "p_adjusted": 0.2}], 0, 0),
        ([{"verdict": "faster", "p_adjusted": 0.01}], 0, 0),
        ([{"verdict": "slower", "p_adjusted": 0.01}], 3, 3),
    ],
)
def test_significant_slowdown_sets_the_exit_code(said, outcome, rows, failed, expected):
    outcome.rows, outcome.exit_code = [CellRow(**ROW | row) for row in rows], failed
    code, _, err = said(*COMMAND, "--fail-on", "slower")
    assert code == expected
    assert ("dgl is slower than baseline: 0.80x [0.70, 0.90]" in err) == (expected == 5)
    assert said(*COMMAND)[0] == failed


def test_with_environments_only_their_rows_count(capsys):
    """A system that is slower than its reference in this environment is no regression."""
    here = CellRow(**ROW, verdict="slower", p_adjusted=0.01)
    there = CellRow(**ROW | {"id": "b"}, verdict="slower", p_adjusted=0.01, env="old")
    assert not running._say_slower([here], others=True)
    assert running._say_slower([here], others=False)
    capsys.readouterr()
    assert running._say_slower([here, there], others=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert "dgl env=old" in line


def test_other_conditions_are_refused(said, outcome):
    code, _, err = said(*COMMAND, "--fail-on", "faster")
    assert code == 2 and "faster" in err
