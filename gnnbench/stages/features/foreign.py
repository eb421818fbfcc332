"""How DGL and PyG fetch features on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import Batch
from gnnbench.stages.features.base import FeatureStore


class IndexSelect(FeatureStore):
    """``torch.index_select``."""

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        ids = batch.input_nodes
        self.count(ids.numel(), "host")
        return torch.index_select(self.job.graph.features, 0, ids)


class LoaderFilter(FeatureStore):
    """``filter_fn``. Raises ``UnsupportedError`` for a batch that no PyG loader drew."""

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        loader, out = getattr(batch, "loader", None), getattr(batch, "out", None)
        if loader is None:
            raise UnsupportedError("features=pyg fetches for PyG's samplers only; take another")
        self.count(batch.input_nodes.numel(), "host")
        x: Tensor = loader.filter_fn(out).x
        return x
