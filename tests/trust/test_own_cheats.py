"""Samplers with random numbers of their own: honest ones are equivalent work, cheats are found."""

from dataclasses import replace

import own_cheats
import pytest
import torch
from planted import assert_incorrect, register, run_systems

import gnnbench
from gnnbench.core.errors import UsageError
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.library import native_info

PICKED = "its picks are not '.*': neighbours are picked "
TRIED = {
    "own-honest": "^$", "own-one-generator": "^$", "own-independent": "^$", "own-by-weight": "^$",
    "own-wrong-weights": PICKED + "by the weight of their edge",
    "own-distinct": PICKED + "more often or less often twice",
    "own-first": PICKED + "by their place in the row",
    "own-leaning": PICKED + "by their place in the row",
    "own-hubs": PICKED + "by their degree",
    "own-low-ids": PICKED + "by their id",
    "own-window": PICKED + "together with their neighbours",
    "own-one-number": PICKED,
    "own-same-epochs": PICKED + "with regard to what was picked for the same node before",
    "own-same-nodes": PICKED + "with regard to what was picked for the same node before",
    "own-too-few": r"^call 1 of the sampler, hop 1: [0-9]+ edges were drawn where [0-9]+ are right",
    "own-repeated": "^an edge was drawn twice for one destination",
    "own-invented": "^an edge is none of the graph's",
    "own-behaves": PICKED + "by their place in the row",
}  # fmt: skip
# Of those that a run finds at its gate, one of a kind: by a pick, by two epochs, by an edge.
SYSTEMS = {
    "own-honest": "HONEST", "own-one-generator": "ONE_GENERATOR", "own-first": "FIRST",
    "own-same-epochs": "SAME_EPOCHS", "own-invented": "INVENTED", "own-behaves": "BEHAVES",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _native():
    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")


@pytest.fixture(scope="module")
def graph():
    """2000 nodes of 3 to 120 neighbours, with weights."""
    generator = torch.Generator().manual_seed(3)
    degree = (3 / torch.rand(2000, generator=generator)).clamp(max=120).long()
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    edges, nodes = int(indptr[-1]), torch.arange(2000)
    return Graph(
        "rows", indptr, torch.randint(2000, (edges,), generator=generator, dtype=torch.int32),
        torch.zeros(2000, 4), torch.zeros(2000, dtype=torch.int64), nodes[:1000], nodes[1000:1500],
        nodes[1500:], 2, weights=torch.rand(edges, generator=generator),
    )  # fmt: skip


@pytest.mark.parametrize("name", TRIED)
def test_a_sampler_is_tried(name, graph, one_thread):
    import re

    fault = gnnbench.check_sampler(own_cheats.BY_NAME[name], graph, [5, 4], batch_size=200)
    assert re.search(TRIED[name], fault), fault


def test_every_sampler_is_tried():
    assert {*TRIED, "own-tuple"} == {*own_cheats.BY_NAME}


def test_both_frontiers_and_a_weight_that_is_missing(graph, one_thread):
    new = own_cheats.recipe(own_cheats.Honest).changed({"sampler.frontier": "new"})
    assert gnnbench.check_system(new, graph, [5, 4], batch_size=200) == ""
    with pytest.raises(gnnbench.core.errors.UnsupportedError, match="needs edge weights"):
        gnnbench.check_sampler(own_cheats.ByWeight, replace(graph, weights=None))


def test_what_is_no_sampler_of_a_law(graph, one_thread):
    with pytest.raises(UsageError, match=r"must return a gnnbench\.MiniBatch from draw, not tuple"):
        gnnbench.check_sampler(own_cheats.BY_NAME["own-tuple"], graph)
    with pytest.raises(UsageError, match="'unfair' has the law 'uniform'; one with random numbers"):
        type("Unfair", (gnnbench.Sampler,), {"name": "unfair", "law": "uniform"})


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    samplers = {name: own_cheats.BY_NAME[name].__name__ for name in SYSTEMS}
    register(patch, "own_cheats", SYSTEMS, sampler=samplers)
    outcome = run_systems(
        ["baseline", *SYSTEMS], tmp_path_factory.mktemp("own"), "baseline",
        options=("fanouts=[4, 3]", "batch_size=64", "threads=1", "until=sample"),
    )  # fmt: skip
    return {r["system"]: r for r in outcome.rows}


@pytest.mark.parametrize("system", ["own-honest", "own-one-generator"])
def test_honest_ones_are_timed_as_equivalent(rows, system):
    row = rows[system]
    assert (row["status"], row["reason"], row["work_class"]) == ("ok", "", "equivalent")
    assert row["verified"] is True and row["law"] == "without-replacement"
    assert row["pick"] == system and row["digest"] == "" and row["ratio"] > 0


@pytest.mark.parametrize("system", [s for s in SYSTEMS if TRIED[s] != "^$"])
def test_cheats_have_no_ratio(rows, system):
    when = "^in a timed epoch: " if system == "own-behaves" else ""
    assert_incorrect(rows[system], when + TRIED[system])
