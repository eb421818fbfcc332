"""Feature stage: global ids to feature rows on the compute device."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gnnbench.ops.features import gather


class FeatureStore(Protocol):
    """Serves feature rows."""

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids``, bit-equal to the feature table."""
        ...


class HostGather:
    """Gather by all cores into a staging buffer that is reused from batch to batch.

    The buffer grows by a quarter beyond the largest batch seen. The rows returned are a view of
    it: they are valid until the next ``load``.
    """

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._staging = torch.empty((0, table.shape[1]), dtype=table.dtype)

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` ``[n, feature_dim]``."""
        n = ids.numel()
        if n > self._staging.shape[0]:
            self._staging = torch.empty((n + n // 4, self._table.shape[1]), dtype=self._table.dtype)
        rows = self._staging[:n]
        return gather(self._table, ids, out=rows)
