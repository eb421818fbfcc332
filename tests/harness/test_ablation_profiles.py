"""Profiles of breakdown that switch techniques on one after the other, and compare all systems."""

import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.core import registry
from gnnbench.harness.launch import make_request

KINDS = ("features", "order", "aggregate", "sampler")


def planned(profile, folder):
    plan = make_request("breakdown", Overrides(profile=profile), folder, False).plan
    reasons = {f.reason for f in plan.failures.values() if f.status not in ("missing_dep",)}
    assert not reasons, reasons
    return plan.cells


@pytest.mark.parametrize(
    ("profile", "model"), [("fastgl", "gcn"), ("fastgl", "gin"), ("fastgl-papers", "gcn")]
)
def test_fastgls_cells_are_a_technique_apart(profile, model, tmp_path):
    cells = [c for c in planned(profile, tmp_path) if c.model == model]
    found = [tuple(c.recipe[kind]["name"] for kind in KINDS) for c in cells]
    assert found == [
        ("uva", "as-drawn", "csr", "hop-by-hop"),
        ("match", "as-drawn", "csr", "hop-by-hop"),
        ("match", "greedy", "csr", "hop-by-hop"),
        ("match", "greedy", "memory-aware", "hop-by-hop"),
        ("match", "greedy", "memory-aware", "fused-map-by-hop"),
        ("match", "greedy", "memory-aware", "fused-map"),
    ]
    assert cells[0].system == "baseline"
    assert {c.recipe["sampler"]["pick"] for c in cells} == {"reservoir"}


def test_gnnlabs_cells_are_those_of_its_table(tmp_path):
    cells = planned("gnnlab", tmp_path)
    found = {
        (c.system, c.recipe["sampler"]["topology"], c.recipe["features"].get("ratio"))
        for c in cells
    }
    assert found == {
        ("tsota", "cpu", None), ("tsota", "cpu", 0.21),
        ("tsota", "gpu", None), ("tsota", "gpu", 0.07),
        ("gnnlab", "gpu", None), ("gnnlab", "gpu", 0.07),
    }  # fmt: skip
    caches = {c.system: c.recipe["features"]["policy"] for c in cells if "ratio" in
              c.recipe["features"]}  # fmt: skip
    assert caches == {"tsota": "degree", "gnnlab": "presc#1"}


@pytest.mark.parametrize("profile", ["systems", "systems-gpu"])
def test_every_system_is_in_the_comparison(profile, tmp_path):
    """WholeGraph, which only samples, and PyG around our sampler, which stands in for it, apart."""
    cells = planned(profile, tmp_path)
    apart = {"wholegraph", "pyg-native-sampler"}
    assert {c.system for c in cells} - apart == set(registry.OURS["system"]) - apart
    if profile == "systems-gpu":  # on a link: nobody's rows by the host's cores where ours are not
        stores = {c.recipe["features"]["name"] for c in cells}
        assert stores <= {"uva", "match", "window", "cache", "dgl", "graphbolt", "pyg"}
