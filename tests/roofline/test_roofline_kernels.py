"""The kernels of a batch: a model's aggregations, frameworks, and detection of wrong results."""

import pytest
import torch
from compose import make, run
from int_tensors import ints

from gnnbench.core.minibatch import Block
from gnnbench.datasets.prepare import load_dataset
from gnnbench.models.framework import Framework
from gnnbench.models.native import Native
from gnnbench.roofline import bench, ceilings
from gnnbench.roofline.bench import Bench
from gnnbench.roofline.kernels import AggregationCall, aggregation_calls
from gnnbench.roofline.passes import aggregations

DIRECTIONS = ["forward", "backward", "backward, kept"]


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


def make_bench(graph, system, **changes):
    built = make(graph, system=system, **changes)
    return Bench(built.job, built.stages, built.trainer.framework), built.seeds(5)[0]


@pytest.mark.parametrize(
    ("model", "mode", "widths"),
    [
        ("gcn", "gcn", [16, 16, 7]), ("graphsage", "mean", [16, 16, 7]),  # the narrower rows
        ("gin", "sum", [30, 16, 16]),  # unchanged rows
        ("pinsage", "mean", [16, 16, 16]),  # after a linear layer of the hidden width
    ],
)  # fmt: skip
def test_aggregation_calls_of_models(model, mode, widths):
    """Layers of 30 to 16, 16 to 16, 16 to 7."""
    nodes = torch.arange(6)
    block = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)
    inner = Block(ints(0, 1), ints(2), nodes[:3], 1)
    blocks = [block, inner, Block(ints(0, 1), ints(0), nodes[:1], 1)]
    assert aggregation_calls(model, blocks, 30, 16, 7) == [
        AggregationCall(layer, mode, width) for layer, width in enumerate(widths, 1)
    ]


def test_aggregation_calls_of_attention_have_heads():
    nodes = torch.arange(6)
    block = Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)
    blocks = [block, Block(ints(0, 1), ints(2), nodes[:3], 1)]
    assert aggregation_calls("gat", blocks, 30, 16, 7) == [
        AggregationCall(1, None, 16, heads=8, slope=0.2),
        AggregationCall(2, None, 7, heads=1, slope=0.2)
    ]  # fmt: skip


def test_visit_counts_are_weights_of_aggregation_calls():
    block = Block(ints(0, 1), ints(1), torch.arange(2), 1, weights=torch.tensor([3.0]))
    assert aggregation_calls("pinsage", [block], 30, 16, 7) == [
        AggregationCall(1, "mean", 7, weighted=True)
    ]


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin", "gat", "pinsage", "gcn-symmetric"])
@pytest.mark.parametrize("system", ["baseline", "dgl", "pyg"])
def test_kernels_of_every_framework_are_correct(graph, system, model):
    roofline_bench, seeds = make_bench(graph, system, model=model)
    kernels = roofline_bench.kernels(seeds, 5)
    assert [k.name for k in kernels[:2]] == ["sample", "gather"]
    assert [(k.layer, k.direction) for k in kernels[2:]] == [
        (layer, direction) for layer in (1, 2, 3) for direction in DIRECTIONS
    ]
    assert [k.wrong() for k in kernels] == [""] * len(kernels)
    for k in kernels:
        k.ready()()


def test_aggregations_of_bfloat16_layers_are_left_out(graph):
    roofline_bench, seeds = make_bench(graph, "baseline", precision="bfloat16")
    assert [k.name for k in roofline_bench.kernels(seeds, 5)] == ["sample", "gather"]


@pytest.mark.parametrize("aggregate", ["csr", "spmm", "scatter", "gnnadvisor"])
def test_kernels_of_every_native_aggregation_are_correct(graph, aggregate):
    """Includes attention if the aggregation supports it."""
    settings = {"aggregate": aggregate}
    roofline_bench, seeds = make_bench(graph, "baseline", settings=settings, model="gin")
    kernels = roofline_bench.kernels(seeds, 5)
    assert [k.wrong() for k in kernels] == [""] * 11
    attends = roofline_bench.framework.attention() is not None
    calls = [AggregationCall(1, None, 16, heads=8, slope=0.2)]
    batch = roofline_bench.stages.sampler.sample(seeds, 5, 0)
    attention_kernels = aggregations(batch, roofline_bench.framework, calls)
    assert [k.wrong() for k in attention_kernels] == [""] * 3 * attends
    assert attends == (aggregate in ("csr", "scatter"))


@pytest.mark.parametrize("mode", ["sum", "mean", "gcn"])
def test_planted_faults_are_detected(mode):
    """A wrong element in the last column, and a missing neighbour."""
    nodes = torch.arange(6)
    batch = type("B", (), {})()
    batch.blocks = [Block(ints(0, 2, 2, 5), ints(3, 4, 3, 3, 0), nodes, 3)]
    batch.seeds = nodes[:3]
    correct = make_native()

    class Off(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.linspace(1, 1.001, grad.shape[1])

    def wrong_values(block, x, mode, weights=None):
        out = correct(block, x, mode, weights)
        return torch.cat([out[:-1], out[-1:] * torch.linspace(1, 1.001, x.shape[1])])

    def wrong_gradients(block, x, mode, weights=None):
        return correct(block, Off.apply(x), mode, weights)

    def missing_neighbour(block, x, mode, weights=None):
        some = Block(block.indptr - (block.indptr == 5).int(), block.indices[:4], nodes, 3)
        return correct(some, x, mode, weights)

    for faulty, forward, backward in (
        (correct, "", ""), (wrong_values, "values", "gradients"),
        (wrong_gradients, "", "gradients"), (missing_neighbour, "values", "gradients"),
    ):  # fmt: skip
        kernels = aggregations(batch, Native(faulty), [AggregationCall(1, mode, 8)])
        faults = {k.direction: k.wrong() for k in kernels}
        for direction, words in (("forward", forward), ("backward", backward)):
            assert words in faults[direction] and bool(words) == bool(faults[direction])


def make_native():
    from gnnbench.kernels.aggregate import aggregate

    return aggregate


def test_faults_of_attention_are_detected(graph):
    """Results that are too large by 0.1 %, and a wrong slope."""
    roofline_bench, seeds = make_bench(graph, "baseline", model="gat")
    correct = roofline_bench.framework.attention()
    batch = roofline_bench.stages.sampler.sample(seeds, 5, 0)
    calls = roofline_bench.aggregation_calls(batch)[:1]

    def large(block, z, of_source, of_destination, slope):
        return correct(block, z, of_source, of_destination, slope) * 1.001

    def flat(block, z, of_source, of_destination, slope):
        return correct(block, z, of_source, of_destination, 1.0)

    for faulty in (large, flat):
        kernels = aggregations(batch, Native(make_native(), faulty), calls)
        assert ["values" in k.wrong() for k in kernels] == [True, False, False]
        assert ["gradients" in k.wrong() for k in kernels] == [False, True, False]
        assert "layer 1 (attention, 16 wide)" in kernels[0].wrong()


def test_weighted_aggregation_is_compared_with_its_reference():
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


def test_framework_without_an_aggregation_has_no_kernels():
    class Closed(Framework):
        name = "closed"

        def layer(self, kind, weights):
            raise AssertionError

        def blocks(self, batch):
            raise AssertionError

    assert aggregations(None, Closed(), [AggregationCall(1, "sum", 8)]) == []


def test_ceilings_and_kernels_alternate(graph, monkeypatch):
    roofline_bench, seeds = make_bench(graph, "baseline")
    runs = []
    plain = bench.timed

    def recording(run, device):
        runs.append(run)
        return plain(run, device)

    monkeypatch.setattr(bench, "timed", recording)
    records, fault = roofline_bench.run(seeds, 5)
    assert fault == ""
    ceiling_records = [
        (r["name"], r["level"], r["row_bytes"]) for r in records if r["kind"] == "ceiling"
    ]
    assert ceiling_records[:5] == [
        ("fma", "", 0), ("copy", "memory", 0), ("read", "memory", 0), ("read", "L2", 0),
        ("read", "L3", 0),
    ]  # fmt: skip
    dim = graph.feature_dim
    assert [w for _, _, w in ceiling_records[5:]] == [4, 4 * 16, 4 * dim]
    repetitions = bench.ROUNDS + 1
    each = len(runs) // repetitions
    assert each * repetitions == len(runs) and each == len(records)
    first = runs[: len(ceiling_records)]  # kernels are prepared again each time
    assert runs[2 * each - len(ceiling_records) : 2 * each] == first[::-1]
    for r in records:
        assert r["seconds"] > 0 and r["amount"] > 0 and r["spread"] >= 0
    kernels = {(r["name"], r["layer"], r["direction"]): r for r in records if r["kind"] == "kernel"}
    assert len(kernels) == 2 + 9
    assert kernels["aggregate", 1, "forward"]["unit"] == "flop/s"
    assert kernels["sample", 0, ""]["unit"] == "read/s"
    assert kernels["gather", 0, ""]["unit"] == "B/s"


def test_wrong_kernel_is_not_measured(graph, monkeypatch):
    roofline_bench, seeds = make_bench(graph, "baseline")
    correct = make_native()
    roofline_bench.framework = Native(
        lambda block, x, mode, w=None: correct(block, x, mode, w) * 1.001
    )
    monkeypatch.setattr(bench, "timed", None)
    records, fault = roofline_bench.run(seeds, 5)
    assert records == [] and fault.startswith("the aggregation of layer 1 (gcn, 16 wide) has other")


def test_roofline_measurement_does_not_change_epochs(graph):
    """Counters, rows and the model are unchanged."""
    system = make(graph)
    before = run(system, 1)
    system.diagnostics.roofline(7)
    assert run(make(graph), 1).loss == before.loss
    second = run(system, 2)
    other = make(graph)
    run(other, 1)
    correct = run(other, 2)
    assert (second.loss, second.counts, second.sampled_edges) == (
        correct.loss, correct.counts, correct.sampled_edges
    )  # fmt: skip
