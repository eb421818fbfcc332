"""Each technique of the papers' ablations is one field of a recipe."""

import pytest
from compose import make, run

from gnnbench.core import registry
from gnnbench.core.cell import flat
from gnnbench.measure.timeline import Timeline
from gnnbench.models.aggregation import MemoryAware
from gnnbench.systems.runtime.recipe import from_plain

ALL = {name: registry.load("system", name) for name in registry.OURS["system"]}
NAIVE = {"sampler": "hop-by-hop", "aggregate": "csr", "order": "as-drawn", "features": "uva"}
# Each step adds one technique: FastGL, Fig. 3, 10b (Reorder) and 15.
FASTGL = ["features", "order", "aggregate", "sampler"]
# GNNLab, Table 1: by the enabled techniques.
TSOTA = {
    "neither": {"sampler.topology": "cpu", "features": "uva"},
    "cache": {"sampler.topology": "cpu"},
    "sampling": {"features": "uva"},
    "both": {},
}


def plain(name, settings, device="cuda"):
    """The stages of a cell of a system with changed settings."""
    return ALL[name].changed(settings).resolved(device).plain()


def differing(a, b):
    """Kinds with different stages, and different fields of equal stages."""
    paths = set()
    for kind in a:
        if a[kind]["name"] != b[kind]["name"]:
            paths.add(kind)
            continue
        one, other = flat({kind: a[kind]}), flat({kind: b[kind]})
        paths |= {path for path in one if one[path] != other[path]}
    return paths


def without_dtype(stages):
    return {kind: value for kind, value in stages.items() if kind != "dtype"}


def test_fastgl_adds_its_papers_techniques_to_the_baseline():
    naive = plain("fastgl", NAIVE)
    assert naive == plain("baseline", {"features": "uva"})
    settings, steps = dict(NAIVE), [naive]
    for stage in FASTGL:
        del settings[stage]
        steps.append(plain("fastgl", settings))
        assert differing(*map(without_dtype, steps[-2:])) == {stage}
    assert steps[-1] == plain("fastgl", {})
    names = {kind: value["name"] for kind, value in without_dtype(steps[-1]).items()}
    assert names == {
        "sampler": "fused-map", "features": "match", "order": "greedy",
        "aggregate": "memory-aware", "schedule": "serial",
    }  # fmt: skip
    assert ALL["fastgl"].aggregate == MemoryAware(x=8, y=32)
    for device, pick in (
        ("cuda", "reservoir"),
        ("cpu", "floyd"),
    ):  # as DGL, so that only the id map differs
        picks = {plain(name, {}, device)["sampler"]["pick"] for name in ("fastgl", "baseline")}
        assert picks == {pick}


def test_fastgl_has_prefetch_and_a_cache_as_settings():
    stages = plain("fastgl", {"schedule": "prefetch", "features.table": "cache"})
    assert stages["schedule"]["name"] == "prefetch"
    assert stages["features"]["table"]["name"] == "cache"
    assert plain("fastgl", {"aggregate.x": 4})["aggregate"]["x"] == 4


def test_tsota_has_the_switches_of_the_table():
    cells = {name: without_dtype(plain("tsota", given)) for name, given in TSOTA.items()}
    cache, sampling = {"features"}, {"sampler.topology"}
    for one, other, switched in (
        ("neither", "cache", cache), ("sampling", "both", cache),
        ("neither", "sampling", sampling), ("cache", "both", sampling),
    ):  # fmt: skip
        assert differing(cells[one], cells[other]) == switched


def test_gnnlab_is_tsota_with_another_schedule_and_cache_policy():
    ours, other = (without_dtype(plain(name, {})) for name in ("gnnlab", "tsota"))
    assert differing(ours, other) == {"schedule", "features.policy"}
    assert plain("gnnlab", {"schedule": "serial", "features.policy": "degree"}) == plain(
        "tsota", {}
    )
    assert ours["features"]["policy"] == "presc#1" and ours["schedule"]["stored"] == "host"


def test_pagraph_samples_on_the_host_with_tsotas_cache():
    assert plain("pagraph", {})["sampler"]["topology"] == "cpu"
    assert plain("pagraph", {})["features"] == plain("tsota", {})["features"]


def test_gnnadvisor_differs_from_the_baseline_in_its_aggregation():
    pair = [without_dtype(plain(name, {})) for name in ("gnnadvisor", "baseline")]
    assert differing(*pair) == {"aggregate"}


@pytest.mark.parametrize("pick", ["fisher_yates", "random_walk"])
def test_gnnlabs_samplers(pick, small_graph, one_thread):
    system = make(small_graph, "gnnlab", {"sampler.pick": pick}, batch_size=20)
    assert system.check().ok and run(system).ok


NEW = ["best", "fastgl", "gnnadvisor", "gnnlab", "pagraph", "tsota"]


@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
@pytest.mark.parametrize("name", NEW)
def test_ablation_system_passes_the_gate_and_runs(name, until, small_graph, one_thread):
    system = make(small_graph, name, until=until, batch_size=20, fanouts=(3, 2))
    gate = system.check()
    assert gate.ok and gate.verified, gate.reason
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert report.batches == 10
    assert system.verify(3, Timeline.on("cpu")).ok
    assert system.recheck(5) == ""
    system.close()


def test_ablation_systems_have_equal_losses_with_one_pick(small_graph, one_thread):
    """Edges, rows and weights are equal; only rounding of sums differs."""
    losses = {}
    for name in ("baseline", *NEW):
        system = make(small_graph, name, {"sampler.pick": "floyd", "order": "as-drawn"})
        losses[name] = [run(system, epoch).loss for epoch in range(3)]
        system.close()
    for system_losses in losses.values():
        assert system_losses == pytest.approx(losses["baseline"], rel=1e-4)


@pytest.mark.parametrize("name", NEW)
def test_worker_builds_the_recipe_of_a_cell(name):
    for device in ("cpu", "cuda"):
        stages = plain(name, {}, device)
        assert from_plain(name, stages, ALL[name]).plain() == stages
