"""The sentence on how long cells took to be ready."""

from gnnbench.analysis import metrics as m
from gnnbench.analysis.startup import DEFINITION, startup_line

ROW = {"dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "recipe": "{}"}


def cell(system):
    return {**ROW, "id": system, "system": system}


def test_the_quickest_and_the_slowest_are_named():
    rows = [cell(name) for name in ("a", "b", "c", "absent")]
    told = [
        m.metric(name, "start", m.START, s) for name, s in zip("abc", (4.0, 2.5, 50.0), strict=True)
    ]
    assert startup_line(rows, told) == [f"start-up: 2.5 s (b) to 50 s (c), {DEFINITION}"]
    assert startup_line(rows[:1], told) == [f"start-up: 4 s, {DEFINITION}"]


def test_runs_that_do_not_tell_have_none():
    assert startup_line([cell("a")], [m.metric("a", "open", m.OPEN, 2.0)]) == []
