"""The shards of a group of ranks: each rank's rows in memory that the others read."""

from __future__ import annotations

import json
from contextlib import suppress

import torch
from torch import Tensor

from gnnbench.core.errors import GnnbenchError, HostMemoryError, UnsupportedError
from gnnbench.core.rendezvous import Peers
from gnnbench.features.allocation import taking
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


class Shards:
    """``rows`` rows of the shape and dtype of ``table``, dealt out one by one over the ranks.

    ``own`` ``[k, ...]`` is this rank's shard, on ``device``: to be filled, then shown to the others
    by ``share``, after which ``all`` has every rank's. On a GPU it is memory of its own, mapped by
    the others (CUDA IPC); on a CPU shared memory without a name. Neither outlives its processes.

    Raises ``GpuMemoryError`` or ``HostMemoryError`` where a shard does not fit, and
    ``UnsupportedError`` where there are more ranks than a GPU's kernel takes.
    """

    def __init__(self, table: Tensor, rows: int, device: torch.device, peers: Peers | None) -> None:
        self.rank, self.ranks = (peers.rank, peers.ranks) if peers is not None else (0, 1)
        self._rows, self._table, self._device, self._peers = rows, table, device, peers
        if device.type == "cuda" and self.ranks > MOST_SHARDS:
            raise UnsupportedError(
                f"features 'sharded' deals a table out over at most {MOST_SHARDS} GPUs, and there"
                f" are {self.ranks} ranks; take features=cache, which keeps a cache in each"
            )
        size = self._bytes(self.rank)
        with taking("the shard of a rank", size, SMALLER):
            self._memory = self._allocated(size)
        self._opened: list[Memory] = []
        self.own = self._as_rows(self._memory, self.rank)
        self.all = [self.own]

    def _allocated(self, size: int) -> Memory:
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
        return max(shard_rows(self._rows, rank, self.ranks) * row, 1)  # none is no memory

    def _as_rows(self, memory: Memory, rank: int) -> Tensor:
        rows, shape = shard_rows(self._rows, rank, self.ranks), self._table.shape[1:]
        size = rows * shape.numel() * self._table.element_size()
        return memory.whole[:size].view(self._table.dtype).view(rows, *shape)

    def share(self, what: str) -> None:
        """Show the others the shard, which is full, and open theirs; each rank waits for all.

        ``what`` tells which rows all shards hold. Raises ``GnnbenchError`` where another rank holds
        others, and ``UnsupportedError`` where its memory cannot be read from here.
        """
        if self._peers is None:
            return
        address: Address = self._memory.address
        kept = address.hex() if isinstance(address, bytes) else address
        word = {"what": what, "gpu": self._device.index, "address": kept}
        said = self._peers.exchange("shards", json.dumps(word).encode())
        told = [json.loads(each) for each in said]
        if any(each["what"] != what for each in told):
            raise GnnbenchError(
                "features 'sharded': ranks rank the nodes differently; take policy=degree"
            )
        if self._device.type == "cuda":
            check_peer_access(self._device.index, [each["gpu"] for each in told])
        found = []
        for rank, each in enumerate(told):
            if rank == self.rank:
                found.append(self.own)
                continue
            opened = self._opened_of(rank, each["address"])
            self._opened.append(opened)
            found.append(self._as_rows(opened, rank))
        self.all = found
        # Nobody may give a shard up that another has not opened yet.
        self._peers.exchange("shards-opened", b"")

    def _opened_of(self, rank: int, address: str) -> Memory:
        if self._device.type == "cuda":
            return OpenedDeviceMemory(bytes.fromhex(address), self._bytes(rank), self._device)
        return OpenedHostMemory(address)

    def close(self) -> None:
        """Give all memory up; the other ranks' work must be over."""
        self.all.clear()
        del self.own
        for opened in self._opened:
            with suppress(RuntimeError):  # a GPU whose process has ended
                opened.close()
        self._opened.clear()
        self._memory.close()
