"""Runs of the experiment ``match-degree``."""

import pytest

from gnnbench.analysis.metrics import Metrics
from gnnbench.core import counters
from gnnbench.core.cell import Cell, Until
from gnnbench.harness.pairing import _has_profile
from gnnbench.systems.runtime.find import find

DEFINITION = """
schema_version = 2
extends = "match-degree"
default_profile = ""
[axes]
dataset = ["rmat@10"]
batch_size = [64]
fanouts = [[10, 5]]
until = ["memory_io", "compute"]
model = ["gcn"]
hidden = [16]
learning_rate = [0.003]
"baseline.features" = ["host", "match"]
[[constraints]]
exclude = { "baseline.features" = "match", "baseline.order" = "as-drawn" }
[[constraints]]
exclude = { "baseline.features" = "host", "baseline.order" = "greedy" }
[measure]
pairs = [1]
rounds = 2
unstable_half_width = 0.0
"""


@pytest.mark.parametrize(
    "until,features,expected",
    [
        ("sample", "host", True), ("memory_io", "match", True), ("memory_io", "window", True),
        ("memory_io", "cache", True), ("memory_io", "host", False), ("compute", "match", False),
    ],
)  # fmt: skip
def test_profiled_cells(until, features, expected):
    recipe = find("baseline").definition.changed({"features": features})
    until_phase = Until.of(until)
    cell = Cell(
        "e",
        "baseline",
        "d",
        "",
        until=until,
        recipe=recipe.resolved("cpu", until_phase).plain(until_phase),
    )
    assert _has_profile(cell) is expected


@pytest.mark.timeout(300)
def test_reordered_epochs_are_identical_work(measured):
    """Cells of a custom batch order pass all checks; match degrees are reported only where
    overlap is used."""
    run = measured(DEFINITION)
    rows = {(r["until"], "greedy" in r["recipe"]): r for r in run.cells}
    assert len(rows) == len(run.cells) == 4
    assert {r["status"] for r in rows.values()} == {"ok"}, [r["reason"] for r in rows.values()]
    known = Metrics(run.metrics)
    for until in ("memory_io", "compute"):
        plain, greedy = rows[until, False]["id"], rows[until, True]["id"]
        assert rows[until, True]["work_class"] == "identical"
        host, less = (
            known.value(c, "features", counters.FEATURE_BYTES, "host") for c in (plain, greedy)
        )
        reused = known.value(greedy, "features", counters.FEATURE_BYTES, "reused")
        assert less < host and less + reused == pytest.approx(
            host, rel=0.05
        )  # medians of several epochs
        assert known.value(greedy, "order", counters.REORDERED) > 0
    profiled = rows["memory_io", True]["id"]
    drawn, run_as = (
        known.value(profiled, "order", w) for w in (counters.MATCH_DRAWN, counters.MATCH_RUN)
    )
    assert 0 < drawn < run_as < 1
    assert known.value(rows["compute", True]["id"], "order", counters.MATCH_DEGREE) is None
