"""The experiment end to end: what worker processes measure is what the trace says."""

import pytest

from gnnbench.overrides import Overrides
from gnnbench.plots.cache import figure
from gnnbench.results import reader
from gnnbench.results.labels import paths_of
from gnnbench.runner import campaign
from gnnbench.runner.launch import make_request

POINT = 0.01


@pytest.fixture
def outcome(tmp_path, observer):
    over = Overrides(profile="smoke", repeats=1, options=("rounds=2", "batch_size=32"))
    return campaign.run(make_request("cache-ratio", over, tmp_path, False), observer)


def test_measured_hits_agree_with_the_curve_within_a_point(outcome):
    run = reader.read(outcome.folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 3, [r["reason"] for r in run.cells]
    known = {(r["id"], r["name"], r["where"]): r["value"] for r in run.metrics}
    measured = {}
    for row in run.cells[1:]:
        policy = paths_of(row)["features.policy"]
        (exact,) = (
            c["hit_ratio"]
            for c in run.curves
            if (c["id"], c["policy"], c["ratio"]) == (row["id"], policy, 0.1)
        )
        measured[policy] = known[row["id"], "hit_ratio", ""]
        assert abs(measured[policy] - exact) < POINT
        assert known[row["id"], "cache_rows", ""] == round(0.1 * row["nodes"])
        rows = [known[row["id"], "feature_bytes", where] for where in ("cache", "host")]
        assert sum(rows) == pytest.approx(row["unique_nodes"] * row["feature_dim"] * 4, rel=1e-3)
    assert 0.1 < measured["presc#1"] < measured["optimal"]  # it was told each epoch that it ran
    assert len(figure(run).axes) == 2
    known = {r["name"]: r["value"] for r in run.metrics if r["id"] == run.cells[1]["id"]}
    assert all(known[f"{part}_time_s"] > 0 for part in ("hotness", "rank", "fill"))
