"""Tables in shared memory, and a fake driver that page-locks memory without a GPU."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import torch

from gnnbench.datasets import shared_memory
from gnnbench.kernels import locked, shared


def permission_of(memory):
    """Permissions of the mapping that contains a tensor, such as ``r--s``."""
    address = memory.data_ptr()
    return next(
        line.split()[1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16)
    )


def fake_driver(monkeypatch):
    """Fakes locking; returns locked sizes by address. Read-only memory is refused, as by CUDA."""
    ranges = {}

    def register(memory):
        address, size = memory.data_ptr(), memory.numel() * memory.element_size()
        if address in ranges or not permission_of(memory).startswith("rw"):
            return 1
        ranges[address] = size
        return 0

    monkeypatch.setattr(locked, "lock", register)
    monkeypatch.setattr(locked, "unlock", lambda memory: ranges.pop(memory.data_ptr()))
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    # A GPU of 1 MiB that uses 8 bytes of memory for every 16 mapped bytes.
    monkeypatch.setattr(locked, "free_memory", lambda: 2**20 - sum(ranges.values()) // 2)
    return ranges


def shared_table():
    """int16 ``[15, 8]`` in shared memory, mapped as by a worker; its bytes count up."""

    def fill(part, start):
        part[:] = bytes(range(start % 256, start % 256 + len(part)))

    descriptor = shared_memory.create_shared("table", 240, fill)
    table = shared.map_shared(shared_memory.address_of(descriptor), torch.int16, (15, 8))
    os.close(descriptor)
    return table
