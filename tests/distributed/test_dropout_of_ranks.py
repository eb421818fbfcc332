"""Ranks draw the dropout masks of one process, however they share the batches."""

import pytest
import torch
from compose import make, run
from factored_ranks import factored_systems
from rank_groups import SMALL, trained
from rank_pool import ranks_from

from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.usefixtures("one_thread")

HALF = {**SMALL, "dropout": 0.5, "model": "graphsage"}
SHARED = [
    {"schedule.gradients": "flat"},
    {"schedule.gradients": "ddp"},
    {"schedule.partition": "hybrid", "schedule.method": "random"},
]


@pytest.mark.parametrize("settings", SHARED)
def test_ranks_that_share_batches_have_the_losses_of_one_process(group, small_graph, settings):
    plain, system = make(small_graph, **HALF), group(2, settings, **HALF)
    for (loss, facts, weights), (other, drawn, moved) in zip(
        trained(plain, 2), trained(system, 2), strict=True
    ):
        assert drawn == facts
        torch.testing.assert_close(other, loss, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(moved, weights, rtol=1e-3, atol=1e-4)
    verified = system.verify(5, Timeline.on("cpu"))
    assert verified.ok, verified.reason


def test_ranks_with_whole_batches_have_the_losses_of_one_process(group, small_graph):
    plain, system = make(small_graph, **HALF), group(2, {"schedule.batches": "whole"}, **HALF)
    for epoch in range(2):
        plain.trainer.epoch = epoch
        seeds, losses = plain.order.batches(epoch), []
        for first in range(0, len(seeds), 2):
            batches = [
                plain.stages.sampler.sample(some, epoch, number)
                for number, some in enumerate(seeds[first : first + 2], first)
            ]
            losses += plain.trainer.learn_in_one((b, plain.stages.store.load(b)) for b in batches)
        report = run(system, epoch)
        assert report.ok, report.reason
        assert report.loss == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    verified = system.verify(5, Timeline.on("cpu"))
    assert verified.ok, verified.reason


def test_a_trainer_next_to_a_sampler_has_the_losses_of_one_process(small_graph, rank_pool):
    plain = make(small_graph, **HALF)
    with ranks_from(rank_pool), factored_systems(small_graph) as factored:
        system = factored(1, 1, **HALF)
        for epoch in range(2):
            expected, report = run(plain, epoch), run(system, epoch)
            assert report.ok, report.reason
            assert report.loss == pytest.approx(expected.loss, rel=1e-5)
        verified = system.verify(5, Timeline.on("cpu"))
        assert verified.ok, verified.reason
