"""Feature stores of DGL, GraphBolt and PyG."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.base import FeatureStore
from gnnbench.features.gpu import DeviceGather
from gnnbench.features.uva import LockedRows
from gnnbench.kernels.dgl_import import require_dgl, require_graphbolt


class IndexSelect(FeatureStore):
    """``torch.index_select`` on the host."""

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        ids = batch.input_nodes
        self.count(ids.numel(), "host")
        return torch.index_select(self.job.graph.features, 0, ids)


class DeviceSelect(DeviceGather):
    """``torch.index_select`` on the device. Raises ``GpuMemoryError`` if the table does not fit."""

    def rows(self, table: Tensor, ids: Tensor, out: Tensor | None) -> Tensor:
        """``table[ids]`` by torch's kernel, in ``out`` or in new memory."""
        return torch.index_select(table, 0, ids, out=out)

    def reserve(self, rows: int) -> list[Tensor]:
        """Empty: torch allocates each result."""
        return []


class PinnedSelect(FeatureStore):
    """``index_select`` into pinned memory, then an asynchronous copy.

    DGL's loader does so when it samples on the host. The ids are copied from the device.
    """

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        ids, table = batch.input_nodes.cpu(), self.job.graph.features
        self.count(ids.numel(), "host_copy")
        rows = torch.empty((ids.numel(), table.shape[1]), dtype=table.dtype, pin_memory=True)
        torch.index_select(table, 0, ids, out=rows)
        return rows.to(self.job.device, non_blocking=True)


class PinnedRows(LockedRows):
    """DGL's ``gather_pinned_tensor_rows``: the GPU reads the rows of a table locked in place.

    DGL checks that the memory is locked, not who locked it (``IsPinned``).
    """

    def __init__(self, job: Job) -> None:
        utils = require_dgl().utils  # first, so that nothing is locked if DGL is missing
        super().__init__(job)
        self._gather = utils.gather_pinned_tensor_rows

    def rows(self, table: Tensor, ids: Tensor) -> Tensor:
        """``table[ids]``, by DGL's kernel."""
        return self._gather(table, ids)


class BoltSelect(FeatureStore):
    """GraphBolt's ``index_select`` on the host."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._select = require_graphbolt("cpu").index_select

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        ids = batch.input_nodes
        self.count(ids.numel(), "host")
        return self._select(self.job.graph.features, ids)


class BoltRows(LockedRows):
    """GraphBolt's ``index_select`` over the locked table: it sorts the ids, then reads rows.

    The table must be pinned for torch, i.e. locked by the driver. Importing GraphBolt sets
    ``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True``, unless the variable sets
    ``expandable_segments`` already: torch's GPU memory may then be in growing segments.
    """

    def __init__(self, job: Job) -> None:
        graphbolt = require_graphbolt()
        super().__init__(job)
        self._select = graphbolt.index_select

    def rows(self, table: Tensor, ids: Tensor) -> Tensor:
        """``table[ids]``, by GraphBolt's kernel."""
        return self._select(table, ids)


class LoaderFilter(FeatureStore):
    """``filter_fn``. Raises ``UnsupportedError`` for a batch that no PyG loader drew."""

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``; for a GPU pinned, then copied asynchronously."""
        loader, out = getattr(batch, "loader", None), getattr(batch, "out", None)
        if loader is None:
            raise UnsupportedError("features=pyg fetches for PyG's samplers only; take another")
        on_gpu = self.job.device.type == "cuda"
        self.count(batch.input_nodes.numel(), "host_copy" if on_gpu else "host")
        x: Tensor = loader.filter_fn(out).x
        return x.pin_memory().to(self.job.device, non_blocking=True) if on_gpu else x
