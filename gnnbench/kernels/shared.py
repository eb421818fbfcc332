"""Tensors over shared memory of another process (``gnnbench.datasets.shared_memory``)."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core import pages


@dataclass
class Region:
    """A mapping of this process, ``whole`` as bytes; ``locks`` counts its users on GPUs."""

    whole: Tensor
    locks: int = 0

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Lift the protection: the CUDA driver locks only memory that may be written."""
        self._protect(mmap.PROT_READ | mmap.PROT_WRITE)
        try:
            yield
        finally:
            self._protect(mmap.PROT_READ)

    def _protect(self, protection: int) -> None:
        pages.protect(self.whole.data_ptr(), self.whole.numel(), protection)


# A mapping lasts as long as the process, so an address is never reused for another mapping.
_REGIONS: list[Region] = []


def map_shared(address: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """Map the tensor at an address of ``gnnbench.datasets.shared_memory``, read-only.

    A write would change the data of all other trials, so it ends the process by SIGSEGV. Raises
    ``OSError`` where the memory no longer exists, ``ValueError`` where its size differs.
    """
    size = torch.empty(0, dtype=dtype).element_size() * torch.Size(shape).numel()
    descriptor = os.open(address, os.O_RDWR | os.O_CLOEXEC)
    try:
        actual = os.fstat(descriptor).st_size
        if actual != size:
            raise ValueError(f"{address} holds {actual} bytes where {size} are expected")
        if size == 0:
            return torch.empty(shape, dtype=dtype)
        memory = (ctypes.c_ubyte * size).from_address(pages.map_file(descriptor, size))
    finally:
        os.close(descriptor)
    region = Region(torch.frombuffer(memory, dtype=torch.uint8))
    with region.writable():  # and read-only from here on
        _REGIONS.append(region)
    return region.whole.view(dtype).view(shape)


def region_of(tensor: Tensor) -> Region | None:
    """The region of shared memory that contains a tensor, or None."""
    if tensor.device.type != "cpu":
        return None
    begin = tensor.data_ptr()
    for region in _REGIONS:
        start = region.whole.data_ptr()
        if start <= begin < start + region.whole.numel():
            return region
    return None
