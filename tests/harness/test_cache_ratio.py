"""The experiment ``cache-ratio``: measured hit ratios match the simulated curve."""

import pytest

from gnnbench.analysis.labels import paths_of
from gnnbench.analysis.plots.cache import figure
from gnnbench.config.overrides import Overrides
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader

POINT = 0.01


@pytest.fixture
def outcome(tmp_path, observer):
    options = ("rounds=2", "batch_size=64", "fanouts=[10, 5]", "reference=none")
    datasets = ("products~twin@0.005",)  # smaller epochs vary by more than POINT
    over = Overrides(profile="smoke", repeats=1, options=options, datasets=datasets)
    return campaign.run(make_request("cache-ratio", over, tmp_path, False), observer)


def test_a_cache_of_several_epochs_is_filled_once_for_all_rounds(tmp_path, observer):
    """Its mean is between PreSC and the oracle of each epoch; curves agree with it."""
    options = (
        "rounds=4", "warmup_epochs=1", "reference=none", "system=tsota", "batch_size=64",
        "fanouts=[10, 5]", "tsota.features.policy=[presc#1, optimal#4, optimal]",
    )  # fmt: skip
    datasets = ("products~twin@0.005",)
    over = Overrides(profile="smoke", repeats=1, options=options, datasets=datasets)
    folder = campaign.run(make_request("cache-ratio", over, tmp_path, False), observer).folder
    run = reader.read(folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 3, [r["reason"] for r in run.cells]
    values = {r["id"]: r["value"] for r in run.metrics if r["name"] == "hit_ratio"}
    hits = {paths_of(r)["features.policy"]: values[r["id"]] for r in run.cells}
    assert hits["presc#1"] < hits["optimal#4"] < hits["optimal"]
    (exact,) = (
        c["hit_ratio"] for c in run.curves if (c["policy"], c["ratio"]) == ("optimal#4", 0.1)
    )
    assert abs(hits["optimal#4"] - exact) < POINT


def test_measured_hit_ratios_match_the_simulated_curve(outcome):
    run = reader.read(outcome.folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 7, [r["reason"] for r in run.cells]
    known = {(r["id"], r["name"], r["where"]): r["value"] for r in run.metrics}
    measured = {}
    caches = [(r, p) for r in run.cells if "cache" in (p := paths_of(r)).values()]
    assert len(caches) == 5
    for row, paths in caches:
        policy = paths.get("features.policy") or paths["features.table.policy"]
        (exact,) = (
            c["hit_ratio"]
            for c in run.curves
            if (c["id"], c["policy"], c["ratio"]) == (row["id"], policy, 0.1)
        )
        hits = known[row["id"], "hit_ratio", ""]
        assert abs(hits - exact) < POINT
        measured[paths["features"], policy] = hits
        assert known[row["id"], "cache_rows", ""] == round(0.1 * row["nodes"])
        where = ["cache", "host", *(["reused"] if paths["features"] == "match" else [])]
        rows = [known[row["id"], "feature_bytes", w] for w in where]
        assert sum(rows) == pytest.approx(row["unique_nodes"] * row["feature_dim"] * 4, rel=1e-3)
    plain = measured["cache", "presc#1"]
    assert 0.1 < plain < measured["cache", "optimal#10"]  # it observed ten epochs together
    assert measured["cache", "optimal#10"] < measured["cache", "optimal"]  # it observed each epoch
    assert 0 < measured["match", "presc#1"] < plain  # reused rows are not requested
    assert measured["cache", "sieve"] > 0.1
    assert len(figure(run).axes) == 3
    (id_of,) = (r["id"] for r, p in caches if p.get("features.policy") == "presc#1")
    known = {r["name"]: r["value"] for r in run.metrics if r["id"] == id_of}
    assert all(known[f"{part}_time_s"] > 0 for part in ("hotness", "rank", "fill"))
