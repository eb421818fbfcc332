"""Which batch of which epoch a loader draws, where the loader does not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from gnnbench.core.minibatch import MiniBatch
from gnnbench.sampling.arguments import whole
from gnnbench.sampling.loader import task_number


class Samples(Protocol):
    """What an adapter needs of a :class:`gnnbench.sampling.base.Sampler`."""

    @property
    def pick(self) -> str:
        """Name of the pick function."""

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``."""

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``."""

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""

    @property
    def num_edges(self) -> int:
        """Edges of the graph."""

    def sample(
        self, seeds: Tensor, epoch: int = 0, batch: int = 0, *, with_positions: bool | None = None
    ) -> MiniBatch:
        """The blocks for ``seeds``, input layer first."""


class Place:
    """Epoch and number of the batch that a loader of another framework asks for.

    Without workers, batches are counted from ``set_epoch`` on. In a worker process the number is
    the batch's own, whatever the number of workers (see ``number`` of :meth:`next`). A worker reads
    the epoch before the first batch of each pass: the first pass uses the epoch that was set when
    the worker started, later passes (``persistent_workers=True``) the one in shared memory. So
    batches that are prefetched do not take the next epoch's number.

    Without ``set_epoch``, workers draw the same epoch in each pass, and a loader without workers
    goes on counting.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._next = 0
        self._version = 0  # how often the epoch was set
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()  # the same three

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy for a worker process shares the epoch; any other copy has an epoch of its own."""
        self.__dict__.update(state)
        if not self._shared.is_shared():
            self._shared = self._shared.clone().share_memory_()

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Set the epoch, and the number of its next batch. Call it between two passes.

        Raises ``UsageError`` for a number that is negative or not whole.
        """
        epoch, batch = whole("epoch", epoch, 0, 2**63 - 1), whole("batch", batch, 0, 2**32 - 1)
        self._epoch, self._next, self._version = epoch, batch, self._version + 1
        self._shared.copy_(torch.tensor([epoch, batch, self._version]))

    def next(self, number: Callable[[], int] = task_number) -> tuple[int, int]:
        """(epoch, batch) of the batch that is asked for now.

        ``number`` gives the batch's number in the pass and is called in a worker process only.
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

    _passes = 0  # that this worker process has begun
