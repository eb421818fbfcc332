"""Which batch of which epoch a loader draws, where the loader does not say."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from gnnbench.errors import UsageError
from gnnbench.minibatch import MiniBatch
from gnnbench.sampling.arguments import whole


class Samples(Protocol):
    """What an adapter needs of a :class:`gnnbench.sampling.base.Sampler`."""

    @property
    def pick(self) -> str:
        """Name of the pick function."""

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
    """Counts the batches that a loader of another framework asks for.

    Batches are numbered from 0 in the epoch that ``set_epoch`` named. Torch's loader asks its
    worker processes in turn, so that worker w of n draws the batches w, w + n, w + 2n ...: the
    batch that the loader yields as number i is batch i, for any number of workers. (With PyG it has
    the same seeds, too, and so the same edges; DGL gives each worker a stretch of the seeds.)
    Worker processes start with a copy of this object: without ``set_epoch`` before each epoch
    theirs begin with the same batch again, while a loader without workers goes on counting.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._next = 0

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Name the epoch, and the batch within it that comes next."""
        self._epoch = whole("epoch", epoch, 0)
        self._next = whole("batch", batch, 0)

    def next(self) -> tuple[int, int]:
        """(epoch, batch) of the batch that is asked for now."""
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        number = self._next + first
        self._next += step
        return self._epoch, number


def check_edge_ids(edge_ids: Tensor | None, num_edges: int) -> Tensor | None:
    """Edge ids by position, int64 on the CPU. Raises ``UsageError`` where they do not fit."""
    if edge_ids is None:
        return None
    if not isinstance(edge_ids, Tensor) or edge_ids.dtype not in (torch.int32, torch.int64):
        raise UsageError("edge_ids must be an int32 or int64 tensor")
    if edge_ids.shape != (num_edges,):
        raise UsageError(
            f"edge_ids must be one id for each of {num_edges} edges, they are"
            f" {list(edge_ids.shape)}"
        )
    return edge_ids.cpu().long()
