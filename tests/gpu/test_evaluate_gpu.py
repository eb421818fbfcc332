"""Evaluation of models trained on a GPU, and its effect on the numbers of an epoch."""

import compose
import pytest
import torch

from gnnbench.systems.runtime import evaluate
from gnnbench.systems.runtime.evaluate import Evaluator

pytestmark = pytest.mark.gpu

BALLAST = 1 << 28
HOW = pytest.mark.parametrize("how", ["sampled", "all"])


@HOW
@pytest.mark.parametrize("model", ["gcn", "graphsage"])
@pytest.mark.parametrize("name", ["baseline", "pyg"])
def test_accuracy_equals_the_cpu(name, model, how, small_graph, monkeypatch):
    """The same weights and neighbours, also in pieces; rounding may change single nodes."""
    monkeypatch.setattr(evaluate, "EDGES", 60)
    kinds = {"model": model, "evaluate": how}
    made = [compose.make(small_graph, name, device=d, **kinds) for d in ("cuda", "cpu")]
    ours, right = (system.evaluate() for system in made)
    assert ours == pytest.approx(right, abs=0.011)
    for system in made:
        system.close()


def _with_ballast(evaluator, nodes):
    torch.empty(BALLAST, dtype=torch.uint8, device="cuda")
    return evaluator._job.graph.features[nodes.long()]


@HOW
def test_evaluation_does_not_change_epochs(how, small_graph, monkeypatch):
    """Neither losses nor the reported peak memory, although evaluation uses more memory."""
    monkeypatch.setattr(Evaluator, "_rows", lambda self, nodes: _with_ballast(self, nodes))
    runs = []
    for looks in (False, True):
        system = compose.make(small_graph, device="cuda", evaluate=how)
        reports = []
        for epoch in range(3):
            reports.append(compose.run(system, epoch))
            if looks:
                assert system.evaluate() == system.evaluate()
        runs.append([(r.loss, r.ok, r.peak_alloc_bytes) for r in reports])
        system.close()
    for (one, fine, peak), (other, as_fine, as_high) in zip(*runs, strict=True):
        assert fine and as_fine and one == pytest.approx(other, rel=1e-3)
        assert as_high < peak + BALLAST // 2


def test_verification_epoch_does_not_change_the_model(small_graph):
    from gnnbench.measure.timeline import Timeline

    system = compose.make(small_graph, device="cuda")
    assert compose.run(system, 0).ok
    before = system.trainer.kept()
    assert system.verify(7, Timeline.on("cuda")).ok
    after = system.trainer.kept()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    system.close()


def test_training_on_a_gpu_learns(small_graph):
    """The feature rows determine the class, of neighbours of training nodes and of other nodes."""
    how = {"evaluate": "sampled", "model": "graphsage", "learning_rate": 0.02}
    system = compose.make(small_graph, device="cuda", **how)
    first = system.evaluate()["test_accuracy"]
    for epoch in range(8):
        assert compose.run(system, epoch).ok
    assert system.evaluate()["test_accuracy"] > first + 0.1
    system.close()
