"""Gather by a copy for each row: the host starts a DMA transfer per row, from locked memory."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.uva import LockedRows
from gnnbench.kernels.features import gather_by_copies


class RowCopies(LockedRows):
    """Rows of a locked table, each copied by a ``cudaMemcpyAsync`` of its own.

    ``together``: all copies of a batch are started by one call. Source: PyTorch-Direct, section 5
    ("DMA vs. Zero-Copy Trade-Off Point"). Reading the ids from the device waits for the sampler.
    """

    def __init__(self, job: Job, together: bool = False) -> None:
        super().__init__(job)
        self._together = together

    def rows(self, table: Tensor, ids: Tensor) -> Tensor:
        """``table[ids]``, in new memory of the cell's device."""
        shape = (ids.numel(), table.shape[1])
        out = torch.empty(shape, dtype=table.dtype, device=self.job.device)
        return gather_by_copies(table, ids.cpu(), out, self._together)

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        self.count(ids.numel(), "host_copy")
        return self.rows(self.table, ids)

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Copy the rows to ``out``."""
        self.count(batch.input_nodes.numel(), "host_copy")
        gather_by_copies(self.table, batch.input_nodes.cpu(), out, self._together)
        return True
