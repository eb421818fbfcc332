"""The slots of a bounded queue: host memory that processes share, each slot for one batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.interprocess import HostMemory, OpenedHostMemory
from gnnbench.kernels.locked import lock, unlock
from gnnbench.pipelines.batch_buffer import ALIGN, BufferLayout, TensorSlice, copy_ids


@dataclass(frozen=True)
class SlotMemory:
    """Memory of slot ``slot``; ``version`` counts its reallocations."""

    slot: int
    address: str
    version: int


class QueueSlots:
    """The slots as their owner has them. The memory has no name on disk and ends with its users."""

    def __init__(self, number: int) -> None:
        self._memory: list[HostMemory | None] = [None] * number
        self._versions = [0] * number

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def bytes(self) -> int:
        """Size of all slots together."""
        return sum(m.whole.numel() for m in self._memory if m is not None)

    def allocate(self, slot: int, size: int) -> SlotMemory:
        """Return the memory of an unused slot, at least ``size`` bytes.

        Memory that is too small is replaced by more, with a quarter to grow. Raises ``OSError``.
        """
        memory = self._memory[slot]
        if memory is None or memory.whole.numel() < size:
            larger = HostMemory(-(-(size + size // 4) // ALIGN) * ALIGN or ALIGN)
            if memory is not None:
                memory.close()
            memory = self._memory[slot] = larger
            self._versions[slot] += 1
        return SlotMemory(slot, str(memory.address), self._versions[slot])

    def memory(self, slot: int) -> Tensor:
        """Return the memory of an allocated slot, uint8."""
        memory = self._memory[slot]
        assert memory is not None
        return memory.whole

    def close(self) -> None:
        """Free all slots; a process that has one open keeps it."""
        for memory in self._memory:
            if memory is not None:
                memory.close()
        self._memory = [None] * len(self._memory)


class SlotAccess:
    """One process's access to the slots. ``written`` counts bytes.

    For a GPU the memory is locked in each process that copies to or from it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._open: dict[int, tuple[int, OpenedHostMemory]] = {}  # by slot, with its version
        self.written = 0

    def write(self, layout: BufferLayout, target: SlotMemory) -> None:
        """Copy the tensors of a layout to a slot; the copies are done on return."""
        memory = self._map(target)
        for tensor_slice, tensor in layout.slices:
            tensor_slice.of(memory).copy_(tensor, non_blocking=True)
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
        self.written += layout.size

    def take(
        self,
        slices: MiniBatch[TensorSlice],
        size: int,
        source: SlotMemory,
        on_host: Collection[str] = (),
    ) -> MiniBatch:
        """Copy a batch, whose tensors are ``slices`` of a slot, to the device in one transfer.

        Of ``batch.extra`` the fields ``on_host`` stay in host memory. The slot may be overwritten
        on return.
        """
        memory = self._map(source)[:size]
        if self._device.type == "cuda":
            on_device = memory.to(self._device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(torch.cuda.current_stream(self._device))
            copied.synchronize()
        else:
            on_device = memory.clone()
        batch = slices.mapped(lambda tensor_slice: tensor_slice.of(on_device))
        for name in on_host:
            if name in slices.extra:
                batch.extra[name] = slices.extra[name].of(memory).clone()
        copy_ids(batch)  # the audit keeps the ids, but not the edges
        return batch

    def open(self, slot: SlotMemory) -> Tensor:
        """Return a slot's memory, uint8; on a GPU it is locked. Raises ``HostMemoryError``."""
        return self._map(slot)

    def close(self) -> None:
        """Unmap all slots."""
        for slot in list(self._open):
            self._unmap(slot)

    def _map(self, slot: SlotMemory) -> Tensor:
        version, memory = self._open.get(slot.slot, (0, None))
        if memory is None or version != slot.version:
            self._unmap(slot.slot)
            memory = OpenedHostMemory(slot.address)
            self._open[slot.slot] = slot.version, memory
            if self._device.type == "cuda" and (code := lock(memory.whole)):
                del self._open[slot.slot]
                raise HostMemoryError(
                    f"{memory.whole.numel()} bytes of the queue's memory cannot be locked for the"
                    f" GPU (CUDA error {code}); give schedule.queue a smaller number, or raise the"
                    " limit of locked memory (ulimit -l)"
                )
        return memory.whole

    def _unmap(self, slot: int) -> None:
        if slot in self._open:
            _, memory = self._open.pop(slot)
            if self._device.type == "cuda":
                unlock(memory.whole)
            memory.close()
