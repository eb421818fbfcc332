"""Mixed compositions: any sampler with any layers gives the same losses."""

import pytest
from compose import SYSTEMS, make, run, timed

from gnnbench.core.errors import UnsupportedError
from gnnbench.models.kinds import MODELS

pytestmark = pytest.mark.usefixtures("one_thread")

EVERYTHING = {"fanouts": (1000, 1000)}
MIXTURES = {
    "dgl's sampler, our store and layers": (
        "dgl", {"features": "host", "aggregate": "csr"},
    ),
    "our sampler, dgl's store and layers": (
        "baseline", {"features": "dgl", "aggregate": "dgl"},
    ),
    "our sampler, pyg's layers": ("baseline", {"aggregate": "pyg"}),
    "the new frontier, dgl's layers": (
        "baseline", {"sampler.frontier": "new", "aggregate": "dgl"},
    ),
    "pyg's sampler, our layers": ("pyg", {"aggregate": "csr"}),
    "pyg's sampler, our store, dgl's layers": ("pyg", {"features": "host", "aggregate": "dgl"}),
    "pyg's loader around ours, our store and layers": (
        "pyg-native-sampler", {"features": "host", "aggregate": "csr"},
    ),
    "dgl's sampler, pyg's layers": ("dgl", {"aggregate": "pyg"}),
    "dgl's unfused sampler, dgl's store, our layers": (
        "dgl", {"sampler.fused": False, "aggregate": "csr"},
    ),
    "dgl's unfused int32 sampler, our layers": (
        "dgl", {"sampler.fused": False, "sampler.id_type": "int32", "aggregate": "csr"},
    ),
    "one map, reservoir": ("baseline", {"sampler": "fused-map", "sampler.pick": "reservoir"}),
}  # fmt: skip


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_mixture_passes_the_gate_and_trains(mixture, small_graph):
    name, settings = MIXTURES[mixture]
    system = make(small_graph, name, settings)
    report = system.check()
    assert report.ok, report.reason
    for epoch in range(2):
        audit = run(system, epoch)
        assert audit.ok, audit.reason
    assert system.recheck(4) == ""


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_layers_of_all_frameworks_have_equal_losses(frontier, model, small_graph):
    """Our sampler draws the same for all: only the order of sums differs."""
    losses = {}
    layers_of = ("csr", "spmm", "scatter", "gnnadvisor", "dgl", "pyg")
    if model == "gat":  # which needs an aggregation that attends
        layers_of = ("csr", "scatter", "dgl", "pyg")
    for layers in layers_of:
        settings = {"aggregate": layers, "sampler.frontier": frontier}
        system = make(small_graph, settings=settings, model=model)
        losses[layers] = [run(system, epoch).loss for epoch in range(2)]
    for layers in layers_of:
        assert losses[layers] == pytest.approx(losses["csr"], rel=1e-4)


def test_all_frameworks_weigh_pinsage_by_visits(small_graph):
    """Without the weights the losses would differ."""
    losses = {}
    for layers in ("csr", "spmm", "scatter", "dgl", "pyg"):
        settings = {"aggregate": layers, "sampler.pick": "random_walk"}
        system = make(small_graph, settings=settings, model="pinsage")
        assert system.check().ok
        losses[layers] = [run(system, epoch).loss for epoch in range(2)]
    blocks = system.stages.sampler.sample(small_graph.train_idx[:64], 0, 0).blocks
    assert all(bool((block.weights > 1).any()) for block in blocks)
    for loss in losses.values():
        assert loss == pytest.approx(losses["csr"], rel=1e-4)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_whole_systems_have_equal_losses_on_full_neighbourhoods(model, small_graph):
    losses = {}
    for name in SYSTEMS:
        frontier = {"sampler.frontier": "cumulative"} if not name.startswith("pyg") else {}
        system = make(small_graph, name, frontier, model=model, **EVERYTHING)
        losses[name] = [run(system, epoch).loss for epoch in range(2)]
    for name in ("dgl", "fastsample", "pgsampler"):
        assert losses[name] == pytest.approx(losses["baseline"], rel=1e-4)
    # Full neighbourhoods leave the new frontier nothing to draw otherwise.
    for name in ("pyg", "pyg-native-sampler"):
        assert losses[name] == pytest.approx(losses["baseline"], rel=1e-4)


def test_pygs_filter_serves_pygs_batches_only(small_graph):
    system = make(small_graph, settings={"features": "pyg"})
    with pytest.raises(UnsupportedError, match="for PyG's samplers only"):
        timed(system, 0)


def test_native_samplers_have_equal_losses(small_graph):
    losses = {}
    for name in (
        "hop-by-hop",
        "gnnlab",
        "fused-map-by-hop",
        "fused-map",
        "fastsample",
        "pgsampler",
    ):
        settings = {"sampler": name, "sampler.pick": "floyd"}
        losses[name] = run(make(small_graph, settings=settings)).loss
    assert all(loss == pytest.approx(losses["hop-by-hop"], rel=1e-5) for loss in losses.values())
