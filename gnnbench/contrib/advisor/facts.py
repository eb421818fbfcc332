"""What a graph's own batches say: their sizes, what they share, what caches would have hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gnnbench.features.policies.policy import PRESAMPLED, cached_rows, out_degrees, ranked
from gnnbench.features.policies.trace import Trace
from gnnbench.kernels.match import greedy_order, match_degrees, overlaps

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.systems.runtime.runner import SystemRunner

LOOK = 64  # batches of an epoch that are looked at
WINDOW = 8  # batches of a window, of Greedy Reorder and of features=window
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.5)  # of a cache, told of
DEGREE, PRESC = POLICIES = ("degree", "presc#1")


@dataclass(frozen=True)
class Curve:
    """Share of the asked rows that caches of a policy find, by ratio of cached to all rows."""

    policy: str
    hits: tuple[tuple[float, float], ...]

    def at(self, ratio: float) -> float:
        """Of a ratio that was looked at. Raises ``KeyError``."""
        return dict(self.hits)[ratio]


@dataclass(frozen=True)
class Facts:
    """Numbers of a graph and of the batches that a setting draws from it.

    ``batches`` are an epoch's, a short last one by its share of seeds, ``looked`` those looked at.
    Means over these: ``rows`` (input nodes) and ``edges`` of a batch; ``kept_drawn`` and
    ``kept_greedy``: share of a batch's rows that the batch before has, in the order as drawn and
    after Greedy Reorder in windows of ``WINDOW``; ``union``: distinct rows over all rows of such a
    window. ``match_degree``: mean over all pairs. ``footprint``: distinct rows of all that were
    looked at. ``union_missed``: share of the distinct rows of a window that a presc#1 cache of
    ``ratio`` lacks; ``ratio`` is what the device's memory (or the user) allows, 0 on a CPU.
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
        """Of all features."""
        return self.nodes * self.row_bytes

    def hits(self, policy: str) -> float:
        """Share of rows that a cache of ``ratio`` finds. Raises ``KeyError``."""
        return {c.policy: c for c in self.curves}[policy].at(self.ratio)


def facts_of(values: dict[str, Any]) -> Facts:
    """Inverse of ``asdict``, also of what went through JSON."""
    curves = tuple(Curve(c["policy"], tuple(map(tuple, c["hits"]))) for c in values["curves"])
    return Facts(**{**values, "curves": curves})


def look(system: SystemRunner, ratio: float = 0.0) -> Facts:
    """Facts of a graph by the batches of ``system``, whose sampler draws; nothing is timed."""
    graph, epoch = system.graph, 0
    ids, edges = _drawn(system, epoch)
    before, _ = _drawn(system, PRESAMPLED)
    trace = Trace.record(graph.num_nodes, ids)
    known = {
        DEGREE: ranked(out_degrees(graph)),
        PRESC: Trace.record(graph.num_nodes, before).optimal,
    }
    ratios = sorted({*RATIOS, *([ratio] if ratio else [])})
    shares = {
        policy: [hits / max(trace.requests, 1) for hits in trace.hits_at(ranking, ratios)]
        for policy, ranking in known.items()
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
            Curve(policy, tuple(zip(ratios, found, strict=True)))
            for policy, found in shares.items()
        ),
        ratio=ratio,
        union_missed=_missed(windows(ids), known[PRESC], ratio),
        **shared(ids),
    )


def row_bytes(graph: Graph) -> int:
    """Bytes of a feature row."""
    return graph.feature_dim * graph.features.element_size()


def shared(batches: Sequence[Tensor]) -> dict[str, float]:
    """``match_degree``, ``kept_drawn``, ``kept_greedy`` and ``union`` of batches in their order.

    ``batches``: ids, distinct in each, not empty. Of one batch nothing is shared.
    """
    both = overlaps(batches)
    degrees = match_degrees(both)
    order: list[int] = []
    for first in range(0, len(batches), WINDOW):
        window = slice(first, first + WINDOW)
        order += [first + place for place in greedy_order(degrees[window, window])]
    several = torch.ones_like(degrees, dtype=torch.bool).triu(1)
    rows = int(both.diagonal().sum())
    distinct = sum(torch.cat(window).unique().numel() for window in windows(batches))
    return {
        "match_degree": float(degrees[several].mean()) if len(batches) > 1 else 0.0,
        "kept_drawn": _kept(both, list(range(len(batches)))),
        "kept_greedy": _kept(both, order),
        "union": distinct / max(rows, 1),
    }


def windows(batches: Sequence[Tensor]) -> list[list[Tensor]]:
    """Batches by window, the last one possibly short."""
    return [list(batches[at : at + WINDOW]) for at in range(0, len(batches), WINDOW)]


def _kept(both: Tensor, order: Sequence[int]) -> float:
    """Rows that the batch before has over all rows, in an order; the first finds nothing."""
    found = sum(int(both[one, other]) for one, other in pairwise(order))
    return found / max(int(both.diagonal().sum()), 1)


def _missed(groups: Sequence[Sequence[Tensor]], ranking: Tensor, ratio: float) -> float:
    """Share of the groups' distinct ids that are not among the first of a ranking."""
    lacking = torch.ones(ranking.numel(), dtype=torch.bool)
    lacking[ranking[: cached_rows(ratio, ranking.numel())]] = False
    unions = [torch.cat(list(group)).unique().long() for group in groups]
    missed = sum(int(lacking[ids].sum()) for ids in unions)
    return missed / max(sum(ids.numel() for ids in unions), 1)


def _drawn(system: SystemRunner, epoch: int) -> tuple[list[Tensor], list[int]]:
    """Input nodes of an epoch's first batches on the host, and their edges."""
    sampler = system.stages.sampler
    seeds = system.seeds(epoch)[:LOOK]
    sampler.expect(epoch, seeds)
    ids, edges = [], []
    for number, some in enumerate(seeds):
        batch = sampler.sample(some, epoch, number)
        ids.append(batch.input_nodes.cpu())
        edges.append(batch.sizes().num_edges)
    return ids, edges
