"""What an audit finds of the batch order and the training of an epoch."""

from dataclasses import replace
from types import SimpleNamespace

import torch
from compose import make, run

from gnnbench.systems.runtime.epoch_audit import check_seeds

TRAIN = torch.tensor([2, 3, 5, 7, 11])


def test_an_order_holds_training_nodes_and_each_once():
    two = [torch.tensor([11, 2]), torch.tensor([5])]
    assert check_seeds(two, TRAIN) == ""
    assert check_seeds([], TRAIN) == ""
    assert "a training node twice" in check_seeds([*two, torch.tensor([2])], TRAIN)
    for other in (0, 4, 12):
        fault = check_seeds([*two, torch.tensor([other])], TRAIN)
        assert "none of the training set" in fault


def test_an_order_of_ones_own_is_looked_at(small_graph):
    system = make(small_graph, until="sample")
    right = system.order
    system.order = SimpleNamespace(batches=lambda *args: right.batches(*args)[:1] * 4)
    report = run(system)
    assert not report.ok and "a training node twice" in report.reason


def test_every_batch_is_trained_on(small_graph):
    system = make(small_graph)
    trainer = system.trainer

    def once(batch, rows):
        if not trainer.losses:
            trainer.step(batch, rows)

    system.stages = replace(system.stages, trainer=SimpleNamespace(step=once))
    report = run(system)
    assert not report.ok
    assert report.reason == "the model was trained on 1 batches of 4"


def test_an_epoch_that_nobody_audits_leaves_nothing_to_the_next(small_graph):
    system = make(small_graph)
    assert system.check().ok
    system.run_unmeasured(5)
    right = make(small_graph)
    assert right.check().ok
    right.run_unmeasured(5)
    report = run(system, 3)
    assert report.ok, report.reason
    assert report.loss == run(right, 3).loss
