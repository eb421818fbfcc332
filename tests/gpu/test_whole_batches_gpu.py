"""Ranks on separate GPUs with whole batches of their own."""

import pytest
import torch
from compose import counted, make, run
from two_processes import alive

from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.gpu(count=2)

SMALL = {"batch_size": 24, "fanouts": (3, 2), "device": "cuda"}  # nine batches, the last one of 8
WHOLE = {"schedule": "data-parallel", "schedule.batches": "whole"}


@pytest.fixture
def ranks(small_graph):
    """Builds systems of two ranks, one at a time, and checks that nothing of them remains."""
    made = []

    def end():
        for system in made:
            pids = system.schedule.pids
            system.close()
            assert not any(map(alive, pids))
        made.clear()

    def build(settings, system="baseline"):
        end()
        made.append(make(small_graph, system, {**WHOLE, **settings}, **SMALL))
        return made[-1]

    yield build
    end()


def verified(system, epoch=5):
    timeline = Timeline.on("cuda")
    timeline.start()
    report = system.verify(epoch, timeline)
    timeline.stop()
    assert report.ok, report.reason
    return report


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("features", ["uva", "host", "gpu"])
def test_producers_of_the_ranks_do_their_work(ranks, processes, features):
    """Each on its rank's GPU; rows are gathered where the rank reads them."""
    settings = {"features": features, "sampler.topology": "cpu"}
    reports = []
    for more in ({}, {"schedule.processes": processes}):
        system = ranks({**settings, **more})
        assert system.check().ok
        reports.append([run(system), run(system, 1), verified(system)])
    for theirs, ours in zip(*reports, strict=True):
        assert ours.ok and theirs.ok, ours.reason
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4) and ours.digest == theirs.digest
        served = [
            {k: n for k, n in counted(report).items() if k[1] == "feature_bytes"}
            for report in (ours, theirs)
        ]
        assert served[0] == served[1]
        assert counted(ours)["schedule", "copied_bytes", ""] == 0


@pytest.mark.parametrize("way", ["flat", "ddp"])
def test_updates_are_those_of_one_gpu(ranks, small_graph, way):
    plain, system = make(small_graph, **SMALL), ranks({"schedule.gradients": way})
    assert system.check().ok
    seeds, losses = plain.order.batches(0, "cuda"), []
    for first in range(0, 9, 2):
        numbers = range(first, min(first + 2, 9))
        batches = [plain.stages.sampler.sample(seeds[n], 0, n) for n in numbers]
        losses += plain.trainer.learn_in_one((b, plain.stages.store.load(b)) for b in batches)
    report = run(system)
    assert report.ok, report.reason
    assert counted(report)["schedule", "updates", ""] == 5
    assert report.loss == pytest.approx(sum(losses) / 9, rel=1e-3)
    for own, right in zip(
        system.trainer.model.parameters(), plain.trainer.model.parameters(), strict=True
    ):
        torch.testing.assert_close(own, right, rtol=1e-2, atol=1e-3)
    assert verified(system).digest == verified(plain).digest != ""
    assert system.recheck(6) == "" and run(system, 7).ok


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fastgl", {}),
        ("fastgl", {"order": "as-drawn", "features": "window", "features.window": 3}),
        ("tsota", {"features.ratio": 0.3}),
        ("baseline", {"features": "sharded"}),
        ("baseline", {"sampler.frontier": "new"}),
        ("dgl", {}),
        ("pyg", {}),
    ],
)
def test_systems_have_whole_batches(ranks, name, settings):
    system = ranks(settings, name)
    assert system.check().ok
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert (report.batches, report.seeds) == (9, 200)
    verified(system)
    assert system.recheck(6) == ""
