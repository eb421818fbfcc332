"""Profiles of breakdown that add one technique at a time, and that compare all systems."""

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
def test_fastgl_profile_adds_one_technique_per_cell(profile, model, tmp_path):
    cells = [c for c in planned(profile, tmp_path) if c.model == model]
    names = [tuple(c.recipe[kind]["name"] for kind in KINDS) for c in cells]
    assert names == [
        ("uva", "as-drawn", "csr", "hop-by-hop"),
        ("match", "as-drawn", "csr", "hop-by-hop"),
        ("match", "greedy", "csr", "hop-by-hop"),
        ("match", "greedy", "memory-aware", "hop-by-hop"),
        ("match", "greedy", "memory-aware", "fused-map-by-hop"),
        ("match", "greedy", "memory-aware", "fused-map"),
    ]
    assert cells[0].system == "baseline"
    assert {c.recipe["sampler"]["pick"] for c in cells} == {"reservoir"}


def test_gnnlab_profile_has_the_cells_of_the_papers_table(tmp_path):
    cells = planned("gnnlab", tmp_path)
    settings = {
        (c.system, c.recipe["sampler"]["topology"], c.recipe["features"].get("ratio"))
        for c in cells
    }
    assert settings == {
        ("tsota", "cpu", None), ("tsota", "cpu", 0.21),
        ("tsota", "gpu", None), ("tsota", "gpu", 0.07),
        ("gnnlab", "gpu", None), ("gnnlab", "gpu", 0.07),
    }  # fmt: skip
    caches = {c.system: c.recipe["features"]["policy"] for c in cells if "ratio" in
              c.recipe["features"]}  # fmt: skip
    assert caches == {"tsota": "degree", "gnnlab": "presc#1"}


@pytest.mark.parametrize("profile", ["systems", "systems-gpu"])
def test_systems_profile_contains_every_system(profile, tmp_path):
    """Except WholeGraph, which only samples, cuGraph-PyG, which needs a GPU and has a profile of
    its own, and the stand-in of PyG."""
    cells = planned(profile, tmp_path)
    excluded = {"wholegraph", "cugraph-pyg", "pyg-native-sampler"}
    assert {c.system for c in cells} - excluded == set(registry.OURS["system"]) - excluded
    if profile == "systems-gpu":  # every store reads rows over the link
        stores = {c.recipe["features"]["name"] for c in cells}
        assert stores <= {"uva", "match", "window", "cache", "dgl", "graphbolt", "pyg"}
