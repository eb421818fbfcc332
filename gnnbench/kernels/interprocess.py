"""Memory shared by two processes: host memory by ``memfd``, GPU memory by CUDA IPC.

Neither has a name in a file system. The kernel frees host memory with the last process that maps
it; the driver frees GPU memory with the process that allocated it, however the processes end.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import lru_cache

import torch
from torch import Tensor

NAME = "gnnbench:batches"  # as /proc shows it
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag there is
Address = str | bytes


class Memory(ABC):
    """``whole`` is the memory as bytes, uint8 ``[size]``; ``address`` opens it elsewhere."""

    whole: Tensor
    address: Address

    @abstractmethod
    def close(self) -> None:
        """Give it up, and unmap it where no tensor refers to it."""


class HostMemory(Memory):
    """Memory of the host, mapped by any process of the same user while this one holds it.

    Raises ``OSError`` where there is none.
    """

    def __init__(self, size: int) -> None:
        self._descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
        try:
            os.ftruncate(self._descriptor, size)
            self.whole = _mapped(self._descriptor, size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.address = f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def close(self) -> None:
        """Give it up; who has mapped it keeps it."""
        del self.whole
        os.close(self._descriptor)


class OpenedHostMemory(Memory):
    """The same in another process, by its address; lasts as long as a tensor refers to it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        descriptor = os.open(address, os.O_RDWR | os.O_CLOEXEC)
        try:
            self.whole = _mapped(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Refer to it no more."""
        del self.whole


def _mapped(descriptor: int, size: int) -> Tensor:
    memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    with suppress(OSError):  # small pages are right as well
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8)


class DeviceMemory(Memory):
    """Memory of a GPU, an allocation of its own: what torch's allocator gives out shares its
    segments, and IPC opens whole ones.

    Raises ``torch.OutOfMemoryError``, and ``RuntimeError`` for any other error of the driver.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        pointer, handle = ctypes.c_uint64(), _Handle()
        with _context(device):
            try:
                _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()  # what torch keeps and does not use
                _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            _call("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
        self._pointer, self._device = pointer, device
        self.whole = _tensor(pointer, size, device)
        self.address = bytes(handle)

    def close(self) -> None:
        """Free it; whoever has opened it must have closed it."""
        del self.whole
        with _context(self._device):
            torch.cuda.synchronize(self._device)
            _call("cuMemFree_v2", self._pointer)


class OpenedDeviceMemory(Memory):
    """The same in another process, of which ``device`` reads it, also where the memory is another
    GPU's; ``size`` bytes. Raises ``RuntimeError``."""

    def __init__(self, address: Address, size: int, device: torch.device) -> None:
        assert isinstance(address, bytes)
        pointer = ctypes.c_uint64()
        self._device, self.address = device, address
        with _context(device):
            handle = _Handle.from_buffer_copy(address)
            _call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), handle, _PEER_ACCESS)
        self._pointer = pointer
        self.whole = _tensor(pointer, size, device)

    def close(self) -> None:
        """Unmap it once this process's work on the GPU is done; no tensor of it may be read."""
        del self.whole
        with _context(self._device):
            torch.cuda.synchronize(self._device)
            _call("cuIpcCloseMemHandle", self._pointer)


class _Handle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def _tensor(pointer: ctypes.c_uint64, size: int, device: torch.device) -> Tensor:
    """The memory as ``device`` reads it, whichever GPU it is in: what torch offers otherwise asks
    the driver whose it is, and copies another GPU's."""
    storage = torch._C._construct_storage_from_data_pointer(pointer.value, device, size)
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)


def _context(device: torch.device) -> torch.cuda.device:
    """Torch's context of a GPU, created on first use and current on this thread."""
    torch.empty(1, device=device)
    return torch.cuda.device(device)


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    pointer = ctypes.POINTER(ctypes.c_uint64)
    driver.cuMemAlloc_v2.argtypes = [pointer, ctypes.c_size_t]
    driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
    driver.cuIpcGetMemHandle.argtypes = [ctypes.POINTER(_Handle), ctypes.c_uint64]
    driver.cuIpcOpenMemHandle_v2.argtypes = [pointer, _Handle, ctypes.c_uint]
    driver.cuIpcCloseMemHandle.argtypes = [ctypes.c_uint64]
    return driver


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code == _OUT_OF_MEMORY:
        raise torch.OutOfMemoryError(f"CUDA out of memory: {name} has none for other processes")
    if code != 0:
        raise RuntimeError(f"{name} fails with CUDA error {code}")
