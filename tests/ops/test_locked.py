"""Locking for a GPU: shared memory in place and once, anything else in a copy. The driver is faked;
tests/gpu has the real one."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from gnnbench.errors import HostMemoryError
from gnnbench.ops import locked, shared
from gnnbench.ops.locked import LockedTensor
from gnnbench.runner import hold
from gnnbench.runner.failures import Failure, from_exception


@pytest.fixture
def driver(monkeypatch):
    """Registered ranges by address; refuses what may not be written, as CUDA does."""
    ranges = {}

    def register(memory):
        address, size = memory.data_ptr(), memory.numel() * memory.element_size()
        permission = next(
            line.split()[1]
            for line in Path("/proc/self/maps").read_text().splitlines()
            if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)
        )
        if address in ranges or not permission.startswith("rw"):
            return 1
        ranges[address] = size
        return 0

    monkeypatch.setattr(locked, "lock", register)
    monkeypatch.setattr(locked, "unlock", lambda memory: ranges.pop(memory.data_ptr()))
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    return ranges


@pytest.fixture
def table():
    def fill(part, start):
        part[:] = bytes(range(start % 256, start % 256 + len(part)))

    descriptor = hold.hold("table", 240, fill)
    found = shared.map_shared(hold.address_of(descriptor), torch.int16, (15, 8))
    os.close(descriptor)
    return found


def test_shared_memory_is_locked_in_place_and_once(driver, table):
    first, second = (LockedTensor(table, "cuda", "features") for _ in range(2))
    rest = LockedTensor(table[2:], "cuda", "features")
    assert first.tensor.data_ptr() == second.tensor.data_ptr() == table.data_ptr()
    assert rest.tensor.data_ptr() == table[2:].data_ptr()
    assert driver == {table.data_ptr(): 240}
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
def test_anything_else_is_locked_in_a_copy(driver, table, view):
    source = view(table)
    made = LockedTensor(source, "cuda", "features")
    assert torch.equal(made.tensor, source)
    assert made.tensor.is_contiguous()
    assert driver == {made.tensor.data_ptr(): source.numel() * 2}
    assert made.tensor.data_ptr() != source.data_ptr()
    made.close()
    assert driver == {}


def test_a_refused_lock_is_an_error_and_counts_nothing(driver, table, monkeypatch):
    register = locked.lock
    monkeypatch.setattr(locked, "lock", lambda memory: 2)
    words = "240 bytes of features cannot be locked for the GPU .CUDA error 2.; free memory, raise"
    with pytest.raises(HostMemoryError, match=words) as found:
        LockedTensor(table, "cuda", "features")
    assert from_exception(found.value) == Failure("oom_host", str(found.value))
    monkeypatch.setattr(locked, "lock", register)
    made = LockedTensor(table, "cuda", "features")
    assert driver == {table.data_ptr(): 240}
    made.close()
    assert driver == {}


@pytest.fixture
def vmm(monkeypatch):
    """Sizes that the driver was asked for; what it gives holds no zeros."""
    asked = []

    def memory(size, device):
        asked.append((size, device))
        return torch.full((size,), 255, dtype=torch.uint8)

    monkeypatch.setattr(locked, "vmm_memory", memory)
    return asked


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t[:, :3], lambda t: t.t()])
def test_memory_of_the_driver_is_a_copy(driver, vmm, table, view):
    source = view(table)
    made = LockedTensor(source, "cuda", "features", locked.VMM)
    assert vmm == [(source.numel() * 2, "cuda")] and driver == {}
    assert made.tensor.is_contiguous() and made.tensor.data_ptr() != source.data_ptr()
    assert made.tensor.dtype is source.dtype and torch.equal(made.tensor, source)
    made.close()
    made.close()
    assert driver == {}


def test_an_empty_table_asks_for_no_memory(driver, vmm):
    made = LockedTensor(torch.empty(5, 0), "cuda", "features", locked.VMM)
    assert made.tensor.shape == (5, 0) and vmm == []
    made.close()


def test_more_memory_than_there_is_is_not_asked_for():
    with pytest.raises(MemoryError, match=f"{1 << 60} bytes are to be locked for"):
        locked.vmm_memory(1 << 60, "cuda")
