"""The kernels of a batch: what a model asks for, how frameworks do it, and that it is right."""

import pytest
import torch
from compose import make, run

from gnnbench.core.minibatch import Block
from gnnbench.datasets.prepare import load_dataset
from gnnbench.models.framework import Framework
from gnnbench.models.native import Native
from gnnbench.roofline import bench, ceilings
from gnnbench.roofline.bench import Bench
from gnnbench.roofline.kernels import AggregationCall, aggregation_calls
from gnnbench.roofline.passes import aggregations

DIRECTIONS = ["forward", "backward", "backward, kept"]


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(ceilings, "cpu_caches", lambda: {2: 1 << 16, 3: 1 << 20})
    monkeypatch.setattr(ceilings, "LEAST_BYTES", 1 << 21)
    monkeypatch.setattr(ceilings, "CACHE_BYTES", {"cpu": 1 << 18})
    monkeypatch.setattr(ceilings, "ASKED_BYTES", {"cpu": 1 << 16})
    monkeypatch.setattr(ceilings, "STEPS", {"cpu": 1 << 8})


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return load_dataset("products~twin@0.0005", root=tmp_path_factory.mktemp("data"))


def looked_at(graph, system, **changes):
    made = make(graph, system=system, **changes)
    return Bench(made.job, made.stages, made.trainer.framework), made.seeds(5)[0]


@pytest.mark.parametrize(
    ("model", "mode", "widths"),
    [
        ("gcn", "gcn", [16, 16, 7]), ("graphsage", "mean", [16, 16, 7]),  # the narrower rows
        ("gin", "sum", [30, 16, 16]),  # rows as they come
        ("pinsage", "mean", [16, 16, 16]),  # behind a layer as wide as the hidden ones
    ],
)  # fmt: skip
def test_models_are_asked_what_they_aggregate(model, mode, widths):
    """Layers of 30 to 16, 16 to 16, 16 to 7."""
    nodes = torch.arange(6)
    block = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)
    inner = Block(ints(0, 1), ints(2), nodes[:3], 1)
    blocks = [block, inner, Block(ints(0, 1), ints(0), nodes[:1], 1)]
    assert aggregation_calls(model, blocks, 30, 16, 7) == [
        AggregationCall(layer, mode, width) for layer, width in enumerate(widths, 1)
    ]


def test_attention_is_asked_for_with_its_heads():
    nodes = torch.arange(6)
    block = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)
    blocks = [block, Block(ints(0, 1), ints(2), nodes[:3], 1)]
    assert aggregation_calls("gat", blocks, 30, 16, 7) == [
        AggregationCall(1, None, 16, heads=8, slope=0.2),
        AggregationCall(2, None, 7, heads=1, slope=0.2)
    ]  # fmt: skip


def test_visits_of_walks_are_asked_for_as_weights():
    block = Block(ints(0, 1), ints(1), torch.arange(2), 1, weights=torch.tensor([3.0]))
    assert aggregation_calls("pinsage", [block], 30, 16, 7) == [
        AggregationCall(1, "mean", 7, weighted=True)
    ]


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin", "gat", "pinsage"])
@pytest.mark.parametrize("system", ["baseline", "dgl", "pyg"])
def test_every_framework_aggregates_as_the_reference(graph, system, model):
    look, seeds = looked_at(graph, system, model=model)
    kernels = look.kernels(seeds, 5)
    assert [k.name for k in kernels[:2]] == ["sample", "gather"]
    assert [(k.layer, k.direction) for k in kernels[2:]] == [
        (layer, direction) for layer in (1, 2, 3) for direction in DIRECTIONS
    ]
    assert [k.wrong() for k in kernels] == [""] * len(kernels)
    for k in kernels:
        k.ready()()


@pytest.mark.parametrize("aggregate", ["csr", "spmm", "scatter", "gnnadvisor"])
def test_every_aggregation_of_ours_has_its_kernels(graph, aggregate):
    """By its name alone; attention where it has one."""
    settings = {"aggregate": aggregate}
    look, seeds = looked_at(graph, "baseline", settings=settings, model="gin")
    kernels = look.kernels(seeds, 5)
    assert [k.wrong() for k in kernels] == [""] * 11
    attends = look.framework.attention() is not None
    calls = [AggregationCall(1, None, 16, heads=8, slope=0.2)]
    batch = look.stages.sampler.sample(seeds, 5, 0)
    found = aggregations(batch, look.framework, calls)
    assert [k.wrong() for k in found] == [""] * 3 * attends
    assert attends == (aggregate in ("csr", "scatter"))


@pytest.mark.parametrize("mode", ["sum", "mean", "gcn"])
def test_planted_faults_are_found(mode):
    """One element of one row, in the last column; a neighbour that is left out."""
    nodes = torch.arange(6)
    batch = type("B", (), {})()
    batch.blocks = [Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)]
    batch.seeds = nodes[:3]
    right = make_native()

    class Off(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.linspace(1, 1.001, grad.shape[1])

    def late(block, x, mode, weights=None):
        out = right(block, x, mode, weights)
        return torch.cat([out[:-1], out[-1:] * torch.linspace(1, 1.001, x.shape[1])])

    def backwards(block, x, mode, weights=None):
        return right(block, Off.apply(x), mode, weights)

    def short(block, x, mode, weights=None):
        some = Block(block.indptr - (block.indptr == 5).int(), block.indices[:4], nodes, 3)
        return right(some, x, mode, weights)

    for faulty, forward, backward in (
        (right, "", ""), (late, "values", "gradients"), (backwards, "", "gradients"),
        (short, "values", "gradients"),
    ):  # fmt: skip
        kernels = aggregations(batch, Native(faulty), [AggregationCall(1, mode, 8)])
        found = {k.direction: k.wrong() for k in kernels}
        for direction, words in (("forward", forward), ("backward", backward)):
            assert words in found[direction] and bool(words) == bool(found[direction])


def make_native():
    from gnnbench.kernels.aggregate import aggregate

    return aggregate


def test_faults_of_attention_are_found(graph):
    """Weights that do not add up to 1, and rows' gradients that are a thousandth too large."""
    look, seeds = looked_at(graph, "baseline", model="gat")
    right = look.framework.attention()
    batch = look.stages.sampler.sample(seeds, 5, 0)
    calls = look.aggregation_calls(batch)[:1]

    def large(block, z, of_source, of_destination, slope):
        return right(block, z, of_source, of_destination, slope) * 1.001

    def flat(block, z, of_source, of_destination, slope):
        return right(block, z, of_source, of_destination, 1.0)

    for faulty in (large, flat):
        kernels = aggregations(batch, Native(make_native(), faulty), calls)
        assert ["values" in k.wrong() for k in kernels] == [True, False, False]
        assert ["gradients" in k.wrong() for k in kernels] == [False, True, False]
        assert "layer 1 (attention, 16 wide)" in kernels[0].wrong()


def test_weighted_edges_are_held_against_their_reference():
    nodes = torch.arange(6)
    batch = type("B", (), {})()
    weights = torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0])
    block = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3, weights=weights)
    batch.blocks, batch.seeds = [block], nodes[:3]

    def weighted(block, x, mode, weights=None):
        dense = torch.zeros(3, 6)
        for v, u, w in zip((0, 0, 2, 2, 2), block.indices.tolist(), weights, strict=True):
            dense[v, u] += w / (3 if v == 0 else 6)
        return dense @ x

    kernels = aggregations(batch, Native(weighted), [AggregationCall(1, "mean", 4, True)])
    assert [k.wrong() for k in kernels] == ["", "", ""]
    assert kernels[0].work.flops == 4 * (2 * 5 + 2)


def test_a_framework_without_an_aggregation_has_no_kernels_of_it():
    class Closed(Framework):
        name = "closed"

        def layer(self, kind, weights):
            raise AssertionError

        def blocks(self, batch):
            raise AssertionError

    assert aggregations(None, Closed(), [AggregationCall(1, "sum", 8)]) == []


def test_ceilings_and_kernels_are_run_in_turns(graph, monkeypatch):
    look, seeds = looked_at(graph, "baseline")
    seen = []
    plain = bench.timed

    def watched(run, device):
        seen.append(run)
        return plain(run, device)

    monkeypatch.setattr(bench, "timed", watched)
    records, fault = look.run(seeds, 5)
    assert fault == ""
    above = [(r["name"], r["level"], r["row_bytes"]) for r in records if r["kind"] == "ceiling"]
    assert above[:5] == [
        ("fma", "", 0), ("copy", "memory", 0), ("read", "memory", 0), ("read", "L2", 0),
        ("read", "L3", 0),
    ]  # fmt: skip
    dim = graph.feature_dim
    assert [w for _, _, w in above[5:]] == [4, 4 * 16, 4 * dim]
    turns = bench.ROUNDS + 1
    each = len(seen) // turns
    assert each * turns == len(seen) and each == len(records)
    first = seen[: len(above)]  # kernels are made ready anew each time
    assert seen[2 * each - len(above) : 2 * each] == first[::-1]
    for r in records:
        assert r["seconds"] > 0 and r["amount"] > 0 and r["spread"] >= 0
    kernels = {(r["name"], r["layer"], r["direction"]): r for r in records if r["kind"] == "kernel"}
    assert len(kernels) == 2 + 9
    assert kernels["aggregate", 1, "forward"]["unit"] == "flop/s"
    assert kernels["sample", 0, ""]["unit"] == "read/s"
    assert kernels["gather", 0, ""]["unit"] == "B/s"


def test_a_wrong_kernel_is_not_measured(graph, monkeypatch):
    look, seeds = looked_at(graph, "baseline")
    right = make_native()
    look.framework = Native(lambda block, x, mode, w=None: right(block, x, mode, w) * 1.001)
    monkeypatch.setattr(bench, "timed", None)
    records, fault = look.run(seeds, 5)
    assert records == [] and fault.startswith("the aggregation of layer 1 (gcn, 16 wide) has other")


def test_looking_leaves_the_epoch_as_it_was(graph):
    """Neither counts nor rows nor the model change."""
    made = make(graph)
    before = run(made, 1)
    made.diagnostics.roofline(7)
    assert run(make(graph), 1).loss == before.loss
    again = run(made, 2)
    other = make(graph)
    run(other, 1)
    right = run(other, 2)
    assert (again.loss, again.counts, again.sampled_edges) == (
        right.loss, right.counts, right.sampled_edges
    )  # fmt: skip
