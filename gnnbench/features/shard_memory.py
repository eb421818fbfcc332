"""The shards of a group of ranks, in memory that all ranks read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TypedDict

import torch
from torch import Tensor

from gnnbench.core.errors import GnnbenchError, HostMemoryError, UnsupportedError
from gnnbench.core.rendezvous import Peers
from gnnbench.features.allocation import allocating
from gnnbench.kernels.interprocess import (
    Address,
    DeviceMemory,
    HostMemory,
    Memory,
    OpenedDeviceMemory,
    OpenedHostMemory,
)
from gnnbench.kernels.sharded import MOST_SHARDS, check_peer_access, shard_rows

SMALLER = "give a smaller ratio, or more ranks"


class ShardMessage(TypedDict):
    """Message of a rank to the others: content, GPU and address of its shard."""

    what: str
    gpu: int | None  # None on a CPU
    address: str


class Shards:
    """``rows`` rows of the shape and dtype of ``table``, distributed round-robin over the ranks.

    ``own`` ``[k, ...]`` is this rank's shard on ``device``. Fill it, then call ``share``; ``all``
    then has the shards of all ranks. On a GPU other ranks map it by CUDA IPC; on a CPU it is
    unnamed shared memory. Neither outlives its processes.

    Raises ``GpuMemoryError`` or ``HostMemoryError`` if a shard does not fit, and
    ``UnsupportedError`` for more ranks than the GPU kernel supports.
    """

    def __init__(self, table: Tensor, rows: int, device: torch.device, peers: Peers | None) -> None:
        self.rank, self.ranks = (peers.rank, peers.ranks) if peers is not None else (0, 1)
        self._rows, self._table, self._device, self._peers = rows, table, device, peers
        if device.type == "cuda" and self.ranks > MOST_SHARDS:
            raise UnsupportedError(
                f"features 'sharded' divides a table over at most {MOST_SHARDS} GPUs, and there"
                f" are {self.ranks} ranks; take features=cache, which keeps a cache in each"
            )
        size = self._bytes(self.rank)
        with allocating("the shard of a rank", size, SMALLER):
            self._memory = self._allocate(size)
        self._opened: list[Memory] = []
        self.own = self._as_rows(self._memory, self.rank)
        self.all = [self.own]

    def _allocate(self, size: int) -> Memory:
        if self._device.type == "cuda":
            return DeviceMemory(size, self._device)
        try:
            return HostMemory(size)
        except OSError as error:
            raise HostMemoryError(
                f"the host has no {size} bytes of shared memory for the shard of a rank ({error});"
                f" {SMALLER}"
            ) from None

    def _bytes(self, rank: int) -> int:
        row = self._table.shape[1:].numel() * self._table.element_size()
        return max(shard_rows(self._rows, rank, self.ranks) * row, 1)  # 0 bytes cannot be allocated

    def _as_rows(self, memory: Memory, rank: int) -> Tensor:
        rows, shape = shard_rows(self._rows, rank, self.ranks), self._table.shape[1:]
        size = rows * shape.numel() * self._table.element_size()
        return memory.whole[:size].view(self._table.dtype).view(rows, *shape)

    def share(self, content: str) -> None:
        """Publish the filled shard and open the others; each rank waits for all.

        ``content`` identifies the rows of all shards. Raises ``GnnbenchError`` if another rank has
        different rows, and ``UnsupportedError`` if its memory cannot be read from here.
        """
        if self._peers is None:
            return
        address: Address = self._memory.address
        message = ShardMessage(
            what=content,
            gpu=self._device.index,
            address=address.hex() if isinstance(address, bytes) else address,
        )
        replies = self._peers.exchange("shards", json.dumps(message).encode())
        shards: list[ShardMessage] = [json.loads(reply) for reply in replies]
        if any(shard["what"] != content for shard in shards):
            raise GnnbenchError(
                "features 'sharded': ranks rank the nodes differently; take policy=degree"
            )
        if self._device.type == "cuda":
            check_peer_access(
                self._device.index, [gpu for shard in shards if (gpu := shard["gpu"]) is not None]
            )
        tables = []
        for rank, shard in enumerate(shards):
            if rank == self.rank:
                tables.append(self.own)
                continue
            opened = self._open(rank, shard["address"])
            self._opened.append(opened)
            tables.append(self._as_rows(opened, rank))
        self.all = tables
        # A shard must not be freed before all ranks have opened it.
        self._peers.exchange("shards-opened", b"")

    def _open(self, rank: int, address: str) -> Memory:
        if self._device.type == "cuda":
            return OpenedDeviceMemory(bytes.fromhex(address), self._bytes(rank), self._device)
        return OpenedHostMemory(address)

    def close(self) -> None:
        """Free all memory; the other ranks must have finished."""
        self.all.clear()
        del self.own
        for opened in self._opened:
            with suppress(RuntimeError):  # the process of that GPU has ended
                opened.close()
        self._opened.clear()
        self._memory.close()
