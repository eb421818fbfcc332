"""Sets of ids are identical to the CPU's: unions, positions, rows and ones."""

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.errors import UsageError
from gnnbench.kernels.id_set import union_ids

pytestmark = pytest.mark.gpu


def drawn(nodes, sizes, dtype, seed=1):
    """Batches of distinct ids in any order."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randperm(nodes, generator=draw)[:n].to(dtype) for n in sizes]


def on_gpu(batches):
    return [b.cuda() for b in batches]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "nodes,sizes",
    [
        (1, [1]), (1, [0]), (31, [31, 3]), (32, [32, 32]), (33, [33, 1]), (97, [0, 40, 0, 97]),
        (5000, [300] * 20), (1_000_003, [200_000, 1, 150_000, 0, 200_000]),
        (100, [7] * 70),
    ],
)  # fmt: skip
def test_unions_equal_the_cpu(nodes, sizes, dtype, shared):
    batches = drawn(nodes, sizes, dtype)
    right, actual = (union_ids(b, nodes, shared) for b in (batches, on_gpu(batches)))
    assert_same(actual.ids, right.ids)
    assert_same(actual.words, right.words)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_unions_of_few_of_many_nodes(dtype, shared):
    draw, nodes = torch.Generator().manual_seed(1), 134_000_000
    batches = [torch.randint(0, nodes, (n,), generator=draw).to(dtype) for n in (5, 900_000)]
    batches.append(torch.tensor([nodes - 1, 0, int(batches[0][0])], dtype=dtype))
    right, actual = (union_ids(b, nodes, shared) for b in (batches, on_gpu(batches)))
    assert_same(actual.ids, right.ids)
    assert_same(actual.words, right.words)
    assert int(batches[0][0]) in right.ids.tolist()


def test_repeated_ids():
    batches = [torch.tensor([5, 5, 64, 9], dtype=torch.int32), torch.full((4000,), 77).int()]
    for shared in (False, True):
        right, actual = (union_ids(b, 100, shared) for b in (batches, on_gpu(batches)))
        assert_same(actual.ids, right.ids)
        assert_same(actual.words, right.words)
    assert right.ids.tolist() == [5, 77]


def test_a_graph_without_nodes():
    none = torch.empty(0, dtype=torch.int64, device="cuda")
    actual = union_ids([none], 0)
    assert actual.ids.shape == (0,) and actual.words.shape == (0, 2)
    assert actual.gather(torch.empty(0, 3, device="cuda"), none).shape == (0, 3)


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("width", [1, 3, 31, 32, 33, 100, 128, 261, 1025])
def test_rows_of_a_batch(width, dtype, ids_dtype):
    batches = drawn(3000, [700, 900, 0, 1500], ids_dtype, seed=width)
    union = union_ids(on_gpu(batches), 3000)
    draw = torch.Generator().manual_seed(width)
    size = union.ids.numel() * width * dtype.itemsize
    raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=draw)
    rows = raw.view(dtype).view(-1, width)
    place = {i: nth for nth, i in enumerate(union.ids.tolist())}
    for batch in batches:
        actual = union.gather(rows.cuda(), batch.cuda())
        right = rows[[place[i] for i in batch.tolist()]]
        assert actual.dtype is dtype and actual.shape == right.shape
        assert torch.equal(actual.cpu().view(torch.uint8), right.view(torch.uint8))


@pytest.mark.parametrize("shift", [1, 2, 4, 8])
def test_unaligned_rows(shift):
    ids = torch.tensor([90, 2, 33], dtype=torch.int32, device="cuda")
    union = union_ids([ids], 100)
    rows = torch.arange(shift + 3 * 16, dtype=torch.uint8, device="cuda")[shift:].view(3, 16)
    assert torch.equal(union.gather(rows, ids), rows[[2, 0, 1]])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "first,pieces,width", [(0, 1, 1), (0, 3, 7), (5, 2, 16), (40, 9, 33), (900, 1, 5)]
)
def test_ones_equal_the_cpu(first, pieces, width, dtype):
    batches = drawn(500, [100, 0, 333, 7, 250], dtype)
    actual = []
    for where in (batches, on_gpu(batches)):
        out = torch.full((pieces, 5, width), 3, dtype=torch.float16, device=where[0].device)
        actual.append(union_ids(where[:4], 500).ones(where, first, out))
    assert_same(actual[1], actual[0])


def test_current_stream_is_used():
    """The same stream writes the ids late; the host waits for no other stream."""
    other, stream = torch.cuda.Stream(), torch.cuda.Stream()
    ids = torch.zeros(1000, dtype=torch.int32, device="cuda")
    with torch.cuda.stream(stream):  # first calls load modules, which synchronizes the device
        ids.add_(torch.arange(1000, dtype=torch.int32, device="cuda")).zero_()
        union_ids([ids], 2000).gather(ids, ids[:1])
    torch.cuda.synchronize()
    with torch.cuda.stream(other):
        torch.cuda._sleep(2_000_000_000)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        ids.add_(torch.arange(1000, dtype=torch.int32, device="cuda"))
        union = union_ids([ids], 2000)
        rows = union.gather(union.ids, ids)
    assert not other.query()
    stream.synchronize()
    assert_same(rows, torch.arange(1000, dtype=torch.int32))
    torch.cuda.synchronize()


def test_bad_arguments():
    (ids,) = on_gpu(drawn(40, [5], torch.int32))
    union = union_ids([ids], 40)
    with pytest.raises(UsageError, match="batches must be on a CUDA device"):
        union_ids([ids, ids.cpu()], 40)
    with pytest.raises(UsageError, match="batches must be int32, it is int64"):
        union_ids([ids, ids.long()], 40)
    with pytest.raises(UsageError, match="id_set must be on a CUDA device"):
        type(union)(union.ids, union.words.cpu()).gather(torch.ones(5, 2, device="cuda"), ids)
    with pytest.raises(UsageError, match="ones must have a row for each of the 1 batches"):
        union.ones([ids], 0, torch.zeros(1, 2, 4, dtype=torch.float16, device="cuda"))
    with pytest.raises(UsageError, match="ones must be on a CUDA device"):
        union.ones([ids], 0, torch.zeros(1, 1, 4, dtype=torch.float16))
    assert float(torch.ones(3, device="cuda").sum()) == 3  # the device still works
