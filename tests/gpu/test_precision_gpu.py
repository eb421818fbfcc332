"""TF32 and bfloat16 on a GPU: gate, training, CUDA graphs; layers of gnnbench, DGL and PyG."""

import pytest
import torch
from compose import make

from gnnbench.measure.timeline import Timeline
from gnnbench.models import gradient_check
from gnnbench.models.kinds import MODELS

pytestmark = pytest.mark.gpu

PRECISIONS = ["tf32", "bfloat16"]
OURS = ["csr", "tuned", "memory-aware", "memory-aware-warp", "spmm", "scatter", "gnnadvisor"]
LAYERS = [*OURS, "dgl", "pyg"]
GRAPH = {"schedule.step": "graph"}


@pytest.fixture(autouse=True)
def products_of_float32():
    yield
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def needs_ampere():
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU multiplies neither in TF32 nor in bfloat16")


def losses(system, epochs=2):
    collected = []
    for epoch in range(epochs):
        system.run_epoch(epoch, Timeline.on(system.cell.device))
        collected += torch.stack(system.trainer.losses).tolist()
        report = system.audit(epoch)
        assert report.ok, report.reason
    return collected


def build(graph, precision, settings=None, system="baseline", **changes):
    same = {} if system == "pyg" else {"sampler.pick": "floyd"}
    values = {"model": "graphsage", "hidden": 256, "learning_rate": 0.01, **changes}
    return make(
        graph, system, {**same, **(settings or {})}, device="cuda", precision=precision, **values
    )


def lacks(layers, model):
    return (model == "gat" and layers in ("spmm", "gnnadvisor")) or (
        model == "pinsage" and layers == "gnnadvisor"
    )


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("layers", "model"), [(a, m) for a in LAYERS for m in sorted(MODELS) if not lacks(a, m)]
)
def test_layers_pass_the_gate_and_the_recheck(layers, model, precision, small_graph):
    needs_ampere()
    system = build(small_graph, precision, {"aggregate": layers}, model=model)
    report = system.check()
    assert report.ok, report.reason
    assert report.details["precision"] == precision
    if precision == "bfloat16":  # small products may be of float32 where TF32 is allowed
        assert report.details["forward_error"] > gradient_check.TOLERANCES["float32"]
    assert system.recheck(11) == ""
    assert {t.dtype for t in system.trainer.model.parameters()} == {torch.float32}
    assert torch.backends.cuda.matmul.allow_tf32 == (precision == "tf32")
    system.close()


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_losses_are_those_of_float32_but_for_rounding(precision, layers, small_graph):
    """Each system is built once the other has run: TF32 is a setting of the process."""
    needs_ampere()
    settings = {"aggregate": layers}
    plain = build(small_graph, "float32", settings)
    assert not torch.backends.cuda.matmul.allow_tf32
    expected = losses(plain)
    plain.close()
    system = build(small_graph, precision, settings)
    actual = losses(system)
    assert actual != expected
    assert actual == pytest.approx(expected, rel=0.05)
    system.close()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("settings", [
    GRAPH, {**GRAPH, "schedule": "prefetch"}, {**GRAPH, "aggregate": "tuned"},
    {**GRAPH, "aggregate": "memory-aware"}, {**GRAPH, "aggregate.linear": "fewest-bytes"},
    {"schedule.step": "padded"},
])  # fmt: skip
def test_padded_steps_and_graphs_train_alike(settings, precision, small_graph):
    needs_ampere()
    eager = build(small_graph, precision, dropout=0.3)
    expected = losses(eager)
    eager.close()
    system = build(small_graph, precision, settings, dropout=0.3)
    report = system.check()
    assert report.ok, report.reason
    assert losses(system) == pytest.approx(expected, rel=0.05)
    assert system.recheck(11) == ""
    system.close()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", ["gcn", "gat", "pinsage"])
def test_graphs_capture_other_models(model, precision, small_graph):
    needs_ampere()
    system = build(small_graph, precision, GRAPH, model=model)
    report = system.check()
    assert report.ok, report.reason
    assert len(losses(system)) == 8
    system.close()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["best", "dgl", "pyg", "fastgl"])
def test_systems_of_the_profile_run(name, precision, small_graph):
    needs_ampere()
    system = make(
        small_graph, name, device="cuda", model="graphsage", hidden=256, precision=precision
    )
    report = system.check()
    assert report.ok, report.reason
    system.close()


def test_float32_refuses_tf32_and_bfloat16_of_a_layer(small_graph):
    """What a plug-in may set behind the suite's back."""
    needs_ampere()
    system = build(small_graph, "float32")
    assert system.check().ok
    torch.backends.cuda.matmul.allow_tf32 = True
    assert "are off by" in system.check().reason
    torch.backends.cuda.matmul.allow_tf32 = False
    layer = system.trainer.model.layers[0]
    right = layer.forward

    def in_bfloat16(*args):
        with torch.autocast("cuda", torch.bfloat16):
            return right(*args).float()

    layer.forward = in_bfloat16
    assert "are off by" in system.check().reason
    system.close()


@pytest.mark.parametrize("how", ["sampled", "all"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_evaluation_runs(precision, how, small_graph):
    needs_ampere()
    system = build(small_graph, precision, evaluate=how)
    losses(system, 1)
    assert 0 <= system.evaluate()["test_accuracy"] <= 1
    system.close()
