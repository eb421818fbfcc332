"""Roofline ceiling kernels on a GPU: their results prove that all work was done."""

import pytest
import torch

from gnnbench.kernels import ceilings

pytestmark = pytest.mark.gpu
MODULUS = 2**32


def words(lines):
    generator = torch.Generator().manual_seed(lines)
    return torch.randint(-(2**31), 2**31, (lines * 16,), dtype=torch.int32, generator=generator)


def total(t):
    return int(t.to(torch.int64).sum()) % MODULUS


@pytest.mark.parametrize("lines", [1, 7, 1000, 300_001])
def test_copy_equals_the_source(gpu, lines):
    source = gpu.put(words(lines))
    target = torch.zeros_like(source)
    ceilings.copy(source, target)
    assert torch.equal(target, source)


@pytest.mark.parametrize("lines", [1, 1001, 300_001])
@pytest.mark.parametrize("passes", [1, 3])
def test_every_pass_reads_every_word(gpu, lines, passes):
    w = words(lines)
    assert int(ceilings.read(gpu.put(w), passes)) == total(w) * passes % MODULUS


@pytest.mark.parametrize("width", [1, 3, 4, 16, 100, 257])
@pytest.mark.parametrize("n", [1, 5000, 1_000_003])
def test_every_row_is_read(gpu, width, n):
    table = words(2000)[: 32000 // width * width].view(-1, width)
    ids = torch.randint(0, table.shape[0], (n,), generator=torch.Generator().manual_seed(1))
    times = torch.bincount(ids, minlength=table.shape[0])
    right = int((table.to(torch.int64).sum(1) * times).sum()) % MODULUS
    assert int(ceilings.rows(gpu.put(table), gpu.put(ids))) == right


@pytest.mark.parametrize("steps", [1, 1000, 1 << 16])
def test_every_multiply_add_and_every_read_is_executed(gpu, steps):
    like = gpu.put(torch.empty(0))
    threads = torch.cuda.get_device_properties(0).multi_processor_count * 8 * 256
    assert int(ceilings.fma(like, steps)) == steps * threads * 8
    assert int(ceilings.shared(like, steps)) == steps * threads * 4 * 16
    ceilings.mark(like)
    gpu.sync()


def test_chains_stay_exact(gpu):
    threads = torch.cuda.get_device_properties(0).multi_processor_count * 8 * 256
    assert int(ceilings.fma(gpu.put(torch.empty(0)), 1 << 23)) == (threads * 8) << 23
