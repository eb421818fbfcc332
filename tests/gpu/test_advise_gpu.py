"""Advice on a GPU: rates are measured there, and what its memory has room for decides."""

import pytest

from gnnbench.contrib.advisor.advice import Setting, advise
from gnnbench.datasets.prepare import load_dataset

pytestmark = pytest.mark.gpu

GRAPH = "products~twin@0.01"


@pytest.fixture(autouse=True)
def store(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp() / "advise"
    monkeypatch.setenv("GNNBENCH_DATA", str(folder))


def asked(**changed):
    return Setting(GRAPH, batch_size=256, fanouts=(5, 4), device="cuda", **changed)


def test_a_table_that_fits_makes_caches_of_no_use():
    found = advise(asked())
    assert found.facts.ratio == 1
    assert {e.choice.store.name for e in found.ranking} == {"gpu", "uva", "match", "window"}
    assert len(found.ranking) == 16
    rates = found.plain()["rates"]
    assert all(rate > 0 for name, rate in rates.items() if name != "sample")
    assert set(rates["sample"]) == {"fused-map", "fastsample"}


def test_a_limit_makes_a_cache():
    graph = load_dataset(GRAPH)
    table = graph.num_nodes * graph.feature_dim * graph.features.element_size()
    found = advise(asked(cache_gib=0.1 * table / 2**30))
    assert found.facts.ratio == pytest.approx(0.1, abs=1e-4)
    assert len(found.ranking) == 24
    for one in found.ranking:
        for phase, spent in one.phases.items():
            assert spent == pytest.approx(sum(t.seconds for t in one.terms if t.phase == phase))
        assert one.epoch_s == pytest.approx(found.facts.batches * one.batch_s + one.first_s)
    epochs = [one.epoch_s for one in found.ranking]
    assert epochs == sorted(epochs)
    text = found.command
    assert "--device cuda" in text and "best.sampler=" in text


def test_no_room_no_cache():
    found = advise(asked(cache_gib=0.0))
    assert found.facts.ratio == 0
    assert not any(e.choice.store.policy for e in found.ranking)
