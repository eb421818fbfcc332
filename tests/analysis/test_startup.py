"""The sentence on how long cells took to be ready."""

from gnnbench.analysis import metrics as m
from gnnbench.analysis.render import START_UP, startup_line

ROW = {"dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "recipe": "{}"}


def cell(system):
    return {**ROW, "id": system, "system": system}


def test_shortest_and_longest_start_up_are_named():
    rows = [cell(name) for name in ("a", "b", "c", "absent")]
    metrics = [
        m.metric(name, "start", m.START, s) for name, s in zip("abc", (4.0, 2.5, 50.0), strict=True)
    ]
    assert startup_line(rows, metrics) == [f"start-up: 2.5 s (b) to 50 s (c), {START_UP}"]
    assert startup_line(rows[:1], metrics) == [f"start-up: 4 s, {START_UP}"]


def test_runs_without_start_up_times_have_no_line():
    assert startup_line([cell("a")], [m.metric("a", "open", m.OPEN, 2.0)]) == []
