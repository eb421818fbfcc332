"""Estimate the size of sampled batches of a prepared graph from one batch drawn with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.core.fanouts import ALL
from gnnbench.datasets.store import layout
from gnnbench.schema.arrays import Array

MOST_EDGES = 1 << 18  # drawn per hop, each a read at a random place of a file


class BatchSize(NamedTuple):
    """Sampled edges of all hops, and distinct nodes."""

    edges: float
    nodes: float


@lru_cache(maxsize=64)
def expected_batch(folder: Path, fanouts: Sequence[int], seeds: int) -> BatchSize:
    """Draw a batch of ``seeds`` training nodes of a prepared graph and count it.

    Rows longer than the fanout are drawn from with replacement, so slightly fewer nodes are
    distinct than with a sampler. A hop with more than ``MOST_EDGES`` edges is drawn for a part of
    its targets and scaled up; its nodes are then an upper bound. Raises ``DataError`` for a
    damaged graph, as far as it is read.
    """
    arrays = layout.read_meta(folder)["arrays"]
    indptr, indices, train = (
        layout.stored_array(folder, name, arrays[name])
        for name in ("indptr", "indices", "train_idx")
    )
    random = np.random.default_rng(0)
    nodes = random.choice(train, min(seeds, len(train)), replace=False).astype(np.int64)
    num_nodes = len(indptr) - 1
    edges, targets_of_each = 0.0, 1.0  # how many targets each of ``nodes`` stands for
    for fanout in fanouts:
        if nodes.min() < 0 or nodes.max() >= num_nodes:
            raise DataError(f"{folder} is damaged: it holds an id that is not a node")
        targets_of_each = min(targets_of_each, num_nodes / len(nodes))
        begins, ends = indptr[nodes], indptr[nodes + 1]
        degrees = ends - begins
        if begins.min() < 0 or degrees.min() < 0 or ends.max() > len(indices):
            raise DataError(f"{folder} is damaged: indptr is broken")
        picks = degrees if fanout == ALL else np.minimum(degrees, fanout)
        if (total := int(picks.sum())) > MOST_EDGES:
            chosen = random.permutation(len(nodes))[: max(len(nodes) * MOST_EDGES // total, 1)]
            targets_of_each *= len(nodes) / len(chosen)
            nodes, degrees, picks = nodes[chosen], degrees[chosen], picks[chosen]
        edges += targets_of_each * int(picks.sum())
        nodes = np.union1d(nodes, _neighbours(indptr, indices, nodes, degrees, picks, random))
    return BatchSize(edges, min(targets_of_each * len(nodes), num_nodes))


def _neighbours(
    indptr: Array,
    indices: Array,
    nodes: Array,
    degrees: Array,
    picks: Array,
    random: np.random.Generator,
) -> Array:
    """Take all neighbours of a node with as many as ``picks``, else draw with replacement."""
    starts, degree = np.repeat(indptr[nodes], picks), np.repeat(degrees, picks)
    every = np.arange(len(starts)) - np.repeat(np.cumsum(picks) - picks, picks)
    drawn = (random.random(len(starts)) * degree).astype(np.int64)
    return indices[starts + np.where(degree == np.repeat(picks, picks), every, drawn)]
