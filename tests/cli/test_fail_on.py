"""``run --fail-on slower`` ends with the exit code of a regression."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gnnbench.cli import running
from gnnbench.harness import campaign


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
    outcome.rows, outcome.exit_code = rows, failed
    assert said(*COMMAND, "--fail-on", "slower")[0] == expected
    assert said(*COMMAND)[0] == failed


def test_other_conditions_are_refused(said, outcome):
    code, _, err = said(*COMMAND, "--fail-on", "faster")
    assert code == 2 and "faster" in err
