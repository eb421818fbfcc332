"""Cache policies. Static policies rank all nodes; a cache of k rows has the first k.

Ties are broken by id, so a ranking is equal on every machine.
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
LEGAL = (
    "degree, random, presc#K (K epochs of pre-sampling, as presc#1), optimal, optimal#K (for K"
    " epochs together, as optimal#10) or sieve"
)
# The first epoch of pre-sampling; timed epochs have smaller numbers.
PRESAMPLED = 2**32
PROBED = 2**33  # the epoch whose memory peak is measured before timing
CHUNK = 1 << 24  # least number of edges counted at a time

Footprint = Callable[[int], "Iterable[Tensor]"]  # epoch number -> input nodes by batch


@dataclass(frozen=True)
class Policy:
    """A policy by name; ``epochs`` is K of ``presc#K`` and ``optimal#K``, 0 for others."""

    name: str
    epochs: int = 0

    @classmethod
    def named(cls, text: str) -> Policy:
        """Parse ``degree``, ``random``, ``presc#K``, ``optimal``, ``optimal#K`` or ``sieve``.

        Raises ``UsageError`` for other texts, ``optimal#1`` among them: it is ``optimal``.
        """
        if text in (DEGREE, RANDOM, OPTIMAL, SIEVE):
            return cls(text)
        pattern = f"({PRESC}|{OPTIMAL})#([1-9][0-9]*)"
        match = re.fullmatch(pattern, text) if isinstance(text, str) else None
        if match is None or match[0] == f"{OPTIMAL}#1":
            raise UsageError(f"there is no cache policy '{text}'; it is {LEGAL}")
        return cls(match[1], int(match[2]))

    @property
    def text(self) -> str:
        """The policy as text."""
        return f"{self.name}#{self.epochs}" if self.epochs else self.name

    @property
    def presampled(self) -> range:
        """Numbers of the pre-sampled epochs; none of them is timed."""
        return range(PRESAMPLED, PRESAMPLED + (self.epochs if self.name == PRESC else 0))

    @property
    def foreseen(self) -> int:
        """Number of measured epochs that an oracle is filled for at once; 0 for no oracle."""
        return max(1, self.epochs) if self.name == OPTIMAL else 0


def out_degrees(graph: Graph, device: torch.device | None = None) -> Tensor:
    """Out-degree of each node, int64 ``[num_nodes]`` on ``device`` (default: the host).

    Parallel edges count each time. Sampling goes from a node to its in-neighbours, so nodes of high
    out-degree are visited often; GNNLab's "Degree" and PaGraph rank by it.
    """
    import torch

    degrees = torch.zeros(graph.num_nodes, dtype=torch.int64, device=device)
    if degrees.is_cuda:
        for edges in graph.indices.split(CHUNK):
            degrees.index_add_(0, edges.to(device), degrees.new_ones(edges.numel()))
        return degrees
    # Each count takes O(num_nodes): smaller chunks would be dominated by it.
    for edges in graph.indices.split(max(CHUNK, graph.num_nodes)):
        degrees += torch.bincount(edges, minlength=graph.num_nodes)
    return degrees


def visits(num_nodes: int, batches: Iterable[Tensor], device: torch.device | None = None) -> Tensor:
    """Number of ``batches`` that contain each node, int64 ``[num_nodes]`` on ``device`` (default:
    the host).

    ``batches`` are ids on any device, distinct in each batch.
    """
    import torch

    counts = torch.zeros(num_nodes, dtype=torch.int64, device=device)
    for batch in batches:
        ids = batch.to(counts.device).long()
        counts.index_add_(0, ids, torch.ones_like(ids))
    return counts


def ranked(hotness: Tensor) -> Tensor:
    """Nodes by descending hotness, int64 ``[num_nodes]``, ties by ascending id.

    The result is on the device of ``hotness``, which is at least 0. Nodes of hotness 0, most of a
    large graph, are not sorted.
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
    device: torch.device | None = None,
) -> Tensor | None:
    """Hotness of nodes by a policy, int64 ``[num_nodes]`` on ``device``; None for ``random``.

    ``presc#K`` counts visits in K pre-sampled epochs (GNNLab, EuroSys 2022, section 6.3).
    ``optimal`` and ``optimal#K`` count visits in the measured ``epochs``; with all of a training,
    that is GNNLab's optimal policy (footnote 4).
    """
    if policy.name == RANDOM:
        return None
    if policy.name == DEGREE:
        return out_degrees(graph, device)
    numbers = epochs if policy.name == OPTIMAL else policy.presampled
    return visits(graph.num_nodes, (i for epoch in numbers for i in footprint(epoch)), device)


def ranking(counted: Tensor | None, num_nodes: int, seed: int) -> Tensor:
    """All nodes in caching order, int64 ``[num_nodes]``.

    ``counted`` is the policy's hotness; the result is on its device. None (``random``): a
    permutation by ``seed``, on the host.
    """
    if counted is not None:
        return ranked(counted)
    return rng.permutation(num_nodes, rng.key(seed, 0, "cache"))


def cached_rows(ratio: float, num_nodes: int) -> int:
    """Rows of a cache of ``ratio`` of all nodes, to the nearest whole row (a half to even)."""
    return round(ratio * num_nodes)
