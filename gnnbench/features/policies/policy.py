"""Policies of a cache. Those of a static one rank all nodes: a cache of k rows holds the first k.

Ties are broken by id, so that a ranking is the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gnnbench.core.errors import UsageError
from gnnbench.kernels import rng

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    import torch
    from torch import Tensor

    from gnnbench.datasets.graph import Graph

DEGREE, RANDOM, PRESC, OPTIMAL, SIEVE = "degree", "random", "presc", "optimal", "sieve"
LEGAL = "degree, random, presc#K (K epochs of pre-sampling, as presc#1), optimal or sieve"
# The first epoch of pre-sampling; a harness numbers the epochs that it times below.
PRESAMPLED = 2**32
PROBED = 2**33  # the epoch whose peak of memory is measured before anything is timed
CHUNK = 1 << 24  # edges of which degrees are counted at a time, at least

Footprint = Callable[[int], "Iterable[Tensor]"]  # an epoch's number to each batch's input nodes


@dataclass(frozen=True)
class Policy:
    """A policy by its name; ``epochs`` is presc's K and 0 of any other."""

    name: str
    epochs: int = 0

    @classmethod
    def named(cls, text: str) -> Policy:
        """``degree``, ``random``, ``presc#K``, ``optimal`` or ``sieve``. Raises ``UsageError``."""
        if text in (DEGREE, RANDOM, OPTIMAL, SIEVE):
            return cls(text)
        found = re.fullmatch(f"{PRESC}#([1-9][0-9]*)", text) if isinstance(text, str) else None
        if found is None:
            raise UsageError(f"there is no cache policy '{text}'; it is {LEGAL}")
        return cls(PRESC, int(found[1]))

    @property
    def text(self) -> str:
        """As it is typed."""
        return f"{self.name}#{self.epochs}" if self.epochs else self.name

    @property
    def presampled(self) -> range:
        """Numbers of the epochs that are pre-sampled: none of them is timed."""
        return range(PRESAMPLED, PRESAMPLED + self.epochs)


def out_degrees(graph: Graph, place: torch.device | None = None) -> Tensor:
    """In how many nodes' in-neighbours each node stands, int64 ``[num_nodes]`` at ``place``, by
    itself the host.

    A parallel edge counts each time. Sampling walks from a node to its in-neighbours, so a node of
    high out-degree is the one met often: what GNNLab's "Degree" and PaGraph rank by.
    """
    import torch

    found = torch.zeros(graph.num_nodes, dtype=torch.int64, device=place)
    if found.is_cuda:
        for edges in graph.indices.split(CHUNK):
            found.index_add_(0, edges.to(found.device), found.new_ones(edges.numel()))
        return found
    # Each count goes through all nodes: by fewer edges at a time that would be most of the work.
    for edges in graph.indices.split(max(CHUNK, graph.num_nodes)):
        found += torch.bincount(edges, minlength=graph.num_nodes)
    return found


def visits(num_nodes: int, batches: Iterable[Tensor], place: torch.device | None = None) -> Tensor:
    """How many of ``batches`` each node is an input node of, int64 ``[num_nodes]`` at ``place``, by
    itself the host.

    ``batches`` are ids on any device, distinct in each.
    """
    import torch

    found = torch.zeros(num_nodes, dtype=torch.int64, device=place)
    for ids in batches:
        here = ids.to(found.device).long()
        found.index_add_(0, here, torch.ones_like(here))
    return found


def ranked(hotness: Tensor) -> Tensor:
    """Nodes by falling hotness, int64 ``[num_nodes]``; of equals the lower id comes first.

    It is where ``hotness`` is, which is at least 0. Nodes that are not hot at all are not sorted:
    most of a large graph.
    """
    import torch

    hot = torch.nonzero(hotness).squeeze(1)
    order = torch.sort(hotness[hot], descending=True, stable=True).indices
    return torch.cat([hot[order], torch.nonzero(hotness == 0).squeeze(1)])


def hotness(
    policy: Policy,
    graph: Graph,
    footprint: Footprint,
    epochs: Iterable[int] = (),
    place: torch.device | None = None,
) -> Tensor | None:
    """What a policy ranks by, int64 ``[num_nodes]`` at ``place``; None of ``random``.

    ``presc#K`` counts visits in K epochs of its own (GNNLab, EuroSys 2022, section 6.3);
    ``optimal`` those in ``epochs``, the very ones that are measured.
    """
    if policy.name == RANDOM:
        return None
    if policy.name == DEGREE:
        return out_degrees(graph, place)
    numbers = epochs if policy.name == OPTIMAL else policy.presampled
    return visits(graph.num_nodes, (i for epoch in numbers for i in footprint(epoch)), place)


def ranking(counted: Tensor | None, num_nodes: int, seed: int) -> Tensor:
    """All nodes in the order in which a policy caches them, int64 ``[num_nodes]``.

    ``counted`` is the policy's hotness, and the order is where it is; without one ``seed`` decides
    (``random``), on the host.
    """
    if counted is not None:
        return ranked(counted)
    return rng.permutation(num_nodes, rng.key(seed, 0, "cache"))


def cached_rows(ratio: float, num_nodes: int) -> int:
    """Rows of a cache of ``ratio`` of all nodes, to the nearest whole row (a half to even)."""
    return round(ratio * num_nodes)
