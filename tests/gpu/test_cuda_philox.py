"""The generator on the GPU: published vectors, and bits equal to the CPU's."""

import pytest
import torch
from gpu_graphs import assert_same

pytestmark = pytest.mark.gpu

ONES = 0xFFFFFFFF


def test_philox_equals_the_published_vectors(ops, gpu):
    # Known-answer vectors of the Random123 distribution, philox4x32-10.
    counters = torch.tensor([[0, 0, 0, 0]], dtype=torch.int64)
    expected = [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]]
    assert ops.philox(0, gpu.put(counters)).tolist() == expected
    counters = torch.full((1, 4), ONES, dtype=torch.int64)
    expected = [[0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]]
    assert ops.philox(-1, gpu.put(counters)).tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
def test_equals_cpu(ops, gpu, n):
    generator = torch.Generator().manual_seed(n)
    counters = torch.randint(0, ONES + 1, (n, 4), generator=generator)
    key = 0x1234_5678_9ABC_DEF0
    assert_same(ops.philox(key, gpu.put(counters)), ops.philox(key, counters))


def test_refuses_wide_words(ops, gpu):
    counters = torch.tensor([[0, 0, 1 << 32, 0]])
    with pytest.raises(RuntimeError, match="counters must hold words of 32 bits"):
        ops.philox(0, gpu.put(counters))
