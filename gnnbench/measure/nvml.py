"""Queries of NVML, which a device may not support, and the GPUs that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


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
