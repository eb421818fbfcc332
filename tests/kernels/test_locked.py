"""Page-locking with a fake driver: shared memory in place and once, other memory in a copy."""

import weakref

import pytest
import torch
from locking import fake_driver, permission_of, shared_table

from gnnbench.core.errors import HostMemoryError
from gnnbench.harness.failures import Failure, from_exception
from gnnbench.kernels import locked
from gnnbench.kernels.locked import LockedTensor
from gnnbench.kernels.shared import region_of


@pytest.fixture
def driver(monkeypatch):
    return fake_driver(monkeypatch)


@pytest.fixture
def table():
    return shared_table()


def test_shared_memory_is_locked_in_place_and_once(driver, table):
    first, second = (LockedTensor(table, "cuda", "features") for _ in range(2))
    rest = LockedTensor(table[2:], "cuda", "features")
    assert first.tensor.data_ptr() == second.tensor.data_ptr() == table.data_ptr()
    assert rest.tensor.data_ptr() == table[2:].data_ptr()
    assert driver == {table.data_ptr(): 240}
    # The first one maps all 240 bytes, which take 120 bytes on the GPU.
    assert [t.mapping_share for t in (first, second, rest)] == [0.5, None, None]
    second.close()
    second.close()
    del rest
    assert driver == {table.data_ptr(): 240}
    first.close()
    assert driver == {}
    again = LockedTensor(table, "cuda", "features")
    assert driver == {table.data_ptr(): 240}
    again.close()


@pytest.mark.parametrize("view", [lambda t: t.clone(), lambda t: t[:, :3], lambda t: t.t()])
def test_other_memory_is_locked_in_a_copy(driver, table, view):
    source = view(table)
    made = LockedTensor(source, "cuda", "features")
    assert torch.equal(made.tensor, source)
    assert made.tensor.is_contiguous()
    assert driver == {made.tensor.data_ptr(): source.numel() * 2}
    assert made.tensor.data_ptr() != source.data_ptr()
    made.close()
    assert driver == {}


def test_failed_lock_is_an_error_and_is_not_counted(driver, table, monkeypatch):
    register = locked.lock
    words = "240 bytes of features cannot be locked for the GPU .CUDA error 2.; free memory, raise"
    refused = []
    monkeypatch.setattr(locked, "lock", lambda memory: refused.append(weakref.ref(memory)) or 2)
    with pytest.raises(HostMemoryError, match=words) as raised:
        LockedTensor(table, "cuda", "features")
    assert from_exception(raised.value) == Failure("oom_host", str(raised.value))
    assert permission_of(table) == "r--s"
    assert region_of(table).locks == 0
    with pytest.raises(HostMemoryError, match="240 bytes of features cannot be locked"):
        LockedTensor(table.clone(), "cuda", "features")
    assert refused[1]() is None  # the copy is freed
    assert driver == {}
    monkeypatch.setattr(locked, "lock", register)
    made = LockedTensor(table, "cuda", "features")
    assert driver == {table.data_ptr(): 240}
    made.close()
    assert driver == {}


@pytest.fixture
def vmm(monkeypatch):
    """Sizes requested from the driver; the memory that it returns is not zeroed."""
    requests = []

    def memory(size, device):
        requests.append((size, device))
        return torch.full((size,), 255, dtype=torch.uint8)

    monkeypatch.setattr(locked, "vmm_memory", memory)
    return requests


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t[:, :3], lambda t: t.t()])
def test_driver_memory_is_a_copy(driver, vmm, table, view):
    source = view(table)
    made = LockedTensor(source, "cuda", "features", locked.VMM)
    assert vmm == [(source.numel() * 2, "cuda")] and driver == {}
    assert made.tensor.is_contiguous() and made.tensor.data_ptr() != source.data_ptr()
    assert made.tensor.dtype is source.dtype and torch.equal(made.tensor, source)
    made.close()
    made.close()
    assert driver == {}


def test_empty_table_allocates_no_memory(driver, vmm):
    made = LockedTensor(torch.empty(5, 0), "cuda", "features", locked.VMM)
    assert made.tensor.shape == (5, 0) and vmm == []
    made.close()


def test_more_memory_than_available_is_refused_before_allocation():
    with pytest.raises(MemoryError, match=f"{1 << 60} bytes are to be locked for"):
        locked.vmm_memory(1 << 60, "cuda")
