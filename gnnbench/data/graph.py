"""The graph that every system trains on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Graph:
    """A graph in CSC of in-neighbours with node data, opened read-only from the store.

    ``indptr`` int64 ``[num_nodes + 1]``; ``indices`` int32 or int64 ``[num_edges]``: the
    in-neighbours of node ``v`` are ``indices[indptr[v]:indptr[v + 1]]`` (parallel edges and
    self-loops allowed). ``features`` float32 ``[num_nodes, feature_dim]``; ``labels`` int64
    ``[num_nodes]``, -1 where unlabelled; split indices int64, sorted, unique. ``weights`` float32
    ``[num_edges]`` in the order of ``indices``, finite and at least 0, or None.
    ``meta`` is the store's ``meta.json``.
    """

    name: str
    indptr: Tensor
    indices: Tensor
    features: Tensor
    labels: Tensor
    train_idx: Tensor
    val_idx: Tensor
    test_idx: Tensor
    num_classes: int
    weights: Tensor | None = None
    path: Path | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges, parallel ones counted each."""
        return self.indices.numel()

    @property
    def feature_dim(self) -> int:
        """Width of a feature row."""
        return int(self.features.shape[1])
