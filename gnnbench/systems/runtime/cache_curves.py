"""Hit ratios of other cache sizes in an epoch, and the similarity of two epochs; untimed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gnnbench.core.counters import HOT_SIMILARITY
from gnnbench.datasets.graph import Graph
from gnnbench.features.base import FeatureStore
from gnnbench.features.policies.policy import Footprint
from gnnbench.features.policies.similarity import hot_similarity
from gnnbench.systems.runtime.system import CurveRow

Fact = tuple[str, str, float]


def cache_curves(
    store: FeatureStore, footprint: Footprint, epoch: int, graph: Graph
) -> tuple[list[CurveRow], list[Fact]]:
    """Return rows of ``curves.csv`` without the cell, and facts as (stage, measure, value).

    Hit ratios are over all rows that the batches need, like measured ones. A store in front of a
    cache may request fewer rows from it.
    """
    needed: dict[int, list[int]] = {}  # by epoch, of each batch
    seen: dict[int, Tensor] = {}  # by epoch, visits of each node: of ``epoch`` and of another one

    def noted(number: int) -> Iterator[Tensor]:
        rows = needed[number] = []  # drawn again it is the same again
        visits = torch.zeros(graph.num_nodes, dtype=torch.int32)
        if number == epoch or not seen.keys() - {number, epoch}:
            seen[number] = visits
        for ids in footprint(number):
            rows.append(ids.numel())
            here = ids.cpu().long()
            visits.index_add_(0, here, torch.ones_like(here, dtype=torch.int32))
            yield ids

    points = store.curves(noted, epoch)
    rows = needed.get(epoch, [])
    row_bytes = graph.features.shape[1] * graph.features.element_size()
    curves: list[CurveRow] = [
        {
            "policy": one.policy,
            "ratio": one.ratio,
            "hit_ratio": one.hits / sum(rows) if any(rows) else float("nan"),
            "missed_bytes": one.missed * row_bytes / max(1, len(rows)),
        }
        for one in points
    ]
    other = [visits for number, visits in seen.items() if number != epoch and needed[number]]
    if not other or not any(rows):
        return curves, []
    alike = hot_similarity(other[0], seen[epoch])
    return curves, [("features", HOT_SIMILARITY.name, alike)]
