"""Training nodes without a label (-1): no loss counts them, and no check takes them for a fault."""

import dataclasses
import math

import pytest
import torch
from compose import SYSTEMS, make, timed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_graph_with_unlabelled_training_nodes_is_trained_on(name, small_graph):
    labels = small_graph.labels.clone()
    labels[small_graph.train_idx[1:]] = -1  # all batches but one have no labelled seed
    graph = dataclasses.replace(small_graph, labels=labels)
    system = make(graph, name, learning_rate=0.02)
    report = system.check()
    assert report.ok, report.reason
    for epoch in range(3):
        timed(system, epoch)
        audit = system.audit(epoch)
        assert audit.ok, audit.reason
        assert math.isfinite(audit.loss)
    assert all(bool(torch.isfinite(p).all()) for p in system.trainer.model.parameters())
    assert system.recheck(9) == ""
    system.close()


@pytest.mark.parametrize("name", ["baseline", "dgl"])
def test_an_epoch_without_any_labelled_seed_has_no_loss(name, small_graph):
    labels = small_graph.labels.clone()
    labels[small_graph.train_idx[1:]] = -1
    graph = dataclasses.replace(small_graph, labels=labels)
    system = make(graph, name, max_batches=1, batch_size=16)
    assert system.check().ok
    epochs = range(60)
    known = [bool((labels[system.order.batches(e)[0].long()] >= 0).any()) for e in epochs]
    unlabelled = known.index(False)
    timed(system, unlabelled)
    audit = system.audit(unlabelled)
    assert (audit.ok, audit.reason, audit.loss) == (True, "", None)
    assert all(bool(torch.isfinite(p).all()) for p in system.trainer.model.parameters())
    system.close()
