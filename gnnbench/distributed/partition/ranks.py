"""A rank of a group that samples one graph: its sampler and its features, by mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.exchange import Exchange
from gnnbench.distributed.partition.features import AllFeatures, OwnFeatures
from gnnbench.distributed.partition.vanilla import VanillaSampler
from gnnbench.sampling.build import build_sampler
from gnnbench.version import __version__

MODES = ("vanilla", "hybrid", "unpartitioned")


class Samples(Protocol):
    """What draws a rank's batches."""

    def sample(self, seeds: Tensor, epoch: int = 0, batch: int = 0) -> MiniBatch:
        """The blocks for ``seeds`` (original ids ``[n]``), in original ids."""


class Fetches(Protocol):
    """What has a rank's feature rows."""

    def rows(self, nodes: Tensor) -> Tensor:
        """Feature rows float32 ``[n, feature_dim]`` of nodes (original ids ``[n]``)."""


@dataclass(frozen=True)
class Rank:
    """One rank: it draws batches by ``sampler``, fetches their rows by ``features``.

    ``exchange.traffic`` tells rounds and bytes. Made by :func:`join`.
    """

    mode: str
    graph: Graph
    partition: Partition
    sampler: Samples
    features: Fetches
    exchange: Exchange
    device: torch.device
    layers: int

    @property
    def rank(self) -> int:
        """The number of this rank, which is that of its part."""
        return self.exchange.rank

    def training_nodes(self, rank: int) -> Tensor:
        """Original ids of a part's training nodes, int64 ``[n]``, ascending; there may be none."""
        return self.partition.own(rank, self.graph.train_idx)


def join(
    graph: Graph,
    partition: Partition,
    mode: str,
    fanouts: Sequence[int],
    *,
    group: dist.ProcessGroup | None = None,
    device: str | torch.device = "cpu",
    sampler: str = "fastsample",
    pick: str = "floyd",
    frontier: str = "cumulative",
    seed: int = 0,
    weights: Tensor | str | None = None,
    with_positions: bool = False,
) -> Rank:
    """This process as a rank of ``group``, part ``rank`` its own. All ranks call it together.

    Args:
        graph: the whole graph, as it is mapped from the store; what a rank keeps is by ``mode``.
        partition: of this graph, with as many parts as the group has ranks.
        mode: ``"vanilla"``: the rank keeps its own nodes' in-edges and features;
            ``"hybrid"``: all edges, its own nodes' features (FastSample, section 3.3);
            ``"unpartitioned"``: all of both, what the two are held against.
        fanouts: from the seeds outwards.
        group: of ``torch.distributed``; None: the default one.
        device: of blocks and rows: the CPU under Gloo, a GPU under NCCL.
        sampler: of ``gnnbench.samplers()``, where the rank has all edges; vanilla has its own.
        pick, frontier, seed, weights, with_positions: as of ``gnnbench.build_sampler``.

    Raises:
        UsageError: an argument is wrong, the partition has another number of parts than the group
            has ranks, or the ranks differ in version, graph, partition or arguments.
        UnsupportedError: a pick or frontier that the sampler, or vanilla, does not do.
    """
    names.check("partition mode", mode, MODES)
    exchange, where = Exchange(group), torch.device(device)
    if partition.num_nodes != graph.num_nodes:
        raise UsageError(
            f"the partition has {partition.num_nodes} nodes and graph '{graph.name}'"
            f" {graph.num_nodes}; make one of this graph"
        )
    if partition.parts != exchange.ranks:
        raise UsageError(
            f"the partition has {partition.parts} parts for {exchange.ranks} ranks; make one with"
            f" {exchange.ranks}"
        )
    how: dict[str, Any] = {
        "pick": pick,
        "frontier": frontier,
        "seed": seed,
        "weights": weights,
        "with_positions": with_positions,
    }
    same = {"version": __version__, "graph": _of_graph(graph), "partition": partition.digest()}
    same |= {"mode": mode, "fanouts": list(fanouts), "sampler": sampler, **how}
    exchange.agree(where, {**same, "weights": _of_weights(weights)})
    draws: Samples = (
        VanillaSampler(graph, partition, fanouts, exchange, where, **how)
        if mode == "vanilla"
        else build_sampler(sampler, graph, fanouts, where, **how)
    )
    features: Fetches = (
        AllFeatures(graph, where)
        if mode == "unpartitioned"
        else OwnFeatures(graph, partition, exchange, where)
    )
    return Rank(mode, graph, partition, draws, features, exchange, where, len(fanouts))


def _of_graph(graph: Graph) -> object:
    """What tells graphs apart, without reading one: of the store its checksum."""
    sizes = (graph.num_nodes, graph.num_edges, graph.feature_dim, graph.train_idx.numel())
    return graph.meta.get("meta_sha256") or sizes


def _of_weights(weights: Tensor | str | None) -> object:
    """What tells weights apart."""
    return (weights.numel(), float(weights.sum())) if isinstance(weights, Tensor) else weights
