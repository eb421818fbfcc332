"""Dropout on a GPU: the masks of the CPU, also in CUDA graphs."""

import pytest
import torch
from compose import make

from gnnbench.kernels.dropout import Masks, dropout
from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.gpu

SHAPES = [(0, 3), (1, 1), (5, 47), (8000, 64), (91_900, 64), (70_001, 100), (40, 8415)]
GRAPH = {"schedule.step": "graph"}
SETTINGS = {"model": "graphsage", "dropout": 0.5, "learning_rate": 0.01}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows,dim", SHAPES)
def test_values_and_gradients_equal_the_cpu(rows, dim, dtype, wide):
    draws = torch.Generator().manual_seed(1)
    x, grad = (torch.randn(rows, dim, generator=draws, dtype=dtype) for _ in range(2))
    nodes = torch.randint(0, 1 << 31, (rows,), generator=draws)
    nodes = nodes if wide else nodes.int()
    results = []
    for device in ("cpu", "cuda"):
        leaf = x.to(device, copy=True).requires_grad_()
        out = dropout(leaf, Masks(nodes.to(device), 0.5, (1 << 62) + 3, 9), 2)
        out.backward(grad.to(device))
        results.append((out.detach().cpu(), leaf.grad.cpu()))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_unaligned_rows_and_a_place_on_the_device():
    storage = torch.randn(1 + 300 * 8, device="cuda")
    x, nodes = storage[1:].view(300, 8), torch.arange(300, device="cuda")
    place = torch.tensor([77, 5], device="cuda")
    expected = dropout(x.cpu(), Masks(nodes.cpu(), 0.3, 77, 5), 0)
    assert torch.equal(dropout(x, Masks(nodes, 0.3, place=place), 0).cpu(), expected)


def losses(system, epoch):
    system.run_epoch(epoch, Timeline.on(system.cell.device))
    values = torch.stack(system.trainer.losses).tolist()
    report = system.audit(epoch)
    assert report.ok, report.reason
    return values


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"aggregate": "tuned"}, {"aggregate": "memory-aware"}, {"sampler": "fused-map"},
        {"aggregate": "dgl"}, {"schedule": "prefetch"}, {"schedule.step": "padded"}, GRAPH,
        {**GRAPH, "schedule": "prefetch"},
    ],
)  # fmt: skip
def test_systems_have_the_losses_of_the_cpu(settings, small_graph):
    """Every kind of step draws the same masks; the sampler draws the same edges on both devices."""
    same = {"sampler.pick": "floyd"}
    plain = make(small_graph, settings=same, **SETTINGS)
    system = make(small_graph, settings={**same, **settings}, device="cuda", **SETTINGS)
    assert system.check().ok
    for epoch in range(3):
        assert losses(system, epoch) == pytest.approx(losses(plain, epoch), rel=1e-2)
    assert system.recheck(11) == ""
    system.close()
    plain.close()
