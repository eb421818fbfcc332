"""Partitioning methods: METIS in two ways, and two baselines that ignore edges."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.metis import metis_owners
from gnnbench.distributed.partition.metis_balanced import balanced_owners
from gnnbench.kernels import rng


def random_owners(graph: Graph, parts: int, seed: int) -> Tensor:
    """Assign owners at random, int64 ``[num_nodes]``; counts differ by at most one."""
    training = torch.zeros(graph.num_nodes, dtype=torch.bool)
    training[graph.train_idx] = True
    order = rng.permutation(graph.num_nodes, rng.key(seed, 0, "partition"))
    # Round robin, training nodes first.
    order = torch.cat([order[training[order]], order[~training[order]]])
    owners = torch.empty_like(order)
    owners[order] = torch.arange(graph.num_nodes) % parts
    return owners


def contiguous_owners(graph: Graph, parts: int, seed: int) -> Tensor:
    """Assign ranges of ids of equal length, int64 ``[num_nodes]``; ``seed`` is not used."""
    bounds = torch.tensor([graph.num_nodes * part // parts for part in range(parts + 1)])
    return torch.repeat_interleave(torch.arange(parts), bounds.diff())


METHODS: dict[str, Callable[[Graph, int, int], Tensor]] = {
    "metis": metis_owners,
    "metis-balanced": balanced_owners,
    "random": random_owners,
    "contiguous": contiguous_owners,
}


def partition(graph: Graph, parts: int, method: str = "metis", seed: int = 0) -> Partition:
    """Split a graph's nodes into ``parts``; the same call gives the same partition.

    ``method``: ``metis`` (few edges between parts, training nodes even; see
    :func:`gnnbench.distributed.partition.metis.metis_owners`), ``metis-balanced`` (edges balanced,
    too; :func:`gnnbench.distributed.partition.metis_balanced.balanced_owners`), ``random`` or
    ``contiguous``. Raises ``UsageError`` for another method or fewer than 1 part, ``MissingError``
    without pymetis.
    """
    names.check("partition method", method, METHODS)
    if parts < 1:
        raise UsageError(f"a partition has at least 1 part, not {parts}")
    return Partition.of_owners(METHODS[method](graph, parts, seed), parts, method, seed)
