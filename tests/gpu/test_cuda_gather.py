"""Gathered rows are identical to the table, for any width and alignment."""

import pytest
import torch
from gpu_graphs import assert_same

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.int64])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 64, 100, 128, 129, 1000])
def test_equals_cpu(ops, gpu, ids_dtype, dtype, dim):
    generator = torch.Generator().manual_seed(dim)
    table = torch.randint(0, 100, (500, dim), generator=generator).to(dtype)
    ids = torch.randint(0, 500, (777,), generator=generator).to(ids_dtype)
    expected = ops.gather(table, ids)
    assert_same(ops.gather(gpu.put(table), gpu.put(ids)), expected)
    out = gpu.put(torch.zeros_like(expected))
    ops.gather_out(gpu.put(table), gpu.put(ids), out)
    assert_same(out, expected)


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [1, 3, 64, 100, 129, 1000])
@pytest.mark.parametrize("blocks", [0, 1, 64])
@pytest.mark.parametrize("pinned", [False, True])
def test_rows_are_gathered_to_places(ops, gpu, ids_dtype, dim, blocks, pinned):
    generator = torch.Generator().manual_seed(dim)
    table = torch.randint(0, 100, (500, dim), generator=generator).float()
    ids = torch.randint(0, 500, (777,), generator=generator).to(ids_dtype)
    places = torch.randperm(800, generator=generator)[:777].int()
    expected = torch.full((800, dim), -9.0)
    expected[places.long()] = table[ids.long()]
    out = gpu.put(torch.full((800, dim), -9.0))
    source = table.pin_memory() if pinned else gpu.put(table)
    ops.gather_to(source, gpu.put(ids), gpu.put(places), out, blocks)
    assert_same(out, expected)


def test_places_of_rows_need_memory_that_the_gpu_reads(ops, gpu):
    put = gpu.put
    ids, places, out = put(torch.tensor([1])), put(torch.tensor([0]).int()), put(torch.ones(1, 2))
    with pytest.raises(RuntimeError, match=r"pin it with \.pin_memory"):
        ops.gather_to(torch.ones(5, 2), ids, places, out, 0)
    with pytest.raises(RuntimeError, match="places must be int32"):
        ops.gather_to(put(torch.ones(5, 2)), ids, ids, out, 0)
    with pytest.raises(RuntimeError, match="blocks must be 0 to 65535"):
        ops.gather_to(put(torch.ones(5, 2)), ids, places, out, -1)


@pytest.mark.parametrize("shift", [1, 2, 4, 8])
def test_misaligned_tables(ops, gpu, shift):
    flat = gpu.put(torch.arange(shift + 30 * 16, dtype=torch.int64).to(torch.uint8))
    table = flat[shift:].reshape(30, 16)  # its first byte lies `shift` past an aligned address
    ids = gpu.put(torch.tensor([29, 0, 3, 3]))
    assert torch.equal(ops.gather(table, ids), table[ids])


def test_shapes(ops, gpu):
    put = gpu.put
    table = torch.arange(60.0).reshape(5, 3, 4)
    ids = torch.tensor([4, 4, 0])
    assert_same(ops.gather(put(table), put(ids)), table[ids])
    assert_same(ops.gather(put(table[:, 0, 0].contiguous()), put(ids)), table[ids, 0, 0])
    assert ops.gather(put(table), put(ids[:0])).shape == (0, 3, 4)
    assert ops.gather(put(torch.empty(5, 0)), put(ids)).shape == (3, 0)


def test_bad_arguments(ops, gpu):
    put = gpu.put
    table, ids = put(torch.ones(5, 2)), put(torch.tensor([1]))
    with pytest.raises(RuntimeError, match="ids must be int32 or int64"):
        ops.gather(table, put(torch.tensor([1.0])))
    with pytest.raises(RuntimeError, match="table must be contiguous"):
        ops.gather(table.t(), ids)
    with pytest.raises(RuntimeError, match=r"table must have rows of at most 2\^30 bytes"):
        ops.gather(put(torch.empty(0, 2**29)), ids)
    with pytest.raises(RuntimeError, match="out must have one row"):
        ops.gather_out(table, ids, put(torch.ones(2, 2)))
    with pytest.raises(RuntimeError, match="out must be float32"):
        ops.gather_out(table, ids, put(torch.ones(1, 2, dtype=torch.float64)))
