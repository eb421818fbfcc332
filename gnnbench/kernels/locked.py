"""Host memory that is locked, so that a kernel on a GPU can read it where it is."""

from __future__ import annotations

import weakref
from contextlib import suppress
from functools import partial

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.kernels.library import load_native, native_errors
from gnnbench.kernels.shared import Region, region_of

REGISTERED, VMM = MEMORIES = ("registered", "vmm")
_PORTABLE = 1  # cudaHostRegisterPortable: for every GPU of the process


class LockedTensor:
    """A CPU tensor registered with the driver: in place where it lies in shared memory
    (``gnnbench.kernels.shared``), else a copy of it, for a mapped file cannot be registered.

    GPUs read ``tensor`` by the same address. Torch's own pinned memory comes in powers of two, up
    to twice as much as is needed: too much for a table or a graph. Unlocked by ``close``, or when
    nothing refers to the object. ``device`` is one of the GPUs that read it, ``what`` names the
    contents in the error. ``memory=vmm``: always a copy, in memory that the driver makes
    (:func:`vmm_memory`), which ``device`` alone reads. ``mapping_share`` is the GPU's memory that
    mapping took, over the bytes mapped; None where they were mapped before. Raises
    ``HostMemoryError`` where the host's memory cannot be locked, ``UsageError`` where the driver
    makes none.
    """

    def __init__(
        self, source: Tensor, device: torch.device | str, what: str, memory: str = REGISTERED
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
            if region is None or region.locks == 1:  # else another one has had it mapped
                mapped = size if region is None else region.whole.nbytes
                self.mapping_share = (before - free_memory()) / mapped
        if code != 0:
            self._tensor = None
            raise HostMemoryError(
                f"{size} bytes of {what} cannot be locked for the GPU (CUDA error {code}); free"
                " memory, raise the limit of locked memory (ulimit -l), or have the GPU not read"
                " them (features.table=host, sampler.topology=gpu)"
            )
        undo = partial(unlock, copy) if region is None else partial(unlock_region, region)
        self._unlock = weakref.finalize(self, undo)
        self._unlock.atexit = False  # the process gives its memory back anyhow

    @property
    def tensor(self) -> Tensor:
        """The locked tensor; not to be used after ``close``."""
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
    """Host memory in pages of 2 MiB, made and locked by the driver for the CUDA ``device``.

    By cuMemCreate on the NUMA node next to the device: uint8 ``[size]`` on the CPU, contents zero
    or undefined. It is given back with the last tensor over it, once the device has done its work.
    Raises ``HostMemoryError`` where there is not that much, ``UsageError`` where the driver makes
    none.
    """
    import psutil

    available = psutil.virtual_memory().available
    if size > available:  # asked for it, the driver would have other processes killed
        raise HostMemoryError(
            f"{size} bytes are to be locked for the GPU, {available} are free; free memory, or have"
            " the GPU not read them (features.table=host)"
        )
    load_native()
    with native_errors():
        memory: Tensor = torch.ops.gnnbench.vmm_memory(torch.empty(0, device=device), size)
    return memory


def free_memory() -> int:
    """Bytes of the current GPU's memory that nobody has taken."""
    return int(torch.cuda.mem_get_info()[0])


def lock(memory: Tensor) -> int:
    """Lock the memory of a CPU tensor for CUDA; 0, or the CUDA error where that fails."""
    size = memory.numel() * memory.element_size()
    code = int(torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), size, _PORTABLE))
    if code != 0:
        # The runtime keeps the error for whoever asks next, which is torch after its next launch:
        # it is taken away by a launch of ours.
        with suppress(RuntimeError):
            torch.full((1,), 0, device="cuda")
    return code


def lock_region(region: Region) -> int:
    """:func:`lock` shared memory as a whole, once for all who ask."""
    if region.locks == 0:
        with region.writable():
            code = lock(region.whole)
        if code != 0:
            return code
    region.locks += 1
    return 0


def unlock_region(region: Region) -> None:
    """Undo one :func:`lock_region`; the last one unlocks."""
    region.locks -= 1
    if region.locks == 0:
        unlock(region.whole)


def unlock(memory: Tensor) -> None:
    """Undo :func:`lock` once every GPU that may read the memory has done its work.

    Those that never held a tensor read nothing; to wait for one would make a context there.
    """
    for device in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(device) > 0:
            torch.cuda.synchronize(device)
    torch.cuda.cudart().cudaHostUnregister(memory.data_ptr())
