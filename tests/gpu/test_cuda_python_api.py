"""The Python functions on CUDA tensors: mini-batches, gradients, and error types."""

import pytest
import torch
from gpu_graphs import Csc, assert_same, skewed

from gnnbench.core.errors import DataError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.aggregate import aggregate
from gnnbench.kernels.sampler import hop_by_hop

pytestmark = pytest.mark.gpu


def draw(csc: Csc, seeds: torch.Tensor, frontier: str, device: str) -> MiniBatch:
    csc = Csc(csc.indptr.to(device), csc.indices.to(device))
    return hop_by_hop(
        csc.indptr,
        csc.indices,
        seeds.to(device),
        [5, 4, 3],
        pick="floyd",
        frontier=frontier,
        key=17,
        batch=2,
        with_positions=True,
    )


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_mini_batches_equal_the_cpu(frontier):
    csc = skewed(2000, torch.int32, seed=8)
    seeds = torch.arange(0, 2000, 31, dtype=torch.int32)
    on_gpu, on_cpu = (draw(csc, seeds, frontier, device) for device in ("cuda", "cpu"))
    assert on_gpu.sampled_edges == on_cpu.sampled_edges > 0
    assert on_gpu.input_nodes.is_cuda
    assert_same(on_gpu.input_nodes, on_cpu.input_nodes)
    for a, b in zip(on_gpu.blocks, on_cpu.blocks, strict=True):
        assert a.num_dst == b.num_dst
        for name in ("indptr", "indices", "src_nodes", "positions"):
            assert_same(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("mode", ["sum", "mean", "gcn"])
def test_gradients_through_all_blocks(frontier, mode):
    csc = skewed(2000, torch.int64, seed=6)
    seeds = torch.arange(0, 2000, 53)
    on_gpu, on_cpu = (draw(csc, seeds, frontier, device) for device in ("cuda", "cpu"))
    x = torch.randn(on_cpu.input_nodes.numel(), 12, generator=torch.Generator().manual_seed(0))

    def run(batch: MiniBatch, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = x.to(device, copy=True).requires_grad_()
        h = leaf
        for block in batch.blocks:
            h = aggregate(block, h[: block.num_src], mode)
        h.square().sum().backward()
        assert leaf.grad is not None
        return h.detach().cpu(), leaf.grad.cpu()

    for a, b in zip(run(on_gpu, "cuda"), run(on_cpu, "cpu"), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_errors_have_the_documented_types():
    csc = skewed(50, torch.int32, seed=0)
    with pytest.raises(UsageError, match="seeds holds an id outside the graph"):
        draw(csc, torch.tensor([50], dtype=torch.int32), "new", "cuda")
    broken = Csc(csc.indptr, csc.indices + 50)
    with pytest.raises(DataError, match="indices holds an id that is not a node"):
        draw(broken, torch.arange(50, dtype=torch.int32), "new", "cuda")
