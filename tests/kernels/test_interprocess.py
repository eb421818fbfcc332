"""Memory shared by two processes: real host memory, and a fake GPU driver."""

import ctypes
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gnnbench.kernels import interprocess
from gnnbench.kernels.interprocess import (
    DeviceMemory,
    HostMemory,
    OpenedDeviceMemory,
    OpenedHostMemory,
)

GPU = torch.device("cuda:0")
OTHER = """
import sys
from gnnbench.kernels.interprocess import OpenedHostMemory
memory = OpenedHostMemory(sys.argv[1])
assert memory.whole.tolist() == list(range(256)) * 16
memory.whole.fill_(7)
"""


def test_another_process_reads_and_writes_shared_memory():
    memory = HostMemory(4096)
    memory.whole.copy_(torch.arange(256, dtype=torch.uint8).repeat(16))
    subprocess.run([sys.executable, "-c", OTHER, memory.address], check=True)
    assert memory.whole.unique().tolist() == [7]
    memory.close()


def test_released_memory_cannot_be_opened_but_stays_for_its_users():
    memory = HostMemory(4096)
    memory.whole.fill_(3)
    opened = OpenedHostMemory(memory.address)
    row = opened.whole[10:20]
    opened.close()
    address = memory.address
    memory.close()
    assert not Path(address).exists() and row.tolist() == [3] * 10
    with pytest.raises(OSError):
        OpenedHostMemory(address)


def test_failed_allocation_leaves_no_open_files(monkeypatch):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises((OSError, OverflowError, ValueError)):
        HostMemory(1 << 62)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture
def driver(monkeypatch):
    """A driver that allocates up to ``room`` bytes and records its calls."""
    fake = SimpleNamespace(calls=[], room=1 << 20, code=0)

    def alloc(pointer, size):
        fake.calls.append(("alloc", size.value))
        if size.value > fake.room:
            return 2
        pointer._obj.value = 0x7000
        return fake.code

    def handle_of(handle, pointer):
        handle._obj.reserved[:] = [9] * 56 + list(pointer.value.to_bytes(8, "little"))
        return 0

    def opened(pointer, handle, flags):
        fake.calls.append(("open", flags))
        pointer._obj.value = int.from_bytes(bytes(handle)[56:], "little") + 1
        return 0

    def recorded(name):
        return lambda pointer: fake.calls.append((name, pointer.value)) or 0

    calls = SimpleNamespace(
        cuMemAlloc_v2=alloc, cuIpcGetMemHandle=handle_of, cuIpcOpenMemHandle_v2=opened,
        cuMemFree_v2=recorded("free"), cuIpcCloseMemHandle=recorded("close"),
    )  # fmt: skip
    monkeypatch.setattr(interprocess, "_driver", lambda: calls)
    monkeypatch.setattr(interprocess, "_context", lambda device: nullcontext())
    monkeypatch.setattr(
        interprocess, "_tensor", lambda pointer, size, device: torch.empty(size, dtype=torch.uint8)
    )
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: fake.calls.append("wait"))
    return fake


def test_gpu_memory_is_opened_by_its_handle_and_closed_after_a_synchronization(driver):
    memory = DeviceMemory(4096, GPU)
    assert len(memory.address) == 64 and memory.whole.numel() == 4096
    opened = OpenedDeviceMemory(memory.address, 4096, GPU)
    opened.close()
    memory.close()
    assert driver.calls == [
        ("alloc", 4096), ("open", 1), "wait", ("close", 0x7001), "wait", ("free", 0x7000),
    ]  # fmt: skip


def test_memory_at_an_address_is_a_tensor_of_the_reading_device():
    """Even if the driver reports that the memory belongs to another GPU."""
    own = torch.arange(10, dtype=torch.uint8)
    pointer = ctypes.c_uint64(own.data_ptr())
    seen = interprocess._tensor(pointer, 8, torch.device("cpu"))
    assert seen.data_ptr() == own.data_ptr() and seen.dtype is torch.uint8
    own[3] = 77
    assert seen.tolist() == [0, 1, 2, 77, 4, 5, 6, 7]


def test_unused_memory_of_torchs_cache_is_released_for_an_allocation(driver, monkeypatch):
    def emptied():
        driver.room = 1 << 22

    monkeypatch.setattr(torch.cuda, "empty_cache", emptied)
    assert DeviceMemory(1 << 21, GPU).whole.numel() == 1 << 21
    with pytest.raises(
        torch.OutOfMemoryError, match=r"CUDA out of memory: .* none for other processes"
    ):
        DeviceMemory(1 << 23, GPU)
    driver.code = 201
    with pytest.raises(RuntimeError, match="cuMemAlloc_v2 fails with CUDA error 201"):
        DeviceMemory(16, GPU)
