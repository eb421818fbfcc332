"""Page-locked memory: failures leave no state, and unlocking waits for every reader."""

from types import SimpleNamespace

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.counters import Counts
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels import locked

pytestmark = pytest.mark.gpu

LAST = max(torch.cuda.device_count(), 1) - 1


def launches_work() -> bool:
    return float((torch.ones(3, device="cuda") + 1).sum()) == 6


def test_range_registered_twice_leaves_no_error():
    memory = torch.ones(1 << 20)
    assert locked.lock(memory) == 0
    try:
        assert locked.lock(memory) != 0
        assert launches_work()
    finally:
        locked.unlock(memory)
    assert launches_work()
    assert not memory.is_pinned()


def test_failed_copy_leaves_no_error(monkeypatch):
    source_table = torch.ones(1000, 8)
    monkeypatch.setattr(torch, "empty_like", lambda source, **_: source_table)
    assert locked.lock(source_table) == 0
    with pytest.raises(MemoryError, match="32000 bytes of features cannot be locked"):
        locked.LockedTensor(torch.ones(1000, 8), "cuda", "features")
    monkeypatch.undo()
    assert launches_work()
    locked.unlock(source_table)


@pytest.mark.parametrize("reader", [LAST], ids=[f"cuda:{LAST}"])
def test_unlocking_waits_for_readers(reader):
    """The memory is locked while device 0 is current, and read by the last device."""
    device = torch.device("cuda", reader)
    table = torch.randn(200_000, 64)
    ids = torch.arange(199_999, -1, -1, device=device)
    graph = SimpleNamespace(features=table)
    job = SimpleNamespace(graph=graph, device=torch.device("cuda:0"), counts=Counts())
    store = ZeroCopyGather(job)
    stream = torch.cuda.Stream(device)
    torch.cuda.synchronize(device)
    with torch.cuda.device(device), torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        rows = store.load(SimpleNamespace(input_nodes=ids))
    store.close()
    assert stream.query()
    assert_same(rows, table.flip(0))
