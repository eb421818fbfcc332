"""Memory of two processes: the host's is real here, the driver of a GPU's is faked; tests/gpu has
the real one."""

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


def test_another_process_reads_and_writes_it():
    memory = HostMemory(4096)
    memory.whole.copy_(torch.arange(256, dtype=torch.uint8).repeat(16))
    subprocess.run([sys.executable, "-c", OTHER, memory.address], check=True)
    assert memory.whole.unique().tolist() == [7]
    memory.close()


def test_it_is_gone_for_others_once_it_is_given_up_and_stays_with_who_has_it():
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


def test_memory_that_is_not_there_is_told_and_nothing_stays_open(monkeypatch):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises((OSError, OverflowError, ValueError)):
        HostMemory(1 << 62)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture
def driver(monkeypatch):
    """Gives out addresses as long as ``room`` lasts; notes what is called."""
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

    def noted(name):
        return lambda pointer: fake.calls.append((name, pointer.value)) or 0

    calls = SimpleNamespace(
        cuMemAlloc_v2=alloc, cuIpcGetMemHandle=handle_of, cuIpcOpenMemHandle_v2=opened,
        cuMemFree_v2=noted("free"), cuIpcCloseMemHandle=noted("close"),
    )  # fmt: skip
    monkeypatch.setattr(interprocess, "_driver", lambda: calls)
    monkeypatch.setattr(interprocess, "_context", lambda device: nullcontext())
    monkeypatch.setattr(
        interprocess, "_tensor", lambda pointer, size, device: torch.empty(size, dtype=torch.uint8)
    )
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: fake.calls.append("wait"))
    return fake


def test_a_gpus_memory_is_opened_by_its_handle_and_closed_when_the_work_is_done(driver):
    memory = DeviceMemory(4096, GPU)
    assert len(memory.address) == 64 and memory.whole.numel() == 4096
    opened = OpenedDeviceMemory(memory.address, 4096, GPU)
    opened.close()
    memory.close()
    assert driver.calls == [
        ("alloc", 4096), ("open", 1), "wait", ("close", 0x7001), "wait", ("free", 0x7000),
    ]  # fmt: skip


def test_memory_at_an_address_is_a_tensor_of_the_device_that_reads_it():
    """On a GPU another one's as well, which the driver would say is elsewhere."""
    own = torch.arange(10, dtype=torch.uint8)
    pointer = ctypes.c_uint64(own.data_ptr())
    seen = interprocess._tensor(pointer, 8, torch.device("cpu"))
    assert seen.data_ptr() == own.data_ptr() and seen.dtype is torch.uint8
    own[3] = 77
    assert seen.tolist() == [0, 1, 2, 77, 4, 5, 6, 7]


def test_what_torch_keeps_and_does_not_use_is_asked_for(driver, monkeypatch):
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
