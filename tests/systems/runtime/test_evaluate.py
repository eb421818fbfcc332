"""The evaluator of all systems: accuracies over sampled or all neighbours."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from compose import make, run, timed
from torch import nn

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import DataError
from gnnbench.core.job import Job
from gnnbench.datasets.graph import Graph
from gnnbench.kernels import rng
from gnnbench.kernels.reference.aggregate import aggregate
from gnnbench.measure.timeline import Timeline
from gnnbench.models.native import Native
from gnnbench.models.stack import Stack
from gnnbench.sampling.build import build_sampler
from gnnbench.systems.runtime import evaluate
from gnnbench.systems.runtime.evaluate import Evaluator

pytestmark = pytest.mark.usefixtures("one_thread")

HOW = pytest.mark.parametrize("how", ["sampled", "all"])


class Sum(nn.Module):
    """Sum of a node's row and its neighbours' rows."""

    def forward(self, block, x):
        return x[: block.num_dst] + aggregate(block, x, "sum")


def five_nodes() -> Graph:
    """0 <- 1, 1 <- none, 2 <- 0 1, 3 <- 2, 4 <- 3 3; rows are scores of two classes."""
    return Graph(
        name="five",
        indptr=torch.tensor([0, 1, 1, 3, 4, 6]),
        indices=torch.tensor([1, 0, 1, 2, 3, 3], dtype=torch.int32),
        features=torch.tensor([[1.0, 0], [0, 3], [1, 0], [9, 0], [0, 1]]),
        labels=torch.tensor([1, 1, 1, 0, 0]),
        train_idx=torch.tensor([0]),
        val_idx=torch.tensor([1, 2]),
        test_idx=torch.tensor([3, 4]),
        num_classes=2,
    )


def evaluator(graph, how, fanouts=(9, 9), **values):
    cell = Cell("e", "s", graph.name, "gcn", fanouts=fanouts, evaluate=how, **values)
    return Evaluator(Job(cell, graph, Counts()))


def trainer_of(*layers):
    """A trainer with custom layers, as far as the evaluator uses it."""
    model, framework = Stack(layers), Native(aggregate)

    def forward(batch, x):
        return model(framework.blocks(batch), x)

    return SimpleNamespace(model=model, framework=framework, forward=forward)


@HOW
def test_accuracies_of_a_small_graph(how):
    # After a layer: 0 (1, 3), 1 (0, 3), 2 (2, 3), 3 (10, 0), 4 (18, 1); after two: 1 (0, 3),
    # 2 (3, 9), 3 (12, 3), 4 (38, 1). Votes are 1, 1 for validation and 0, 0 for test.
    two = trainer_of(Sum(), Sum())
    evaluation = evaluator(five_nodes(), how).run(two)
    assert evaluation == {
        "val_nodes": 2,
        "val_accuracy": 1.0,
        "test_nodes": 2,
        "test_accuracy": 1.0,
    }
    other = replace(five_nodes(), labels=torch.tensor([0, 1, 0, 1, 1]))
    evaluation = evaluator(other, how).run(two)
    assert (evaluation["val_accuracy"], evaluation["test_accuracy"]) == (0.5, 0.0)
    # Without neighbours: 1 (0, 3) votes 1, 2 (1, 0) votes 0.
    none = trainer_of(nn.Identity())
    none.model.layers[0].forward = lambda block, x: x[: block.num_dst]
    evaluation = evaluator(five_nodes(), how, fanouts=(9,)).run(none)
    assert (evaluation["val_accuracy"], evaluation["test_accuracy"]) == (0.5, 0.5)


@HOW
def test_nodes_without_labels_are_ignored(how):
    graph = replace(five_nodes(), labels=torch.tensor([1, 1, -1, 0, 1]))
    evaluation = evaluator(graph, how).run(trainer_of(Sum(), Sum()))
    assert evaluation == {
        "val_nodes": 1, "val_accuracy": 1.0, "test_nodes": 2, "test_accuracy": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"val_idx": torch.tensor([0, 2])}, "'five' has val nodes among its training nodes"),
        ({"test_idx": torch.tensor([0])}, "'five' has test nodes among its training nodes"),
        ({"val_idx": torch.arange(0)}, "'five' has no val nodes with labels"),
        ({"labels": torch.tensor([1, 1, 1, -1, -1])}, "'five' has no test nodes with labels"),
    ],
)
def test_invalid_split_is_refused(changed, words):
    with pytest.raises(DataError, match=words):
        evaluator(replace(five_nodes(), **changed), "sampled")


def test_nodes_of_a_large_split_are_sampled(small_graph, monkeypatch):
    monkeypatch.setattr(evaluate, "NODES", 10)
    splits = evaluator(small_graph, "sampled", seed=3)._splits
    for name, of in (("val", small_graph.val_idx), ("test", small_graph.test_idx)):
        order = rng.permutation(100, rng.key(3, 0, f"evaluate {name}"))
        assert splits[name].tolist() == of[order[:10]].sort().values.tolist()


@pytest.mark.parametrize("name", ["baseline", "dgl", "pyg", "pyg-native-sampler"])
@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_layerwise_evaluation_equals_batches(name, model, small_graph, monkeypatch):
    """In chunks of few edges, for any system's model, compared with a batch of fanout -1."""
    monkeypatch.setattr(evaluate, "EDGES", 60)
    system = make(small_graph, name, model=model, evaluate="all", learning_rate=0.02)
    run(system, 0)
    answers = system.evaluator._over_all(system.trainer)
    batches = evaluator(small_graph, "sampled", fanouts=(-1, -1, -1))
    assert torch.equal(answers, batches._over_samples(system.trainer))
    evaluation = system.evaluate()
    correct = answers == small_graph.labels[system.evaluator._nodes]
    assert evaluation["val_accuracy"] == float(correct[:100].double().mean())
    assert evaluation["test_accuracy"] == float(correct[100:].double().mean())


@pytest.mark.parametrize("name", ["baseline", "dgl", "pyg", "gnnadvisor"])
def test_pieces_count_the_degrees_of_the_whole_layer(name, small_graph, monkeypatch):
    """Compared with one batch of fanout -1 of all nodes that are evaluated."""
    system = make(small_graph, name, model="gcn-symmetric", evaluate="all", learning_rate=0.02)
    run(system, 0)
    monkeypatch.setattr(evaluate, "EDGES", 60)
    answers = system.evaluator._over_all(system.trainer)
    sampler = build_sampler("hop-by-hop", small_graph, [-1] * 3)
    batch = sampler.sample(system.evaluator._nodes, 0, 0)
    rows = small_graph.features[batch.input_nodes.long()]
    values = system.trainer.forward(batch, rows)
    assert len(values.argmax(1).unique()) > 1
    assert torch.equal(answers, values.argmax(1))


@HOW
def test_systems_of_equal_weights_have_equal_accuracy(how, small_graph):
    """The evaluation does not depend on the training sampler."""
    evaluations = [
        make(small_graph, name, evaluate=how, **settings).evaluate()
        for name, settings in (("baseline", {}), ("dgl", {}), ("pyg", {}), ("pgsampler", {}))
    ]
    assert evaluations == evaluations[:1] * 4
    assert evaluations[0]["val_nodes"] == evaluations[0]["test_nodes"] == 100


def test_evaluation_uses_the_training_pick_if_its_law_differs(small_graph):
    system = make(small_graph, settings={"sampler.pick": "random_walk"}, evaluate="sampled")
    assert system.evaluator._sampler.pick == "random_walk"
    assert make(small_graph, "dgl", evaluate="sampled").evaluator._sampler.pick == "floyd"


@HOW
def test_evaluation_does_not_change_training(how, small_graph):
    losses = []
    for evaluates in (False, True):
        system = make(small_graph, evaluate=how)
        reports = []
        for epoch in range(3):
            timed(system, epoch)
            reports.append(system.audit(epoch))
            if evaluates:
                assert system.evaluate() == system.evaluate()
        losses.append([(r.loss, r.counts, r.param_moved) for r in reports])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("schedule", ["serial", "prefetch"])
def test_verification_epoch_does_not_change_the_model(schedule, small_graph):
    """Weights and optimizer state: later epochs are unchanged."""
    reports = []
    for verified in (False, True):
        system = make(small_graph, settings={"schedule": schedule})
        epoch_reports = [run(system, 0)]
        if verified:
            assert system.verify(7, Timeline.on("cpu")).ok
        epoch_reports += [run(system, 1), run(system, 2)]
        reports.append([(r.loss, r.param_norm, r.param_moved) for r in epoch_reports])
        system.close()
    assert reports[0] == reports[1]
