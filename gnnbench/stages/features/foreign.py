"""How DGL and PyG fetch features on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import Batch
from gnnbench.stages.features.base import FeatureStore, StoreSpec
from gnnbench.stages.job import Job


@dataclass(frozen=True)
class DglGather(StoreSpec):
    """DGL's CPU feature fetch is ``index_select``."""

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "DGL's: torch.index_select"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)

    def build(self, job: Job) -> IndexSelect:
        """Over the graph's table."""
        return IndexSelect(job)


class IndexSelect(FeatureStore):
    """``torch.index_select``."""

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        ids = batch.input_nodes
        self.count(ids.numel(), "host")
        return torch.index_select(self.job.graph.features, 0, ids)


@dataclass(frozen=True)
class PygFilter(StoreSpec):
    """The filter function of the PyG loader that drew the batch."""

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "PyG's: the loader's own filter function"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)

    def build(self, job: Job) -> LoaderFilter:
        """Nothing to build: the batch knows its loader."""
        return LoaderFilter(job)


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
