"""Rows gathered by the host and copied in chunks, with delays on either side."""

from types import SimpleNamespace

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.counters import Counts
from gnnbench.features import staging
from gnnbench.features.host import StagedGather

pytestmark = pytest.mark.gpu

DEVICE = torch.device("cuda", 0)


def store(table):
    job = SimpleNamespace(graph=SimpleNamespace(features=table), device=DEVICE, counts=Counts())
    return StagedGather(job)


def random_table(dtype, rows, width):
    values = torch.randint(-99, 99, (rows, width), generator=torch.Generator().manual_seed(1))
    return values.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 33, 128])
@pytest.mark.parametrize("late", [0, 3_000_000])
def test_many_batches_of_many_chunks(monkeypatch, dtype, width, late):
    """Earlier work on the stream delays the copies, so that the ring is always full."""
    monkeypatch.setattr(staging.StagedChunks.__init__, "__defaults__", (64 << 10, 3))
    table = random_table(dtype, 20_000, width)
    served = store(table)
    draws = torch.Generator().manual_seed(width)
    for number in range(100):
        n = int(torch.randint(0, 20_000, (1,), generator=draws))
        ids = torch.randint(0, 20_000, (n,), generator=draws, dtype=torch.int32)
        if late:
            torch.cuda._sleep(late)
        rows = served.fetch(ids.to(DEVICE) if number % 2 else ids.long())
        if number % 10 == 0:
            assert_same(rows, table[ids.long()])
        last = (rows, ids)
    assert_same(last[0], table[last[1].long()])
    served.close()


@pytest.mark.parametrize("width", [1, 33, 128])
@pytest.mark.parametrize("late", [0, 3_000_000])
def test_rows_of_many_chunks_are_written_to_their_places(monkeypatch, width, late):
    monkeypatch.setattr(staging.StagedChunks.__init__, "__defaults__", (64 << 10, 3))
    table = random_table(torch.float32, 20_000, width)
    served, draws = store(table), torch.Generator().manual_seed(width)
    for number in range(30):
        n = int(torch.randint(0, 20_000, (1,), generator=draws))
        ids = torch.randint(0, 20_000, (n,), generator=draws, dtype=torch.int32)
        places = torch.randperm(n + 9, generator=draws)[:n].int()
        out = torch.full((n + 9, width), -999.0, device=DEVICE)
        expected = out.cpu()
        if late:
            torch.cuda._sleep(late)
        served.fetch_to(ids.to(DEVICE) if number % 2 else ids, places.to(DEVICE), out)
        expected[places.long()] = table[ids.long()]
        assert_same(out, expected)
    served.close()


def test_whole_chunks_and_another_stream():
    table = random_table(torch.float32, 100_000, 128)
    served = store(table)
    stream = torch.cuda.Stream(DEVICE)
    kept = []
    for seed in range(5):
        ids = torch.randperm(100_000, generator=torch.Generator().manual_seed(seed))
        with torch.cuda.stream(stream if seed % 2 else torch.cuda.current_stream(DEVICE)):
            kept.append((served.fetch(ids), ids))
    torch.cuda.synchronize(DEVICE)
    for rows, ids in kept:
        assert_same(rows, table[ids])
    served.close()


def test_size_of_the_locked_ring_does_not_depend_on_the_batch():
    table = random_table(torch.float32, 200_000, 128)
    served = store(table)
    served.fetch(torch.arange(1000))
    torch.cuda.synchronize(DEVICE)
    before = torch.cuda.memory.host_memory_stats()["allocated_bytes.current"]
    served.fetch(torch.arange(200_000))
    torch.cuda.synchronize(DEVICE)
    assert torch.cuda.memory.host_memory_stats()["allocated_bytes.current"] == before
    served.close()
