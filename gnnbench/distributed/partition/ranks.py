"""Ranks of a group that samples one graph: the sampler and the feature store of each mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

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


class RankSampler(Protocol):
    """Samples a rank's batches."""

    def sample(self, seeds: Tensor, epoch: int = 0, batch: int = 0) -> MiniBatch:
        """Return the blocks of ``seeds`` (original ids ``[n]``), in original ids."""


class RankFeatures(Protocol):
    """Fetches a rank's feature rows."""

    def rows(self, nodes: Tensor) -> Tensor:
        """Return feature rows, float32 ``[n, feature_dim]``, of nodes (original ids ``[n]``)."""


class _SamplerOptions(TypedDict):
    """Options of ``gnnbench.build_sampler``."""

    pick: str
    frontier: str
    seed: int
    weights: Tensor | str | None
    with_positions: bool


@dataclass(frozen=True)
class Rank:
    """One rank, which samples batches and fetches their feature rows. Built by :func:`join`.

    ``exchange.traffic`` counts rounds and bytes.
    """

    mode: str
    graph: Graph
    partition: Partition
    sampler: RankSampler
    features: RankFeatures
    exchange: Exchange
    device: torch.device
    layers: int

    @property
    def rank(self) -> int:
        """Return the number of this rank and of its part."""
        return self.exchange.rank

    def training_nodes(self, rank: int) -> Tensor:
        """Return original ids of a part's training nodes, int64 ``[n]``, ascending, maybe none."""
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
    """Make this process a rank of ``group`` that owns part ``rank``. All ranks call it together.

    Args:
        graph: the whole graph, mapped from the store; ``mode`` decides which part a rank keeps.
        partition: of this graph, with as many parts as the group has ranks.
        mode: ``"vanilla"``: the rank keeps its own nodes' in-edges and features;
            ``"hybrid"``: all edges, its own nodes' features (FastSample, section 3.3);
            ``"unpartitioned"``: all edges and features, the baseline of the other two.
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
    options: _SamplerOptions = {
        "pick": pick,
        "frontier": frontier,
        "seed": seed,
        "weights": weights,
        "with_positions": with_positions,
    }
    same = {
        "version": __version__,
        "graph": _graph_identity(graph),
        "partition": partition.digest(),
    }
    same |= {"mode": mode, "fanouts": list(fanouts), "sampler": sampler, **options}
    exchange.agree(where, {**same, "weights": _weights_identity(weights)})
    rank_sampler: RankSampler = (
        VanillaSampler(graph, partition, fanouts, exchange, where, **options)
        if mode == "vanilla"
        else build_sampler(sampler, graph, fanouts, where, **options)
    )
    features: RankFeatures = (
        AllFeatures(graph, where)
        if mode == "unpartitioned"
        else OwnFeatures(graph, partition, exchange, where)
    )
    return Rank(mode, graph, partition, rank_sampler, features, exchange, where, len(fanouts))


def _graph_identity(graph: Graph) -> object:
    """Identify a graph without reading it: by the store's checksum, else by its sizes."""
    sizes = (graph.num_nodes, graph.num_edges, graph.feature_dim, graph.train_idx.numel())
    return graph.meta.get("meta_sha256") or sizes


def _weights_identity(weights: Tensor | str | None) -> object:
    """Identify edge weights: by name, or by number and sum."""
    return (weights.numel(), float(weights.sum())) if isinstance(weights, Tensor) else weights
