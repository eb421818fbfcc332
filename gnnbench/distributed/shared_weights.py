"""Weights that trainers update asynchronously: a copy in host memory that all ranks map.

Each trainer has an optimizer of its own, and adds the change of each of its steps to the shared
weights under a lock, as the authors' code of GNNLab does.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from gnnbench.core import process_activity
from gnnbench.core.heartbeat import Pulse
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.bounded_queue import SlotAccess, SlotMemory
from gnnbench.pipelines.batch_buffer import ALIGN

LOOK_S = 2e-5  # between two attempts to lock; a lock lasts as long as copying a model


def shared_size(parameters: Sequence[Tensor]) -> int:
    """Return the bytes of the shared memory: the number of updates, then the weights in float32."""
    return ALIGN + 4 * sum(p.numel() for p in parameters)


@torch.no_grad()
def begin_epoch(memory: Tensor, parameters: Sequence[Tensor]) -> None:
    """Write the weights that an epoch begins with to ``memory``, uint8 ``[shared_size]``."""
    memory[:8].view(torch.int64).zero_()
    weights = torch.cat([p.detach().flatten() for p in parameters])
    memory[ALIGN : ALIGN + weights.nbytes].view(torch.float32).copy_(weights)


class SharedWeights:
    """One trainer's access, for an epoch.

    ``stale`` has for each of its updates the number of updates by others since the weights were
    read that its gradients were computed with. On a GPU the host waits for each exchange.
    """

    def __init__(
        self, access: SlotAccess, address: SlotMemory, parameters: Sequence[Tensor], pulse: Pulse
    ) -> None:
        self._parameters, self._pulse = parameters, pulse
        self._sizes = [p.numel() for p in parameters]
        memory = access.open(address)
        self._updates = memory[:8].view(torch.int64)
        self._shared = memory[ALIGN : ALIGN + 4 * sum(self._sizes)].view(torch.float32)
        self._file = os.open(address.address, os.O_RDWR | os.O_CLOEXEC)  # its lock is this rank's
        self.stale: list[int] = []
        self.read()

    def read(self) -> None:
        """Replace the trainer's weights by the shared ones."""
        with self._locked():
            self._read = int(self._updates)
            self._take(self._shared.to(self._parameters[0].device, copy=True))
            self._wait()

    @torch.no_grad()
    def exchange(self) -> None:
        """Add what the trainer's last step changed to the shared weights, and read these."""
        change = self._own() - self._before
        self._wait()  # so that the lock is not held while the step runs
        with self._locked():
            updates = int(self._updates)
            self.stale.append(updates - self._read)
            self._updates.fill_(updates + 1)
            self._read = updates + 1
            self._take(self._shared.to(change.device, non_blocking=True) + change)
            self._shared.copy_(self._before, non_blocking=True)
            self._wait()

    def close(self) -> None:
        """Give the lock's file back; the memory stays mapped by its ``SlotAccess``."""
        os.close(self._file)

    def _own(self) -> Tensor:
        return torch.cat([p.detach().flatten() for p in self._parameters])

    @torch.no_grad()
    def _take(self, weights: Tensor) -> None:
        self._before = weights
        for own, new in zip(self._parameters, weights.split(self._sizes), strict=True):
            own.copy_(new.view_as(own))

    def _wait(self) -> None:
        if (device := self._parameters[0].device).type == "cuda":
            torch.cuda.current_stream(device).synchronize()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, which ends with the process. Raises ``LostError`` if a rank keeps it."""
        end = time.monotonic() + process_activity.SILENCE_S
        with self._pulse.waiting():
            while True:
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise LostError("a rank does not release the shared weights") from None
                    time.sleep(LOOK_S)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
