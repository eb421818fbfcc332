"""Fetches feature rows from the ranks that own them."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.exchange import Exchange
from gnnbench.distributed.partition.route import Route
from gnnbench.kernels.features import gather

PURPOSE = "features"


class OwnFeatures:
    """Feature rows of a rank's own nodes; others' rows take 2 rounds (FastSample, section 3.3).

    The rank's rows ``[own, feature_dim]`` are copied to ``kept`` (None: ``device``) and gathered
    there. Ids and exchanged tensors are on ``device``. ``own_rows`` and ``other_rows`` count the
    requested rows that this rank and other ranks own.
    """

    def __init__(
        self,
        graph: Graph,
        partition: Partition,
        exchange: Exchange,
        device: torch.device,
        kept: torch.device | None = None,
    ) -> None:
        self._device, self.own_rows, self.other_rows = device, 0, 0
        self._exchange, self._ids = exchange, graph.indices.dtype
        self._places, _ = partition.numberings(device, self._ids)
        self._offsets = partition.offsets.to(device)
        self._first = int(partition.offsets[exchange.rank])
        self._own = gather(graph.features, partition.nodes_of(exchange.rank)).to(kept or device)

    def rows(self, nodes: Tensor) -> Tensor:
        """Return feature rows float32 ``[n, feature_dim]`` of nodes (original ids ``[n]``).

        Round 1 sends places to their owners, round 2 returns the rows bit for bit. All ranks call
        it together; a rank without requests passes ``n`` = 0.
        """
        device = self._device
        wanted = self._places[nodes.to(device).long()].to(self._ids)
        route = Route(wanted, self._offsets)
        come = self._exchange.sizes(PURPOSE, route.counts)
        requests = self._exchange.round(PURPOSE, route.requested, route.to, come)
        own = route.to[self._exchange.rank]
        self.own_rows += own
        self.other_rows += wanted.numel() - own
        rows = gather(self._own, (requests - self._first).to(self._own.device)).to(device)
        return route.back(self._exchange.round(PURPOSE, rows, come, route.to))


class AllFeatures:
    """The whole table on every rank, without rounds."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        self._table = graph.features.to(device)

    def rows(self, nodes: Tensor) -> Tensor:
        """Return feature rows float32 ``[n, feature_dim]`` of nodes (ids ``[n]``)."""
        return gather(self._table, nodes)
