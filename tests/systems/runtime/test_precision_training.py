"""Whole systems that multiply matrices in bfloat16: training, gate, verification, evaluation."""

import pytest
import torch
from compose import make, run
from torch import nn

from gnnbench.measure.timeline import Timeline
from gnnbench.models import gradient_check
from gnnbench.models.kinds import MODELS

pytestmark = pytest.mark.usefixtures("one_thread")

NARROW = {"precision": "bfloat16", "learning_rate": 0.01}
FLOAT32 = {"learning_rate": 0.01}
# Every system that trains on a CPU, and every aggregation, schedule and kind of step of ours.
SYSTEMS = [
    *((name, {}) for name in (
        "baseline", "best", "dgl", "fastgl", "fastsample", "gnnadvisor", "gnnlab", "graphbolt",
        "pagraph", "pgsampler", "pyg", "tsota", "zero-copy",
    )),
    *(("baseline", {"aggregate": name}) for name in ("spmm", "scatter", "gnnadvisor")),
    ("baseline", {"aggregate.linear": "fewest-bytes"}),
    ("baseline", {"schedule": "prefetch"}),
    ("baseline", {"schedule": "alternate"}),
    ("baseline", {"schedule.step": "padded"}),
]  # fmt: skip


def losses(system, epochs=2):
    """The loss of each batch."""
    collected = []
    for epoch in range(epochs):
        system.run_epoch(epoch, Timeline.on("cpu"))
        collected += torch.stack(system.trainer.losses).tolist()
        report = system.audit(epoch)
        assert report.ok, report.reason
    return collected


def multiplied(monkeypatch):
    """Dtypes of the results of dense matrix products of layers, as they are computed."""
    seen = set()
    for owner, name in ((torch, "addmm"), (torch.Tensor, "__matmul__"), (nn.functional, "linear")):
        original = getattr(owner, name)

        def product(*args, original=original, **named):
            result = original(*args, **named)
            if all(t.layout == torch.strided for t in args if isinstance(t, torch.Tensor)):
                seen.add(result.dtype)
            return result

        monkeypatch.setattr(owner, name, product)
    return seen


@pytest.mark.parametrize("name,settings", SYSTEMS)
def test_every_system_trains_in_bfloat16(name, settings, small_graph, monkeypatch):
    plain = make(small_graph, name, settings, model="graphsage", **FLOAT32)
    expected = losses(plain)
    plain.close()
    system = make(small_graph, name, settings, model="graphsage", **NARROW)
    report = system.check()
    assert report.ok, report.reason
    assert report.details["precision"] == "bfloat16"
    # Values are off by more than float32 is allowed to, gradients too.
    assert gradient_check.TOLERANCES["float32"] < report.details["forward_error"] < 4 / 256
    assert report.details["backward_error"] > gradient_check.TOLERANCES["float32"]
    with monkeypatch.context() as patch:
        seen = multiplied(patch)
        actual = losses(system)
    assert seen == {torch.bfloat16}
    assert actual != expected
    assert {t.dtype for t in system.trainer.model.parameters()} == {torch.float32}
    assert {t.dtype for t in system.trainer.state() if t.is_floating_point()} == {torch.float32}
    assert system.trainer.mean_gradients().dtype == torch.float32
    assert system.recheck(11) == ""
    system.close()


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("layers", ["csr", "dgl", "pyg"])
def test_layers_train_every_model_alike(layers, model, small_graph):
    """Equal edges: losses differ by a few roundings of bfloat16 from those of float32."""
    settings = {"aggregate": layers}
    plain = make(small_graph, settings=settings, model=model, **FLOAT32)
    system = make(small_graph, settings=settings, model=model, **NARROW)
    report = system.check()
    assert report.ok, report.reason
    expected, actual = losses(plain), losses(system)
    assert actual != expected
    assert actual == pytest.approx(expected, rel=0.02)
    plain.close()
    system.close()


@pytest.mark.parametrize("settings", [
    {"schedule": "data-parallel", "schedule.ranks": 2},
    {"schedule": "data-parallel", "schedule.ranks": 2, "schedule.gradients": "ddp"},
])  # fmt: skip
def test_ranks_pass_their_verification(settings, small_graph):
    system = make(small_graph, settings=settings, model="gcn", **NARROW)
    report = system.check()
    assert report.ok, report.reason
    verified = system.verify(9, Timeline.on("cpu"))
    assert verified.ok, verified.reason
    system.close()


def test_precision_that_is_not_set_is_float32(small_graph, monkeypatch):
    system = make(small_graph, model="graphsage")
    assert "precision" not in system.check().details
    seen = multiplied(monkeypatch)
    losses(system)
    assert seen == {torch.float32}


def rounds_rows(system):
    """Has the first layer round its rows to bfloat16, as a faulty plug-in would."""

    def rounded(_, args):
        return args[0], args[1].bfloat16().float()

    system.trainer.model.layers[0].register_forward_pre_hook(rounded)


def test_rounded_rows_are_a_fault_in_float32_alone(small_graph):
    plain, narrow = (make(small_graph, model="gcn", **changes) for changes in (FLOAT32, NARROW))
    for system in (plain, narrow):
        rounds_rows(system)
    assert "forward values on the fixed block are off by" in plain.check().reason
    assert narrow.check().ok


def test_autocast_of_a_plug_in_is_a_fault_in_float32_alone(small_graph):
    def in_autocast(layer):
        right = layer.forward

        def forward(*args):
            with torch.autocast("cpu", torch.bfloat16):
                return right(*args).float()

        layer.forward = forward

    plain, narrow = (make(small_graph, model="gcn", **changes) for changes in (FLOAT32, NARROW))
    for system in (plain, narrow):
        in_autocast(system.trainer.model.layers[1])
    assert "forward values on the fixed block are off by" in plain.check().reason
    assert narrow.check().ok


def test_wrong_layers_are_a_fault_in_bfloat16(small_graph):
    system = make(small_graph, model="graphsage", **NARROW)
    assert system.check().ok
    with torch.no_grad():
        for values in system.trainer.model.parameters():
            values.mul_(1.1)
    assert "forward values" in system.check().reason


def test_model_without_gradients_of_its_rows_is_a_fault_in_bfloat16(small_graph):
    system = make(small_graph, model="gcn", **NARROW)
    system.trainer.model.layers[-1].register_forward_pre_hook(
        lambda _, args: (args[0], args[1].detach())
    )
    assert "gradients of the input rows" in system.check().reason


@pytest.mark.parametrize("how", ["sampled", "all"])
def test_evaluation_has_the_precision_of_training(how, small_graph, monkeypatch):
    system = make(small_graph, model="gcn", evaluate=how, **NARROW)
    run(system, 0)
    seen = multiplied(monkeypatch)
    accuracies = system.evaluate()
    assert seen == {torch.bfloat16}
    assert 0 <= accuracies["val_accuracy"] <= 1


@pytest.mark.parametrize("precision,step", [("float32", 2.0**-23), ("bfloat16", 2.0**-7)])
def test_jitter_is_one_rounding_step_of_the_precision(precision, step, small_graph):
    plain, other = (
        make(small_graph, model="gcn", precision=precision, jitter=seed) for seed in (0, 5)
    )
    pairs = zip(plain.trainer.model.parameters(), other.trainer.model.parameters(), strict=True)
    moved = torch.cat([(b / a - 1)[a != 0].detach().flatten() for a, b in pairs]) / step
    assert float(moved.std()) == pytest.approx(1, rel=0.3)
