"""Page-locked host memory, which kernels on a GPU read in place."""

from __future__ import annotations

import weakref
from contextlib import suppress
from functools import partial

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.shared import Region, region_of

REGISTERED, VMM = MEMORIES = ("registered", "vmm")
_PORTABLE = 1  # cudaHostRegisterPortable: for every GPU of the process


class LockedTensor:
    """A CPU tensor that is registered with the CUDA driver.

    Shared memory (``gnnbench.kernels.shared``) is registered in place. Any other tensor is copied,
    because a mapped file cannot be registered. GPUs read ``tensor`` by the same address. Torch's
    pinned allocator rounds up to powers of two, which is too much for a table or a graph.
    ``close`` unlocks the memory, as does the end of the object.

    ``device``         one of the GPUs that read it
    ``name``           of the contents, for the error message
    ``memory``         ``vmm``: always a copy, in memory allocated by the driver
                       (:func:`vmm_memory`), which only ``device`` reads
    ``mapping_share``  GPU memory used by the mapping / bytes mapped; None for an existing mapping

    Raises ``HostMemoryError`` where host memory cannot be locked, ``UsageError`` where the driver
    cannot allocate it.
    """

    def __init__(
        self, source: Tensor, device: torch.device | str, name: str, memory: str = REGISTERED
    ) -> None:
        self._tensor: Tensor | None
        self.mapping_share: float | None = None
        if memory == VMM:
            self._tensor = vmm_copy(source, device)  # freed with the last tensor over it
            return
        region = region_of(source) if source.is_contiguous() else None
        copy = source
        if region is None:
            copy = torch.empty_like(source, memory_format=torch.contiguous_format).copy_(source)
        self._tensor = copy
        size = copy.numel() * copy.element_size()
        if size == 0:
            return
        with torch.cuda.device(torch.device(device)):
            before = free_memory()
            code = lock(copy) if region is None else lock_region(region)
            if region is None or region.locks == 1:  # else it was mapped before
                mapped = size if region is None else region.whole.nbytes
                self.mapping_share = (before - free_memory()) / mapped
        if code != 0:
            self._tensor = None
            raise HostMemoryError(
                f"{size} bytes of {name} cannot be locked for the GPU (CUDA error {code}); free"
                " memory, raise the limit of locked memory (ulimit -l), or have the GPU not read"
                " them (features.table=host, sampler.topology=gpu)"
            )
        undo = partial(unlock, copy) if region is None else partial(unlock_region, region)
        self._unlock = weakref.finalize(self, undo)
        self._unlock.atexit = False  # the kernel frees it with the process

    @property
    def tensor(self) -> Tensor:
        """The locked tensor; invalid after ``close``."""
        assert self._tensor is not None
        return self._tensor

    def close(self) -> None:
        """Unlock the memory, and free a copy, once the GPUs have done their work."""
        self._tensor = None
        if hasattr(self, "_unlock"):
            self._unlock()


def vmm_copy(source: Tensor, device: torch.device | str) -> Tensor:
    """A copy in :func:`vmm_memory`, filled by all threads."""
    if source.nbytes == 0:
        return torch.empty_like(source, memory_format=torch.contiguous_format)
    memory = vmm_memory(source.nbytes, device)
    return memory.view(source.dtype).view(source.shape).copy_(source)


def vmm_memory(size: int, device: torch.device | str) -> Tensor:
    """Allocate locked host memory in pages of 2 MiB for the CUDA ``device``.

    Uses cuMemCreate on the NUMA node next to the device. Returns uint8 ``[size]`` on the CPU,
    contents undefined. It is freed with the last tensor over it, once the device is idle. Raises
    ``HostMemoryError`` where memory is short, ``UsageError`` where the driver cannot allocate it.
    """
    import psutil

    available = psutil.virtual_memory().available
    if size > available:  # the driver would not refuse: the kernel would kill processes
        raise HostMemoryError(
            f"{size} bytes are to be locked for the GPU, {available} are free; free memory, or have"
            " the GPU not read them (features.table=host)"
        )
    with native_operators() as ops:
        return ops.vmm_memory(torch.empty(0, device=device), size)


def free_memory() -> int:
    """Free bytes of the current GPU's memory."""
    return int(torch.cuda.mem_get_info()[0])


def lock(memory: Tensor) -> int:
    """Lock the memory of a CPU tensor for CUDA; 0, or the CUDA error where that fails."""
    size = memory.numel() * memory.element_size()
    code = int(torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), size, _PORTABLE))
    if code != 0:
        # The runtime reports the error again at the next launch. This launch clears it.
        with suppress(RuntimeError):
            torch.full((1,), 0, device="cuda")
    return code


def lock_region(region: Region) -> int:
    """Lock a whole region of shared memory, and count its users."""
    if region.locks == 0:
        with region.writable():
            code = lock(region.whole)
        if code != 0:
            return code
    region.locks += 1
    return 0


def unlock_region(region: Region) -> None:
    """Undo one :func:`lock_region`; the last call unlocks."""
    region.locks -= 1
    if region.locks == 0:
        unlock(region.whole)


def unlock(memory: Tensor) -> None:
    """Undo :func:`lock` once every GPU that may read the memory is idle.

    A GPU without allocations reads nothing; synchronising with it would create a context there.
    """
    for device in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(device) > 0:
            torch.cuda.synchronize(device)
    torch.cuda.cudart().cudaHostUnregister(memory.data_ptr())
