"""Chunks of rows on their way to a device that is faked: late, in order, and reading the buffers at
the last moment."""

import random
from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.counters import Counts
from gnnbench.core.errors import HostMemoryError, UsageError
from gnnbench.features.host import StagedGather
from gnnbench.features.staging import StagedChunks


class Device:
    """Copies happen when somebody waits for them or for later ones, or by chance."""

    def __init__(self, seed=0, lazy=0.8):
        self._random, self._lazy = random.Random(seed), lazy
        self._queue, self._ended = [], 0
        self.sizes, self.waits = [], 0

    def copy(self, rows, there):
        self._queue.append((rows, there))
        self.sizes.append(len(rows))
        number = len(self.sizes)
        if self._random.random() > self._lazy:
            self.run(self._random.randint(0, number))
        return SimpleNamespace(synchronize=lambda: self.wait(number))

    def wait(self, number):
        self.waits += self._ended < number
        self.run(number)

    def run(self, number):
        while self._ended < number:
            rows, there = self._queue[self._ended]
            there.copy_(rows)
            self._ended += 1


def ring(device, table, chunk_bytes, chunks, allocated=None):
    def allocate(rows):
        made = torch.full((rows, *table.shape[1:]), -1, dtype=table.dtype)
        if allocated is not None:
            allocated.append(made)
        return made

    return StagedChunks(table, allocate, device.copy, chunk_bytes, chunks)


def test_chunks_are_written_to_places():
    """Each chunk comes with its places; a buffer is written again after its rows were placed."""
    table, draws = torch.arange(600.0).view(200, 3), torch.Generator().manual_seed(2)
    device = Device(seed=1)
    served = ring(device, table, chunk_bytes=12 * 7, chunks=2)
    for n in (0, 1, 50, 199):
        ids = torch.randint(0, 200, (n,), generator=draws)
        places = torch.randperm(n + 4, generator=draws)[:n]
        out = torch.full((n + 4, 3), -9.0)

        class Places:
            """Where a chunk's rows go."""

            def __init__(self, at, out):
                self.at, self.out = at, out

            def copy_(self, rows):
                self.out[self.at] = rows

        served.send(ids, places, lambda rows, at, out=out: device.copy(rows, Places(at, out)))
        device.run(len(device.sizes))
        expected = torch.full_like(out, -9.0)
        expected[places] = table[ids]
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [1, 7, 100])
@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_hundreds_of_batches_arrive_whole(dtype, width, chunks):
    """Sizes at random, zero among them; the device is late by as much as it may."""
    draws = torch.Generator().manual_seed(width)
    table = torch.randint(-99, 99, (1000, width), generator=draws).to(dtype)
    device = Device(seed=chunks)
    sender = ring(device, table, 50 * width * dtype.itemsize, chunks)
    sent = []
    for number in range(200):
        n = int(torch.randint(0, 400, (1,), generator=draws))
        ids = torch.randint(0, 1000, (n,), generator=draws, dtype=torch.int32)
        out = torch.full((n, width), 77, dtype=dtype)
        sender.send(ids.long() if number % 2 else ids, out)
        sent.append((ids, out))
    device.run(len(device.sizes))
    for ids, out in sent:
        assert torch.equal(out, table[ids.long()])
    assert device.waits > 50


@pytest.mark.parametrize(
    ("n", "sizes"), [(10, [10]), (11, [5, 6]), (30, [10, 10, 10]), (31, [7, 8, 8, 8]), (0, [])]
)
def test_chunks_are_even_and_buffers_few(n, sizes):
    table, allocated, device = torch.arange(400.0).view(100, 4), [], Device(lazy=1.0)
    sender = ring(device, table, 10 * 16, 3, allocated)
    assert [len(buffer) for buffer in allocated] == [10, 10, 10]
    sender.send(torch.arange(n), torch.empty(n, 4))
    assert device.sizes == sizes
    assert device.waits == max(len(sizes) - 3, 0)  # the ring is full: for its oldest copy only


def test_a_ring_that_does_not_wait_is_found_out():
    """What the tests above rest on: a copy of a buffer that is written too early is wrong."""
    table = torch.arange(400.0).view(100, 4)
    device = Device(lazy=1.0)
    sender = ring(device, table, 10 * 16, 2)
    device.wait = lambda number: None
    out = torch.empty(60, 4)
    sender.send(torch.arange(60), out)
    device.run(len(device.sizes))
    assert not torch.equal(out, table[:60])


def test_rows_wider_than_a_chunk_and_of_no_width():
    for table in (torch.arange(90.0).view(3, 30), torch.empty(3, 0)):
        device = Device()
        sender = ring(device, table, 64, 2)
        out = torch.empty(5, table.shape[1])
        sender.send(torch.tensor([2, 0, 1, 1, 2]), out)
        device.run(len(device.sizes))
        assert torch.equal(out, table[[2, 0, 1, 1, 2]])


def test_a_wrong_id_is_an_error_and_the_ring_goes_on():
    table, device = torch.arange(40.0).view(10, 4), Device()
    sender = ring(device, table, 32, 2)
    with pytest.raises(UsageError, match="ids holds 10"):
        sender.send(torch.tensor([1, 2, 3, 10, 4]), torch.empty(5, 4))
    out = torch.empty(9, 4)
    sender.send(torch.arange(9), out)
    device.run(len(device.sizes))
    assert torch.equal(out, table[:9])


def test_staging_that_cannot_be_locked_is_the_hosts_memory(monkeypatch):
    def refuse(*shape, **settings):
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch, "empty", refuse)
    graph = SimpleNamespace(features=torch.zeros(10, 4))
    job = SimpleNamespace(graph=graph, device=torch.device("cuda"), counts=Counts())
    words = r"8388608 bytes for staging cannot be locked for the GPU; free memory, raise the limit"
    with pytest.raises(HostMemoryError, match=words):
        StagedGather(job)
