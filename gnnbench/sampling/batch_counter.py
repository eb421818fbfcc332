"""Epoch and number of a loader's next batch; loaders do not pass them to the sampler."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.data import get_worker_info

from gnnbench.sampling.arguments import whole
from gnnbench.sampling.loader import task_number


class BatchCounter:
    """Epoch and number of the next batch of another framework's loader.

    Without workers, batches are counted from ``set_epoch`` on. In a worker process the number is
    that of the loader, for any number of workers (see ``number`` of :meth:`next`). A worker reads
    the epoch before its first batch of each pass. The first pass uses the epoch set when the worker
    started; later passes (``persistent_workers=True``) read it from shared memory. Batches that are
    prefetched therefore keep their epoch.

    Without ``set_epoch``, workers draw the same epoch in each pass, and a loader without workers
    continues to count.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._next = 0
        self._version = 0  # number of calls of set_epoch
        self._passes = 0  # passes that this worker process has started
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()  # epoch, next, version

    def __setstate__(self, state: dict[str, object]) -> None:
        """A copy for a worker process shares the epoch; any other copy gets its own."""
        self.__dict__.update(state)
        if not self._shared.is_shared():
            self._shared = self._shared.clone().share_memory_()

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Set the epoch, and the number of its next batch. Call it between two passes.

        Raises ``UsageError`` for a negative or fractional number.
        """
        epoch, batch = whole("epoch", epoch, 0, 2**63 - 1), whole("batch", batch, 0, 2**32 - 1)
        self._epoch, self._next, self._version = epoch, batch, self._version + 1
        self._shared.copy_(torch.tensor([epoch, batch, self._version]))

    def next(self, number: Callable[[], int] = task_number) -> tuple[int, int]:
        """(epoch, batch) of the requested batch.

        ``number`` returns the batch's number in the pass; it is called in worker processes only.
        """
        info = get_worker_info()
        if info is None:
            self._next += 1
            return self._epoch, self._next - 1
        if task_number() < info.num_workers:  # the worker's first batch in this pass
            epoch, batch, version = self._shared.tolist()
            if version != self._version and self._passes:
                self._epoch, self._next, self._version = epoch, batch, version
            self._passes += 1
        return self._epoch, self._next + number()
