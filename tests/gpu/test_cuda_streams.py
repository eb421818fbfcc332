"""The operators run only on torch's current stream of the tensors' device."""

import pytest
import torch
from gpu_graphs import assert_same, skewed

from gnnbench.kernels.fused import DenseMap, fastsample
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

LATE = 200_000_000  # cycles, a tenth of a second
HOW = {"pick": "floyd", "frontier": "cumulative", "key": 11, "with_positions": True}


def test_another_stream_gives_the_same_bits(ops):
    csc = skewed(5000, torch.int64, seed=4)
    seeds = torch.arange(0, 5000, 7)
    args = ([10, 5], "reservoir", [], [], "cumulative", 11, 0, True)
    expected = ops.hop_by_hop(csc.indptr, csc.indices, seeds, *args)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        indptr, indices, on_gpu = (t.cuda() for t in (csc.indptr, csc.indices, seeds))
        got = ops.hop_by_hop(indptr, indices, on_gpu, *args)
        assert_same(got, expected)


def test_work_is_ordered_by_the_current_stream(ops):
    # The same stream writes the ids late, so a launch on another stream would read zeros.
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
        ops.hop_by_hop(*graph, seeds, [2], "floyd", [], [], "new", 0, 0, False)
    with pytest.raises(RuntimeError, match="must be on a CUDA device"):
        ops.gather(torch.ones(3, 3), torch.zeros(2, dtype=torch.int64, device="cuda"))


def test_dense_map_is_synchronized_with_another_stream():
    csc = skewed(5000, torch.int32, seed=4)
    graph = csc.indptr.cuda(), csc.indices.cuda()
    seeds = torch.arange(0, 5000, 7, device="cuda", dtype=torch.int32)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        dense_map = DenseMap.of(5000, "cuda")
        dense_map.ids.zero_()  # marks every node as known
        torch.cuda.synchronize()
        torch.cuda._sleep(LATE)
        dense_map.ids.fill_(-1)
    with torch.cuda.stream(second):
        drawn, _ = fastsample(*graph, seeds, [10, 5], **HOW, batch=0, dense_map=dense_map)
        right = hop_by_hop(csc.indptr, csc.indices, seeds.cpu(), [10, 5], **HOW, batch=0)
        assert same_work(right, drawn) is None


def test_versioned_table_is_synchronized_with_another_stream():
    csc = skewed(5000, torch.int32, seed=4)
    graph = csc.indptr.cuda(), csc.indices.cuda()
    seeds = torch.arange(0, 5000, 7, device="cuda", dtype=torch.int32)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(first):
        table = VersionedTable("cuda")
        table.grow(1 << 17)  # the table has room for several batches
        gnnlab(*graph, seeds, [10, 5], **HOW, batch=0, table=table)
        assert table.version == 1
        torch.cuda.synchronize()
        torch.cuda._sleep(LATE)
        table.words.zero_()
        table.version = 0  # the next batch then has the version of the entries still in the table
    with torch.cuda.stream(second):
        drawn = gnnlab(*graph, seeds.flip(0), [10, 5], **HOW, batch=1, table=table)
        right = hop_by_hop(csc.indptr, csc.indices, seeds.cpu().flip(0), [10, 5], **HOW, batch=1)
        assert same_work(right, drawn) is None


@pytest.mark.parametrize("sampler", ["fastsample", "gnnlab"])
def test_batches_alternate_between_two_streams(sampler):
    csc = skewed(20_000, torch.int64, seed=4)
    graph = csc.indptr.cuda(), csc.indices.cuda()
    order = torch.randperm(20_000, generator=torch.Generator().manual_seed(1))
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    dense_map, table = DenseMap.of(20_000, "cuda"), VersionedTable("cuda")
    torch.cuda.synchronize()
    for batch in range(60):
        seeds = order[300 * batch : 300 * (batch + 1)]
        with torch.cuda.stream(streams[batch % 2]):
            args = (*graph, seeds.cuda(), [10, 5])
            if sampler == "gnnlab":
                drawn = gnnlab(*args, **HOW, batch=batch, table=table)
            else:
                drawn, _ = fastsample(*args, **HOW, batch=batch, dense_map=dense_map)
            right = hop_by_hop(csc.indptr, csc.indices, seeds, [10, 5], **HOW, batch=batch)
            assert same_work(right, drawn) is None
