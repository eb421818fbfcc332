"""The operators run on torch's current stream, on the tensors' device, and nowhere else."""

import pytest
import torch
from gpu_graphs import assert_same, skewed

pytestmark = pytest.mark.gpu


def test_another_stream_gives_the_same_bits(ops):
    csc = skewed(5000, torch.int64, seed=4)
    seeds = torch.arange(0, 5000, 7)
    args = ([10, 5], "reservoir", [], [], "cumulative", 11, 0, True)
    expected = ops.sample(csc.indptr, csc.indices, seeds, *args)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        indptr, indices, on_gpu = (t.cuda() for t in (csc.indptr, csc.indices, seeds))
        got = ops.sample(indptr, indices, on_gpu, *args)
        assert_same(got, expected)


def test_work_is_ordered_by_the_current_stream(ops):
    # The ids are written late, by the same stream: a launch on another one would read zeros.
    table = torch.arange(4096.0, device="cuda").reshape(-1, 4)
    ids = torch.zeros(1000, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        ids.add_(torch.arange(1000, device="cuda"))
        out = ops.gather(table, ids)
    stream.synchronize()
    assert torch.equal(out, table[:1000])


def test_refuses_tensors_of_two_devices(ops):
    csc = skewed(100, torch.int32, seed=0)
    seeds = torch.arange(5, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="must be on a CUDA device"):
        graph = (csc.indptr.cuda(), csc.indices.cuda())
        ops.sample(*graph, seeds, [2], "floyd", [], [], "new", 0, 0, False)
    with pytest.raises(RuntimeError, match="must be on a CUDA device"):
        ops.gather(torch.ones(3, 3), torch.zeros(2, dtype=torch.int64, device="cuda"))
