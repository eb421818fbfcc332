"""``baseline`` with another sampler in its place: one changed field, and the gate of its pick."""

from dataclasses import replace

import pytest
import torch

import gnnbench
from gnnbench.cell import NO_MODEL, Cell
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.systems.baseline import Baseline

SAMPLERS = [
    s for s in gnnbench.samplers() if "cpu" in s.devices and s.name != "pgsampler-as-printed"
]
CASES = [(s.name, pick) for s in SAMPLERS for pick in s.picks["cpu"]]
LAWS = {
    "with_replacement": "with-replacement",
    "weighted_alias": "weighted",
    "weighted_prefix": "weighted",
    "random_walk": "random-walk",
}


def make(graph, sampler, **changes):
    options = {"sampler": sampler, **changes.pop("options", {})}
    values = {"model": NO_MODEL, "batch_size": 64, "fanouts": (4, 3), "hidden": 8, "seed": 3}
    cell = Cell("test", "baseline", graph.name, options=options, **{**values, **changes})
    system = Baseline(cell, graph)
    system.setup()
    return system


@pytest.fixture
def weighted_graph(small_graph):
    weights = torch.rand(small_graph.num_edges, generator=torch.Generator().manual_seed(5))
    weights[::3] = 0
    return replace(small_graph, weights=weights)


@pytest.mark.parametrize(("sampler", "pick"), CASES)
def test_every_pick_passes_the_gate_of_its_law(sampler, pick, weighted_graph):
    system = make(weighted_graph, sampler, pick=pick)
    report = system.check()
    assert report.ok, report.reason
    assert (report.pick, report.law) == (pick, LAWS.get(pick, "without-replacement"))
    assert report.digest and report.edges_per_seed > 0
    sample = system.run_epoch(1)
    assert sample.ok, sample.reason
    assert system.recheck(2) == ""


def test_every_sampler_does_the_baselines_work(weighted_graph):
    for pick in ("floyd", "weighted_alias", "random_walk"):
        picked = [s.name for s in SAMPLERS if pick in s.picks["cpu"]]
        digests = {make(weighted_graph, name, pick=pick).check().digest for name in picked}
        assert len(picked) >= 4 and len(digests) == 1


def test_default_picks_are_the_samplers(small_graph):
    found = {s.name: make(small_graph, s.name).check().pick for s in SAMPLERS}
    assert found == {
        "hop-by-hop": "floyd",
        "gnnlab": "fisher_yates",
        "fused-map": "floyd",
        "fastsample": "floyd",
        "pgsampler": "reservoir",
    }


def test_one_changed_field_and_the_same_losses(small_graph):
    losses = {
        s.name: make(small_graph, s.name, pick="floyd", model="gcn").run_epoch(0).loss
        for s in SAMPLERS
    }
    assert all(loss == pytest.approx(losses["hop-by-hop"], rel=1e-5) for loss in losses.values())


def test_the_printed_pgsampler_runs_where_it_is_let_and_says_what_it_lost(small_graph):
    options = {"unsafe": True, "fetch_size": 7}
    system = make(small_graph, "pgsampler-as-printed", options=options)
    report = system.check()
    # A lost task of a node without neighbours loses no edge.
    assert report.ok or system.sampler.lost_tasks > 0


@pytest.mark.parametrize(
    ("sampler", "changes", "error", "words"),
    [
        ("fused_map", {}, UsageError, "cannot be 'fused_map'; it is one of: hop-by-hop, gnnlab"),
        ("pgsampler", {"frontier": "new"}, UnsupportedError, "no frontier 'new'"),
        ("pgsampler", {"pick": "random_walk"}, UnsupportedError, "no pick 'random_walk'"),
        ("fused-map", {"pick": "weighted_alias"}, UnsupportedError, "'small' stores none"),
        ("dgl-fusion", {}, UnsupportedError, "does not sample on cpu; it does on: cuda"),
        ("pgsampler-as-printed", {}, UsageError, "pass unsafe=True"),
        ("fused-map", {"options": {"fetch_size": 3}}, UsageError, "has no option 'fetch_size'"),
        ("pgsampler", {"options": {"fetch_size": 40}}, UsageError, "cannot be '40'"),
        ("fused-map", {"options": {"topology": "uva"}}, UnsupportedError, "needs --device cuda"),
        ("fused-map", {"options": {"topology": "disk"}}, UsageError, "gpu, uva, cpu"),
    ],
)
def test_wrong_settings_say_what_is_wrong(sampler, changes, error, words, small_graph):
    with pytest.raises(error, match=words):
        make(small_graph, sampler, **changes)


@pytest.mark.parametrize(
    ("pick", "words"),
    [
        ("floyd", "min"),
        ("with_replacement", "unless it has no neighbour"),
        ("weighted_prefix", "unless its edges have no weight"),
        ("random_walk", "held against the reference"),
    ],
)
def test_a_sampler_that_draws_otherwise_is_caught(pick, words, weighted_graph, monkeypatch):
    """Half the fanouts: too few edges by the law, or, of walks, not the reference's."""
    system = make(weighted_graph, "fused-map", pick=pick)
    setting = system.sampler.setting
    system.sampler.setting = replace(setting, fanouts=(2, 1))
    report = system.check()
    assert not report.ok and words in report.reason
