"""Batches padded to one shape: memory layout, losses, gradients, larger shapes, counts."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from compose import counted, make, run
from int_tensors import ints

from gnnbench.core.cell import Until
from gnnbench.core.counters import Counts
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines import padded
from gnnbench.pipelines.padded import PaddedMemory, PaddedShape, PaddedStep
from gnnbench.pipelines.prefetch import Prefetch
from gnnbench.pipelines.serial import Serial
from gnnbench.systems.runtime import stage_setup
from gnnbench.systems.runtime.find import find

CPU = torch.device("cpu")
MODELS = ["gcn", "graphsage", "gin", "gat", "pinsage"]
PADDING = {
    "recaptures", "recapture_time_s", "padded_rows", "padded_edges", "row_padding", "edge_padding",
}  # fmt: skip


def block(indptr, indices, num_src, weights=None):
    return Block(
        ints(*indptr), ints(*indices), torch.arange(num_src), len(indptr) - 1, weights=weights
    )


SMALL = block([0, 2, 3], [2, 3, 1], 4)


def batch_of(num_src, edges=0):
    """One block of two destinations."""
    one = block([0, edges, edges], [0] * edges, num_src)
    return MiniBatch(torch.arange(2), [one], edges)


def test_a_shape_is_every_layer_s_rows_and_edges():
    outer = block([0, 1], [1], 2)
    shape = PaddedShape.of([SMALL, outer])
    assert shape == PaddedShape((4, 2, 1), (3, 1))
    assert PaddedShape.of([replace(outer, weights=torch.ones(1))]) == PaddedShape(
        (2, 1), (1,), True
    )
    assert shape.with_room() == PaddedShape((5, 3, 2), (4, 2))
    assert PaddedShape((100, 50), (1000,)).with_room() == PaddedShape((113, 57), (1126,))
    assert shape.union(PaddedShape((1, 9, 1), (7, 0))) == PaddedShape((4, 9, 1), (7, 1))


def test_padding_follows_the_spread_of_full_batches():
    """The last, smaller batch of an epoch is ignored; with few batches, the padding is fixed."""
    seen = [PaddedShape((n, 20, 4), (3 * n, 9)) for n in (100, 104, 101, 102)]
    # At least 300 of 349 edges belong to a batch; the others make 4 padded rows of 15 edges.
    assert PaddedShape.for_batches_like(seen) == PaddedShape(
        (104 + 1 + 12, 20 + 4, 5), (312 + 1 + 36, 10)
    )
    last = PaddedShape((30, 8, 2), (40, 3))
    assert PaddedShape.for_batches_like([*seen, last]) == PaddedShape.for_batches_like(seen)
    few = [*seen[:3], last]
    assert PaddedShape.for_batches_like(few) == PaddedShape((104, 20, 4), (312, 9)).with_room()
    weighted = [replace(one, weighted=True) for one in seen]
    assert PaddedShape.for_batches_like(weighted).weighted


def test_shape_has_at_least_as_many_sources_as_destinations():
    """With nearly all nodes in the input layer, its size varies less than that of the next."""
    seen = [PaddedShape((200, n, 4), (600, 9)) for n in (170, 180, 190, 195)]
    room = PaddedShape.for_batches_like(seen).nodes
    assert room == (271, 271, 5)


@pytest.mark.parametrize(
    "shape,fits",
    [
        (PaddedShape((5, 3), (3,)), True),
        (PaddedShape((4, 3), (3,)), False),  # no padded row for padded edges
        (PaddedShape((5, 2), (3,)), False),
        (PaddedShape((5, 3), (2,)), False),
        (PaddedShape((5, 3), (3,), True), False),
    ],
)
def test_batch_fits_if_it_leaves_a_padded_row_in_every_layer(shape, fits):
    assert shape.fits(PaddedShape((4, 2), (3,))) is fits


def test_a_batch_is_written_at_fixed_addresses_with_padding_after_it():
    memory = PaddedMemory(PaddedShape((6, 4), (8,)), 2, CPU)
    (first,) = memory.blocks()
    assert (first.num_src, first.num_dst, first.num_edges) == (6, 4, 8)
    assert first.indptr.tolist() == [0, 2, 4, 6, 8] and memory.labels.tolist() == [0] * 4
    assert first.indices.tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    rows = torch.arange(8.0).view(4, 2)
    written_rows = memory.write([SMALL], rows, torch.tensor([7, -1]))
    (written,) = memory.blocks()
    assert written.indptr.tolist() == [0, 2, 3, 6, 8]
    assert written.indices.tolist() == [2, 3, 1, 3, 4, 5, 0, 1]
    assert written.weights is None and written.transposed is None
    assert memory.labels.tolist() == [7, -1, -1, -1]
    assert written_rows.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [0, 0], [0, 0]]
    # A smaller batch keeps the rest of the previous one; another address would break a CUDA graph.
    smaller_rows = memory.write([block([0, 1], [1], 2)], -rows[:2], torch.tensor([5]))
    (again,) = memory.blocks()
    assert again.indptr.tolist() == [0, 1, 4, 7, 8]
    assert again.indices.tolist() == [1, 3, 1, 3, 4, 5, 0, 1]
    assert smaller_rows.tolist() == [[0, -1], [-2, -3], [4, 5], [6, 7], [0, 0], [0, 0]]
    assert smaller_rows.data_ptr() == written_rows.data_ptr() == memory.row_buffers[0].data_ptr()
    assert memory.labels.tolist() == [5, -1, -1, -1]
    assert again.indptr.data_ptr() == first.indptr.data_ptr()
    assert again.indices.data_ptr() == first.indices.data_ptr()


def test_rows_in_a_buffer_of_the_store_are_not_copied():
    """A buffer that is too small or has another dtype is not used."""
    shape, labels = PaddedShape((6, 4), (8,)), torch.zeros(2, dtype=torch.int64)
    sizes = [(7, torch.float32), (6, torch.float32), (5, torch.float32), (9, torch.float16)]
    buffers = [torch.full((n, 2), float(n), dtype=dtype) for n, dtype in sizes]
    memory = PaddedMemory(shape, 2, CPU, buffers)
    assert [home.data_ptr() for home in memory.row_buffers] == [b.data_ptr() for b in buffers[:2]]
    for buffer in buffers[:2]:
        home = memory.write([SMALL], buffer[:4], labels)
        assert home.data_ptr() == buffer.data_ptr() and home.shape == (6, 2)
    assert memory._own_buffer is None
    # Rows outside of a buffer, or not at its beginning, are copied.
    for rows in (torch.ones(4, 2), buffers[3][:4], buffers[0][1:5]):
        home = memory.write([SMALL], rows, labels)
        assert home.data_ptr() == memory._own_buffer.data_ptr()
        assert torch.equal(home[:4], rows.float()) and not home[4:].any()
    assert all(bool((b == n).all()) for b, (n, _) in zip(buffers, sizes, strict=True))


@pytest.mark.parametrize(
    "schedule,features",
    [
        ("serial", "host"), ("prefetch", "cache"), ("alternate", "host"),
        ("producer-consumer", "cache"),
    ],
)  # fmt: skip
def test_steps_read_rows_in_the_buffers_of_the_store(schedule, features, small_graph, monkeypatch):
    """Rows that another process fetches are copied."""
    in_place, write_rows = [], PaddedMemory.write

    def write(memory, blocks, rows, labels):
        home = write_rows(memory, blocks, rows, labels)
        in_place.append(home.data_ptr() == rows.data_ptr())
        return home

    monkeypatch.setattr(PaddedMemory, "write", write)
    settings = {"schedule": schedule, "features": features, "schedule.step": "padded"}
    system = make(small_graph, settings=settings)
    assert all(run(system, epoch).ok for epoch in range(3))
    assert len(in_place) > 3 and set(in_place) == {schedule != "producer-consumer"}
    system.close()


def test_without_padded_edges_padded_rows_have_none():
    memory = PaddedMemory(PaddedShape((5, 4), (3,)), 1, CPU)
    memory.write([SMALL], torch.ones(4, 1), torch.zeros(2, dtype=torch.int64))
    assert memory.blocks()[0].indptr.tolist() == [0, 2, 3, 3, 3]


def test_weights_are_padded_with_their_edges():
    memory = PaddedMemory(PaddedShape((6, 4), (5,), True), 1, CPU)
    weighted = replace(SMALL, weights=torch.tensor([3.0, 1.0, 2.0]))
    memory.write([weighted], torch.ones(4, 1), torch.zeros(2, dtype=torch.int64))
    assert memory.blocks()[0].weights.tolist() == [3, 1, 2, 1, 1]


def gradients(system, blocks, rows, labels):
    """The loss, then its gradient for every parameter, in float64."""
    model = system.trainer.model.double()
    loss = torch.nn.functional.cross_entropy(model(blocks, rows.double()), labels, ignore_index=-1)
    result = [loss, *torch.autograd.grad(loss, list(model.parameters()))]
    model.float()
    return result


@pytest.mark.parametrize(
    "model,aggregate",
    [
        (model, aggregate)
        for model in MODELS
        for aggregate in ("csr", "scatter", "spmm", "gnnadvisor")
        if model != "gat" or aggregate in ("csr", "scatter")
    ],
)
def test_gradients_are_those_without_padding(model, aggregate, small_graph):
    """Also after a larger batch, whose rows and ids remain; random walks have visit counts."""
    settings = {"aggregate": aggregate}
    if model == "pinsage" and aggregate != "gnnadvisor":
        settings["sampler.pick"] = "random_walk"
    system = make(small_graph, settings=settings, model=model)
    nodes, sample = small_graph.train_idx, system.stages.sampler.sample
    batches = [sample(s, 0, n) for n, s in enumerate((nodes[:64], nodes[64:]))]
    large, small = sorted(batches, key=lambda b: b.input_nodes.numel(), reverse=True)
    shape = PaddedShape.of(large.blocks).union(PaddedShape.of(small.blocks)).with_room()
    memory = PaddedMemory(shape, small_graph.feature_dim, CPU)
    for batch in (large, small):
        rows, labels = system.stages.store.load(batch), system.trainer.labels_of(batch)
        labels[0] = -1
        padded_rows = memory.write(batch.blocks, rows, labels)
        blocks = memory.blocks()
        for one in blocks:
            one.weights = None if one.weights is None else one.weights.double()
        actual = gradients(system, blocks, padded_rows, memory.labels)
        expected = gradients(system, batch.blocks, rows, labels)
        assert any(bool(e.abs().max() > 1e-3) for e in expected[1:])
        for own, right in zip(actual, expected, strict=True):
            torch.testing.assert_close(own, right, rtol=1e-10, atol=1e-12)
    system.close()


# Every pair of a schedule with a model or a sampler, and of a model with a sampler.
SAMPLERS = ["hop-by-hop", "fused-map", "fastsample"]
SCHEDULES = ["serial", "prefetch", "alternate", "producer-consumer"]
EQUAL = [
    (model, schedule, SAMPLERS[(i + j) % 3])
    for i, schedule in enumerate(SCHEDULES)
    for j, model in enumerate(("gcn", "graphsage", "gin"))
] + [("gcn-symmetric", "prefetch", "fused-map")]


@pytest.mark.parametrize("model,schedule,sampler", EQUAL)
def test_losses_are_those_of_eager_steps(model, schedule, sampler, small_graph):
    """Equal except for the order of sums in matrix products."""
    results = []
    for step in ("eager", "padded"):
        settings = {"sampler": sampler, "schedule": schedule, "schedule.step": step}
        system = make(small_graph, settings=settings, model=model, evaluate="sampled")
        assert system.check().ok
        reports = [run(system, epoch) for epoch in range(3)]
        assert all(r.ok for r in reports), [r.reason for r in reports]
        before = system.trainer.kept()
        verified = system.verify(9, Timeline.on("cpu"))
        assert verified.ok, verified.reason
        assert all(map(torch.equal, before, system.trainer.kept()))
        assert system.recheck(11) == ""
        results.append((reports, verified.digest, system.evaluate()))
        system.close()
    (eager, digest, accuracies), (ours, own_digest, own_accuracies) = results
    assert (digest, accuracies) == (own_digest, own_accuracies)
    for right, report in zip(eager, ours, strict=True):
        assert report.loss == pytest.approx(right.loss, rel=1e-5)
        assert report.param_norm == pytest.approx(right.param_norm, rel=1e-4)
        assert report.unique_nodes == right.unique_nodes
        counts = counted(report)
        assert {name for _, name, _ in counts} - PADDING == {n for _, n, _ in counted(right)}
        assert counts["schedule", "padded_rows", ""] > 0
        assert counts["schedule", "row_padding", ""] > 0


class Learner:
    """Records the shapes of its batches."""

    def __init__(self):
        self.shapes, self.losses = [], []

    def labels_of(self, batch):
        return torch.zeros(batch.seeds.numel(), dtype=torch.int64)

    def masks_of(self, batch):
        return None

    def learn(self, blocks, rows, labels, _):
        assert rows.shape[0] == blocks[0].num_src and labels.numel() == blocks[-1].num_dst
        self.shapes.append(PaddedShape.of(blocks))
        return torch.tensor(float(labels.numel()))


def steps(learner, width=3):
    graph, cell = SimpleNamespace(feature_dim=width), SimpleNamespace(model="gcn", dropout=0.0)
    job = SimpleNamespace(device=CPU, counts=Counts(), graph=graph, cell=cell)
    return PaddedStep(job, learner), job.counts


def take_counts(counts):
    """Counts of the schedule by name, which are then cleared."""
    values = {name: value for stage, name, _, value in counts.rows() if stage == "schedule"}
    counts.clear()
    return values


def test_a_batch_that_does_not_fit_makes_a_larger_shape(monkeypatch):
    moments = iter(range(100))  # each clock reading is 1 s later
    monkeypatch.setattr(padded, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    learner = Learner()
    step, counts = steps(learner)
    spent = step.prepare(iter([batch_of(40, 80), batch_of(48, 8)]))
    assert {m.name: v for m, v in spent.items()} == {"capture_time_s": 1}
    assert learner.shapes == [] and take_counts(counts) == {}
    first = PaddedShape((55, 3), (91,))
    for sources, edges in ((48, 80), (54, 91), (3, 0)):
        step.step(batch_of(sources, edges), torch.ones(sources, 3))
    assert learner.shapes == [first] * 3
    assert take_counts(counts) == {
        "recaptures": 0, "recapture_time_s": 0.0,
        "padded_rows": 58 * 3 - (50 + 56 + 5), "padded_edges": 91 * 3 - 171,
        "row_padding": (58 * 3 - 111) / 111, "edge_padding": (91 * 3 - 171) / 171,
    }  # fmt: skip
    step.step(batch_of(55, 9), torch.ones(55, 3))  # edges keep their padding
    step.step(batch_of(5, 92), torch.ones(5, 3))
    step.step(batch_of(48, 80), torch.ones(48, 3))
    second = PaddedShape((62, 3), (91,))
    assert learner.shapes[3:] == [second, *[PaddedShape((62, 3), (104,))] * 2]
    values = take_counts(counts)
    assert (values["recaptures"], values["recapture_time_s"]) == (2, 2)
    assert values["padded_rows"] == 65 * 3 - (57 + 7 + 50)
    assert values["padded_edges"] == 91 + 2 * 104 - (9 + 92 + 80)
    assert learner.losses == [3.0] * 6
    assert take_counts(counts) == {}


def test_without_batches_to_prepare_the_first_makes_the_shape():
    learner = Learner()
    step, counts = steps(learner)
    assert step.prepare(iter([])) == {}
    step.step(batch_of(8, 2), torch.ones(8, 3))
    assert learner.shapes == [PaddedShape((10, 3), (3,))] and take_counts(counts)["recaptures"] == 1


def test_epochs_without_padding_have_equal_losses(small_graph, monkeypatch):
    right = run(make(small_graph, model="graphsage")).loss
    monkeypatch.setattr(stage_setup, "FIRST_BATCHES", 0)
    monkeypatch.setattr(padded, "ROOM", 1.0)
    system = make(small_graph, settings={"schedule.step": "padded"}, model="graphsage")
    assert system.setup_counts == []
    reports = [run(system, epoch) for epoch in range(4)]
    assert reports[0].loss == pytest.approx(right, rel=1e-5) and all(r.ok for r in reports)
    assert counted(reports[0])["schedule", "recaptures", ""] >= 1
    system.close()


@pytest.mark.parametrize(
    "broken,value", [("labels", 0), ("rows", 0.0), ("rows", float("nan")), ("edges", 0)]
)
def test_the_gate_compares_timed_steps_with_the_layers(broken, value, small_graph, monkeypatch):
    system = make(small_graph, settings={"schedule.step": "padded"})
    before = system.trainer.kept()
    report = system.check()
    assert report.ok and 0 <= report.details["step_error"] < 1e-5
    assert all(map(torch.equal, before, system.trainer.kept())) and not system.trainer.losses
    right = PaddedMemory.write

    def write(memory, blocks, rows, labels):
        home = right(memory, blocks, rows, labels).clone()  # the store keeps its own
        {"labels": memory.labels, "rows": home, "edges": memory._indices[0]}[broken].fill_(value)
        return home

    monkeypatch.setattr(PaddedMemory, "write", write)
    report = system.check()
    assert not report.ok and "step as it is timed is off by" in report.reason
    system.close()


def test_the_time_to_find_the_shape_is_a_setup_count(small_graph):
    begin = time.perf_counter()
    system = make(small_graph, settings={"schedule.step": "padded"})
    ((stage, name, where, seconds),) = system.setup_counts
    assert (stage, name, where) == ("schedule", "capture_time_s", "")
    assert 0 < seconds < time.perf_counter() - begin
    eager = make(small_graph)
    assert eager.setup_counts == [] and eager.stages.trainer is eager.trainer


@pytest.mark.parametrize(
    "settings,device,words",
    [
        ({"schedule.step": "graph"}, "cpu", "step=graph needs a GPU"),
        ({"schedule": "prefetch", "schedule.step": "graph"}, "cpu", "step=graph needs a GPU"),
        ({"schedule.step": "padded", "aggregate": "pyg"}, "cpu", "aggregate 'pyg' take others"),
        ({"schedule.step": "graph", "aggregate": "dgl"}, "cuda", "aggregate 'dgl' take others"),
        ({"schedule.step": "graph", "aggregate": "spmm"}, "cuda", "aggregate 'spmm' may wait"),
        ({"schedule.step": "graph", "aggregate": "gnnadvisor"}, "cuda", "'gnnadvisor' may wait"),
    ],
)
def test_unsupported_steps_are_refused_in_the_plan(settings, device, words):
    refused = find("baseline").resolved(settings, device, Until.COMPUTE).unsupported
    assert words in refused


@pytest.mark.parametrize("aggregate", ["csr", "tuned", "memory-aware", "memory-aware-warp"])
def test_native_aggregations_can_be_captured(aggregate):
    settings = {"schedule.step": "graph", "aggregate": aggregate}
    assert not find("baseline").resolved(settings, "cuda", Until.COMPUTE).unsupported


def test_eager_steps_do_not_change_recipes():
    assert Serial().plain() == {"name": "serial"} and "step" not in Prefetch().plain()
    assert Serial(step="padded").plain() == {"name": "serial", "step": "padded"}
    assert Serial(step="graph").resolved("cuda").step == "graph"
