"""The experiment ``memory-io``: its cells, and the rows that each store loads."""

import pytest

from gnnbench.analysis import table
from gnnbench.analysis.labels import paths_of
from gnnbench.config.overrides import Overrides
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader


def store_of(recipe):
    """A store as (name, window, table, access or ratio, kind of window)."""
    store = recipe["features"]
    below = store.get("table", store)
    if isinstance(below, str):
        below = {"name": below}
    how = below.get("access", below.get("ratio", ""))
    return store["name"], store.get("window", 0), below["name"], how, store.get("holds", "")


def test_big_profile_has_each_store_once_and_dgl(tmp_path):
    """All stores read page by page, also below a cache, except Match as published."""
    plan = make_request("memory-io", Overrides("big"), tmp_path).plan
    dgl, *ours = plan.cells
    assert store_of(dgl.recipe) == ("dgl", 0, "uva", "", "")
    assert [store_of(cell.recipe) for cell in ours] == [
        ("uva", 0, "uva", "page-ordered", ""),
        ("match", 0, "uva", "naive", ""),
        ("match", 0, "uva", "page-ordered", ""),
        ("window", 8, "uva", "page-ordered", "batches"),
        ("window", 8, "cache", 0.05, "union"),
        ("window", 16, "uva", "page-ordered", "batches"),
        ("graphbolt", 0, "graphbolt", "", ""),
    ]
    cache = ours[4].recipe["features"]["table"]
    assert cache["policy"] == "degree" and cache["table"] == ours[0].recipe["features"]
    assert {cell.recipe["sampler"]["name"] for cell in ours} == {"fused-map"}
    assert dgl.recipe["sampler"]["name"] == "dgl"
    assert {plan.references[cell.id].id for cell in plan.cells} == {dgl.id}
    for cell in plan.cells:
        assert (cell.dataset, cell.until, cell.device) == ("rmat@27x12x128", "memory_io", "cuda")
        assert (cell.batch_size, cell.fanouts, cell.threads) == (8000, (15, 10, 5), 16)
        assert cell.max_batches == 48


@pytest.fixture
def outcome(tmp_path, observer):
    over = Overrides("smoke", ("baseline",), repeats=1, options=("rounds=2",))
    return campaign.run(make_request("memory-io", over, tmp_path, False), observer)


def test_larger_windows_load_fewer_rows(outcome):
    run = reader.read(outcome.folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 5, [r["reason"] for r in run.cells]
    assert {r["work_class"] for r in run.cells[1:]} == {"identical"}
    known = {(r["id"], r["name"], r["where"]): r["value"] for r in run.metrics}
    loaded, window_bytes = {}, {}
    for row in run.cells:
        paths = paths_of(row)
        store = paths["features"], paths.get("features.window"), paths.get("features.table")
        need = row["unique_nodes"] * row["feature_dim"] * 4
        parts = {
            w: known.get((row["id"], "feature_bytes", w), 0) for w in ("cache", "host", "reused")
        }
        assert sum(parts.values()) == pytest.approx(need, rel=0.02)  # medians are taken separately
        loaded[store] = parts["host"] / need
        window_bytes[store] = known.get((row["id"], "window_bytes", ""))
    host, match, eight, over_cache, sixteen = loaded.values()
    assert host == pytest.approx(1, rel=0.02) and host > match > eight > sixteen > 0
    assert 0 < over_cache < eight
    sizes = list(window_bytes.values())
    assert sizes[:2] == [None, None] and 0 < sizes[2] < sizes[4]
    (part,) = table.main_tables(run.cells, run.metrics)
    assert {"memory IO", "rows loaded", "window GB", "speed-up"} <= set(part.heads)
    assert [bool(line["window GB"]) for line in part.lines] == [False, False, True, True, True]
