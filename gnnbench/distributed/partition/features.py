"""Feature rows of any nodes, each fetched from the rank that owns it."""

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
    """A rank's own feature rows, and everyone's by 2 rounds (FastSample, section 3.3).

    Copies the rank's rows ``[own, feature_dim]`` to ``kept`` (None: ``device``), where they are
    gathered; ids and what is exchanged are on ``device``. ``own_rows`` and ``other_rows`` count
    what was asked for, by who had it.
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
        """Feature rows float32 ``[n, feature_dim]`` of nodes (original ids ``[n]``), bit for bit.

        Round 1 sends each owner the places that are wanted of it, round 2 the rows back. All ranks
        call it together, one that wants nothing with ``n`` = 0.
        """
        device = self._device
        wanted = self._places[nodes.to(device).long()].to(self._ids)
        route = Route(wanted, self._offsets)
        come = self._exchange.sizes(PURPOSE, route.counts)
        asked = self._exchange.round(PURPOSE, route.asked, route.to, come)
        here = route.to[self._exchange.rank]
        self.own_rows += here
        self.other_rows += wanted.numel() - here
        rows = gather(self._own, (asked - self._first).to(self._own.device)).to(device)
        return route.back(self._exchange.round(PURPOSE, rows, come, route.to))


class AllFeatures:
    """The whole table on every rank, for what is not partitioned: no round."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        self._table = graph.features.to(device)

    def rows(self, nodes: Tensor) -> Tensor:
        """Feature rows float32 ``[n, feature_dim]`` of nodes (ids ``[n]``)."""
        return gather(self._table, nodes)
