"""Ranks with whole batches of their own take the updates of one process that sums gradients."""

import pytest
import torch
from compose import counted, make, run
from rank_groups import SMALL

from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.usefixtures("one_thread")

WHOLE = {"schedule.batches": "whole"}


def reached(plain, ranks, epochs=2):
    """Train a serial system in steps of ``ranks`` batches; by epoch its losses and weights."""
    results = []
    for epoch in range(epochs):
        seeds, losses = plain.order.batches(epoch), []
        for first in range(0, len(seeds), ranks):
            numbers = range(first, min(first + ranks, len(seeds)))
            batches = [plain.stages.sampler.sample(seeds[n], epoch, n) for n in numbers]
            losses += plain.trainer.learn_in_one((b, plain.stages.store.load(b)) for b in batches)
        weights = torch.cat([p.detach().flatten() for p in plain.trainer.model.parameters()])
        results.append((losses, weights))
    return results


@pytest.mark.parametrize("way", ["flat", "ddp"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_updates_are_those_of_one_process(group, small_graph, ranks, way):
    plain = make(small_graph, **SMALL)
    system = group(ranks, {**WHOLE, "schedule.gradients": way})
    assert system.check().ok
    for epoch, (losses, weights) in enumerate(reached(plain, ranks)):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert (report.batches, report.seeds) == (4, 200)
        assert counted(report)["schedule", "updates", ""] == -(-4 // ranks)
        assert report.loss == pytest.approx(sum(losses) / 4, rel=1e-5)
        own = torch.cat([p.detach().flatten() for p in system.trainer.model.parameters()])
        torch.testing.assert_close(own, weights, rtol=1e-3, atol=1e-5)
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    assert other.ok, other.reason
    assert other.digest == one.digest != ""
