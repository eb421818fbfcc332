"""Statistics of a graph's sampled batches: sizes, overlap and cache hit rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from pydantic import TypeAdapter
from torch import Tensor

from gnnbench.features.policies.policy import PRESAMPLED, cached_rows, out_degrees, ranked
from gnnbench.features.policies.trace import Trace
from gnnbench.kernels.match import greedy_order, match_degrees, overlaps

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.systems.runtime.runner import SystemRunner

LOOK = 64  # batches of an epoch that are inspected
WINDOW = 8  # batches in a window of Greedy Reorder and of features=window
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.5)  # of cached to all rows, reported for every graph
DEGREE, PRESC = POLICIES = ("degree", "presc#1")


@dataclass(frozen=True)
class Curve:
    """Hit rate of a cache policy at several ratios of cached to all rows."""

    policy: str
    hits: tuple[tuple[float, float], ...]

    def at(self, ratio: float) -> float:
        """Hit rate at a measured ratio. Raises ``KeyError`` for another ratio."""
        return dict(self.hits)[ratio]


@dataclass(frozen=True)
class Facts:
    """Statistics of a graph and of the batches that a setting samples from it.

    - ``batches``: batches of an epoch; a short last batch counts by its share of seeds.
    - ``looked``: inspected batches, over which the following are means.
    - ``rows``, ``edges``: input nodes and edges of a batch.
    - ``kept_drawn``, ``kept_greedy``: share of a batch's rows that the previous batch has, in the
      default order and after Greedy Reorder in windows of ``WINDOW`` batches.
    - ``union``: distinct rows over all rows of such a window.
    - ``match_degree``: mean over all pairs of batches.
    - ``footprint``: distinct rows of all inspected batches.
    - ``ratio``: cacheable share of the rows, limited by the device's memory or by the user; 0 on a
      CPU.
    - ``union_missed``: share of a window's distinct rows missing from a presc#1 cache of ``ratio``.
    """

    graph: str
    nodes: int
    edges_of_graph: int
    mean_degree: float
    most_degree: int
    isolated: float
    row_bytes: int
    batches: float
    looked: int
    rows: float
    edges: float
    footprint: int
    match_degree: float
    kept_drawn: float
    kept_greedy: float
    union: float
    curves: tuple[Curve, ...]
    ratio: float
    union_missed: float

    @property
    def table_bytes(self) -> int:
        """Size of the feature table in bytes."""
        return self.nodes * self.row_bytes

    def hits(self, policy: str) -> float:
        """Hit rate of a cache of ``ratio``. Raises ``KeyError`` for an unknown policy."""
        return {c.policy: c for c in self.curves}[policy].at(self.ratio)


def facts_of(values: object) -> Facts:
    """Invert ``asdict``, also for values that went through JSON."""
    return TypeAdapter(Facts).validate_python(values)


def look(system: SystemRunner, ratio: float = 0.0) -> Facts:
    """Collect the facts of a graph from batches of the sampler of ``system``; nothing is timed."""
    graph, epoch = system.graph, 0
    ids, edges = _sampled(system, epoch)
    before, _ = _sampled(system, PRESAMPLED)
    trace = Trace.record(graph.num_nodes, ids)
    rankings = {
        DEGREE: ranked(out_degrees(graph)),
        PRESC: Trace.record(graph.num_nodes, before).optimal,
    }
    ratios = sorted({*RATIOS, *([ratio] if ratio else [])})
    hit_rates = {
        policy: [hits / max(trace.requests, 1) for hits in trace.hits_at(ranking, ratios)]
        for policy, ranking in rankings.items()
    }
    in_degrees = graph.indptr.diff()
    seeds = system.seeds(epoch)
    return Facts(
        graph=graph.name,
        nodes=graph.num_nodes,
        edges_of_graph=graph.num_edges,
        mean_degree=graph.num_edges / max(graph.num_nodes, 1),
        most_degree=int(in_degrees.max()) if graph.num_nodes else 0,
        isolated=float((in_degrees == 0).double().mean()) if graph.num_nodes else 0.0,
        row_bytes=row_bytes(graph),
        batches=sum(s.numel() for s in seeds) / max(seeds[0].numel(), 1),
        looked=len(ids),
        rows=trace.requests / len(ids),
        edges=sum(edges) / len(edges),
        footprint=int((trace.visits > 0).sum()),
        curves=tuple(
            Curve(policy, tuple(zip(ratios, rates, strict=True)))
            for policy, rates in hit_rates.items()
        ),
        ratio=ratio,
        union_missed=_missed(windows(ids), rankings[PRESC], ratio),
        **shared(ids),
    )


def row_bytes(graph: Graph) -> int:
    """Size of a feature row in bytes."""
    return graph.feature_dim * graph.features.element_size()


def shared(batches: Sequence[Tensor]) -> dict[str, float]:
    """Compute ``match_degree``, ``kept_drawn``, ``kept_greedy`` and ``union`` of :class:`Facts`.

    ``batches`` has the distinct ids ``[n]``, n > 0, of each batch in order. A single batch shares
    nothing.
    """
    overlap = overlaps(batches)
    degrees = match_degrees(overlap)
    order: list[int] = []
    for first in range(0, len(batches), WINDOW):
        window = slice(first, first + WINDOW)
        order += [first + place for place in greedy_order(degrees[window, window])]
    several = torch.ones_like(degrees, dtype=torch.bool).triu(1)
    rows = int(overlap.diagonal().sum())
    distinct = sum(torch.cat(window).unique().numel() for window in windows(batches))
    return {
        "match_degree": float(degrees[several].mean()) if len(batches) > 1 else 0.0,
        "kept_drawn": _kept(overlap, list(range(len(batches)))),
        "kept_greedy": _kept(overlap, order),
        "union": distinct / max(rows, 1),
    }


def windows(batches: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group batches into windows; the last window may be shorter."""
    return [list(batches[at : at + WINDOW]) for at in range(0, len(batches), WINDOW)]


def _kept(overlap: Tensor, order: Sequence[int]) -> float:
    """Share of all rows that the previous batch in an order has; the first batch has none."""
    kept_rows = sum(int(overlap[one, other]) for one, other in pairwise(order))
    return kept_rows / max(int(overlap.diagonal().sum()), 1)


def _missed(groups: Sequence[Sequence[Tensor]], ranking: Tensor, ratio: float) -> float:
    """Share of the groups' distinct ids missing from a cache of the first ids of a ranking."""
    lacking = torch.ones(ranking.numel(), dtype=torch.bool)
    lacking[ranking[: cached_rows(ratio, ranking.numel())]] = False
    unions = [torch.cat(list(group)).unique().long() for group in groups]
    missed = sum(int(lacking[ids].sum()) for ids in unions)
    return missed / max(sum(ids.numel() for ids in unions), 1)


def _sampled(system: SystemRunner, epoch: int) -> tuple[list[Tensor], list[int]]:
    """Input nodes (on the host) and edge counts of an epoch's first ``LOOK`` batches."""
    sampler = system.stages.sampler
    seeds = system.seeds(epoch)[:LOOK]
    sampler.expect(epoch, seeds)
    ids, edges = [], []
    for number, batch_seeds in enumerate(seeds):
        batch = sampler.sample(batch_seeds, epoch, number)
        ids.append(batch.input_nodes.cpu())
        edges.append(batch.sizes().num_edges)
    return ids, edges
