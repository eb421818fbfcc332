"""Queries of NVML, independently of torch: the GPUs that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def opened() -> Iterator[ModuleType | None]:
    """Context with the package ``pynvml``, initialised; None without it, or without a driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library or no driver
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def gpu_count() -> int:
    """Number of NVIDIA GPUs, visible to CUDA or not; 0 where NVML does not answer."""
    with opened() as nvml:
        count = None if nvml is None else optional(nvml, nvml.nvmlDeviceGetCount)
    return int(count or 0)


def gpu_memory_bytes() -> int:
    """Memory of the smallest GPU that this process may use; 0 where NVML does not answer."""
    with opened() as nvml:
        if nvml is None:
            return 0
        gpus = optional(nvml, lambda: visible_gpus(nvml)) or []
        sizes = [_memory_bytes(nvml, gpu) for gpu in gpus]
    return min((size for size in sizes if size), default=0)


def _memory_bytes(nvml: ModuleType, gpu: object) -> int | None:
    return optional(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(gpu).total))


def optional(nvml: ModuleType, query: Callable[[], T]) -> T | None:
    """Return the answer of ``query``; None if the device does not support it."""
    try:
        return query()
    except nvml.NVMLError:
        return None


def visible_gpus(nvml: ModuleType) -> list[object]:
    """Return the handles of the GPUs that CUDA gives this process, in its order.

    ``CUDA_VISIBLE_DEVICES`` has indices or UUIDs; CUDA ignores an invalid one and those behind it.
    Indices are NVML's, as with ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` or GPUs of one model.
    """
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    gpus: list[object] = []
    for name in map(str.strip, names.split(",")):
        try:
            if name.isdigit():
                gpus.append(nvml.nvmlDeviceGetHandleByIndex(int(name)))
            else:
                gpus.append(nvml.nvmlDeviceGetHandleByUUID(name))
        except nvml.NVMLError:
            break
    return gpus
