"""Advice on a GPU: it measures rates there and depends on the GPU's memory size."""

import pytest

from gnnbench.contrib.advisor.advice import Setting, advise
from gnnbench.datasets.prepare import load_dataset

pytestmark = pytest.mark.gpu

GRAPH = "products~twin@0.01"


@pytest.fixture(autouse=True)
def store(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp() / "advise"
    monkeypatch.setenv("GNNBENCH_DATA", str(folder))


def request(**changed):
    return Setting(GRAPH, batch_size=256, fanouts=(5, 4), device="cuda", **changed)


def test_table_that_fits_needs_no_cache():
    outcome = advise(request())
    assert outcome.facts.ratio == 1
    assert {e.choice.store.name for e in outcome.ranking} == {"gpu", "uva", "match", "window"}
    assert len(outcome.ranking) == 16
    rates = outcome.plain()["rates"]
    assert all(rate > 0 for name, rate in rates.items() if name != "sample")
    assert set(rates["sample"]) == {"fused-map", "fastsample"}


def test_memory_limit_leads_to_a_cache():
    graph = load_dataset(GRAPH)
    table = graph.num_nodes * graph.feature_dim * graph.features.element_size()
    outcome = advise(request(cache_gib=0.1 * table / 2**30))
    assert outcome.facts.ratio == pytest.approx(0.1, abs=1e-4)
    assert len(outcome.ranking) == 24
    for one in outcome.ranking:
        for phase, spent in one.phases.items():
            assert spent == pytest.approx(sum(t.seconds for t in one.terms if t.phase == phase))
        assert one.epoch_s == pytest.approx(outcome.facts.batches * one.batch_s + one.first_s)
    epochs = [one.epoch_s for one in outcome.ranking]
    assert epochs == sorted(epochs)
    text = outcome.command
    assert "--device cuda" in text and "best.sampler=" in text


def test_zero_memory_limit_leads_to_no_cache():
    outcome = advise(request(cache_gib=0.0))
    assert outcome.facts.ratio == 0
    assert not any(e.choice.store.policy for e in outcome.ranking)
