"""What caches of other sizes would have hit in an epoch, apart from timing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from gnnbench.cache.policy import Footprint
from gnnbench.data.graph import Graph
from gnnbench.stages.features.base import FeatureStore


def look_at_curves(
    store: FeatureStore, footprint: Footprint, epoch: int, graph: Graph
) -> list[dict[str, Any]]:
    """Rows of ``curves.csv`` without the cell.

    Ratios are of all rows that the batches need, as those that are measured: what stands before a
    cache may ask it for fewer.
    """
    needed: dict[int, list[int]] = {}  # by epoch, of each batch

    def noted(number: int) -> Iterator[Tensor]:
        rows = needed[number] = []  # drawn again it is the same again
        for ids in footprint(number):
            rows.append(ids.numel())
            yield ids

    points = store.curves(noted, epoch)
    rows = needed.get(epoch, [])
    row_bytes = graph.features.shape[1] * graph.features.element_size()
    return [
        {
            "policy": one.policy,
            "ratio": one.ratio,
            "hit_ratio": one.hits / sum(rows) if any(rows) else float("nan"),
            "missed_bytes": one.missed * row_bytes / max(1, len(rows)),
        }
        for one in points
    ]
