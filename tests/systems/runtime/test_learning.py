"""Correct training reaches an accuracy on other nodes, and training with a fault does not.

The graphs are real ones and a planted one: its communities are its classes, and single rows
hardly identify them. The required accuracies lie between those measured with and without faults.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from compose import make, timed

from gnnbench.core.errors import DataError
from gnnbench.datasets.graph import Graph
from gnnbench.systems.runtime import evaluate

pytestmark = pytest.mark.usefixtures("one_thread")

SYSTEMS = ["baseline", "dgl", "pyg", "pyg-native-sampler", "fastsample"]
CLASSES = 5
PLANTED = {"epochs": 6, "required": 0.93, "batch_size": 100, "learning_rate": 0.01}
REAL = {
    "epochs": 2, "required": 0.7, "batch_size": 256, "learning_rate": 0.004, "fanouts": (5, 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def planted() -> Graph:
    """2000 nodes with 10 in-neighbours, 8 of their own class. Rows are noisy class centres: the
    mean of a neighbourhood identifies the class, a single row rarely does."""
    rng = np.random.default_rng(5)
    n, degree, dim = 2000, 10, 16
    labels = rng.integers(0, CLASSES, n)
    members = [np.flatnonzero(labels == c) for c in range(CLASSES)]
    own = np.stack([rng.choice(members[c], degree) for c in labels])
    other = rng.integers(0, n, (n, degree))
    indices = np.where(rng.random((n, degree)) < 0.8, own, other)
    features = rng.normal(size=(n, dim)) + 0.4 * rng.normal(size=(CLASSES, dim))[labels]
    order = torch.from_numpy(rng.permutation(n))
    train, val, test = (part.sort().values for part in order.split([1000, 400, 600]))
    return Graph(
        name="planted",
        indptr=torch.arange(0, degree * n + 1, degree),
        indices=torch.from_numpy(indices.astype(np.int32)).flatten(),
        features=torch.from_numpy(features.astype(np.float32)),
        labels=torch.from_numpy(labels),
        train_idx=train, val_idx=val, test_idx=test, num_classes=CLASSES,
    )  # fmt: skip


@pytest.fixture(scope="module")
def loaded(real_data) -> Graph:
    """Amazon Computers: 13,752 nodes, real rows, 10 classes; the majority class has 0.38."""
    from gnnbench.datasets.prepare import load_dataset

    path = real_data / "amazon_computers.npz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {real_data}")
    return load_dataset(str(path))


@pytest.fixture
def computers(loaded, monkeypatch) -> Graph:
    """The same; some of its nodes are evaluated."""
    monkeypatch.setattr(evaluate, "NODES", 2000)
    return loaded


def accuracies(graph, name="baseline", plant=lambda system: None, how="sampled", **settings):
    """Validation and test accuracy after training; ``plant`` may change the system first."""
    epochs, _ = settings.pop("epochs"), settings.pop("required")
    shape = {"model": "graphsage", "fanouts": (10, 5), "hidden": 64, "evaluate": how}
    system = make(graph, name, **{**shape, **settings})
    plant(system)
    for epoch in range(epochs):
        timed(system, epoch)
        system.audit(epoch)
    evaluation = system.evaluate()
    system.close()
    return evaluation["val_accuracy"], evaluation["test_accuracy"]


def flip_gradients(layers):
    """Flips the sign of the gradients of the first ``layers`` layers."""

    def plant(system):
        trainer = system.trainer
        right, wrong = trainer._optimizer.step, trainer.model.layers[:layers].parameters()
        flipped = list(wrong)

        def step():
            for parameter in flipped:
                parameter.grad.neg_()
            right()

        trainer._optimizer.step = step

    return plant


def disable_optimizer(system):
    """Disables the optimizer."""
    system.trainer._optimizer.step = lambda: None


def change_labels(change):
    """Trains with changed labels."""

    def plant(system):
        system.trainer._labels = change(system.trainer._labels)

    return plant


def shuffled(labels):
    return labels[torch.randperm(labels.numel(), generator=torch.Generator().manual_seed(1))]


FAULTS = {
    "gradient-flipped": flip_gradients(2),
    "gradient-of-the-input-layer-flipped": flip_gradients(1),
    "no-gradient": disable_optimizer,
    "labels-shuffled": change_labels(shuffled),
    "labels-of-the-next-node": change_labels(lambda labels: labels.roll(1)),
    "labels-of-the-next-class": change_labels(
        lambda labels: (labels + 1) % (int(labels.max()) + 1)
    ),
}
FAULTY = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


@pytest.mark.parametrize("how", ["sampled", "all"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_learns_planted_communities(name, how, planted):
    assert min(accuracies(planted, name, how=how, **PLANTED)) > PLANTED["required"]


@FAULTY
def test_training_with_a_fault_does_not_learn(fault, planted):
    assert max(accuracies(planted, plant=fault, **PLANTED)) < PLANTED["required"] - 0.1


def test_training_on_three_classes_does_not_learn_the_others(planted):
    """All training nodes are of the same three classes."""
    train = planted.train_idx[planted.labels[planted.train_idx] < 3]
    crossed = replace(planted, train_idx=train)
    assert max(accuracies(crossed, **PLANTED)) < PLANTED["required"] - 0.1


def test_validation_nodes_among_training_nodes_are_refused(planted):
    """Otherwise an overfitted model would be accurate."""
    leaked = replace(planted, train_idx=torch.cat([planted.train_idx, planted.val_idx]).sort()[0])
    with pytest.raises(DataError, match="val nodes among its training nodes: its split is broken"):
        accuracies(leaked, **PLANTED)


def test_rows_without_neighbours_do_not_suffice(planted):
    """The required accuracy needs correct edges."""
    self_loops = replace(
        planted, indices=torch.arange(2000, dtype=torch.int32).repeat_interleave(10)
    )
    assert max(accuracies(self_loops, **PLANTED)) < PLANTED["required"] - 0.1


@pytest.mark.real_data
@pytest.mark.parametrize("name", SYSTEMS[:3])
def test_systems_learn_a_real_graph(name, computers):
    assert min(accuracies(computers, name, **REAL)) > REAL["required"]


@pytest.mark.real_data
@pytest.mark.parametrize(
    "fault", ["gradient-of-the-input-layer-flipped", "labels-of-the-next-node"]
)
def test_a_planted_fault_does_not_learn_a_real_graph(fault, computers):
    assert max(accuracies(computers, plant=FAULTS[fault], **REAL)) < REAL["required"] - 0.1


@pytest.mark.real_data
def test_coauthor_physics_is_learnt(real_data, monkeypatch):
    """A few batches suffice; the majority class has 0.51."""
    from gnnbench.datasets.prepare import load_dataset

    monkeypatch.setattr(evaluate, "NODES", 500)
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = load_dataset("coauthor_physics")
    few = {"epochs": 1, "required": 0.9, "batch_size": 256, "learning_rate": 0.01, "max_batches": 6}
    assert min(accuracies(graph, **few)) > 0.9
