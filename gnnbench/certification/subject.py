"""A sampler to certify: how its batches are drawn, and what it offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch
from gnnbench.datasets.graph import Graph
from gnnbench.validation.law import BY_WEIGHT, WALK, WITH, WITHOUT, Law

SUCCESSIVE = "weighted-without-replacement"
LAWS = (WITHOUT, WITH, BY_WEIGHT, SUCCESSIVE, WALK)
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Request:
    """What is drawn: ``pick`` is one of ``Subject.picks``; ``seed`` None keeps the random state of
    the process."""

    graph: Graph
    fanouts: tuple[int, ...]
    law: str = WITHOUT
    pick: str = ""
    seed: int | None = 0
    batch_size: int = 1024


class Drawer(ABC):
    """A sampler that is built for one request.

    ``own_order``: it orders the seeds of a batch itself and reports this order in ``Batch.seeds``,
    by which labels are taken.
    """

    frontier: str
    own_order: bool = False

    @abstractmethod
    def draw(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Draw a batch for ``seeds`` int64 ``[n]``; its hops must have positions, or visits.

        Raises ``gnnbench.core.fault.Fault`` for a batch that cannot be read.
        """

    def seed_order(self, seeds: Tensor, batch: Batch) -> Tensor:
        """Return the order in which a batch for ``seeds`` must have them, int64 ``[n]``.

        That is the requested order. With ``own_order`` it is the reported one, if that is a
        permutation of the requested seeds.
        """
        reported, requested = (ids.cpu().long() for ids in (batch.seeds, seeds))
        permuted = torch.equal(reported.sort().values, requested.sort().values)
        return reported if self.own_order and permuted else requested

    def close(self) -> None:  # noqa: B027
        """Free all resources."""


@dataclass(frozen=True)
class Snippet:
    """Python source that draws with the sampler without gnnbench where possible.

    ``setup`` defines ``draw(seeds)``, which returns lists of (destination, source, edge id) by hop.
    It may use ``indptr``, ``indices``, ``fanouts``, ``weights`` and ``seed``, which stand above it.
    """

    setup: str


class Subject(ABC):
    """A sampler of some version on a device, with its options.

    ``packages`` has the versions that its certificate is about; ``version`` joins them.
    """

    name: str
    device: str = "cpu"
    options: Mapping[str, object]
    packages: Mapping[str, str]

    @property
    def version(self) -> str:
        """The version of the first package."""
        return next(iter(self.packages.values()), "")

    @property
    def stage(self) -> str:
        """Name of the sampler in a recipe."""
        return self.name

    @property
    def settings(self) -> Mapping[str, object]:
        """All options, defaults resolved."""
        return self.options

    @abstractmethod
    def picks(self, law: str) -> tuple[str, ...]:
        """Names of the picks with a law of ``LAWS``; empty if the sampler does not offer it."""

    def reason(self, law: str) -> str:
        """Why the sampler has no pick of a law."""
        return "the sampler has no such option"

    @abstractmethod
    def build(self, request: Request) -> Drawer:
        """Build the sampler, seeded with the request's seed."""

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """Draw with loader processes; or the reason why the sampler has none."""
        return "no loader with worker processes is tested"

    def rank_command(self) -> Sequence[str] | str:
        """Arguments of ``gnnbench.certification.rank`` that build the sampler again, or the reason
        why it cannot be built in another process."""
        return "the sampler cannot be built in another process"

    def walks(self) -> WalkDraws | str:
        """The random walks that return whole traces, or the reason why there are none."""
        return "the sampler returns no traces of walks"

    def temporal(self) -> Temporal | str:
        """The temporal sampler, or the reason why there is none."""
        return "the sampler has no temporal option"

    def all_neighbours(self) -> str:
        """ "" if fanout -1 takes all neighbours, else the reason why not."""
        return ""

    def pair_program(self, name: str) -> str:
        """A program that shows a failure of ``workers``, ``worker_epochs``, ``ranks``, ``rows``,
        ``hops`` or ``seed``; or ""."""
        return ""

    def snippet(self, request: Request) -> Snippet | None:
        """The source that draws this request, or None."""
        return None


WorkerDraws = Callable[[int, int], "list[list[Ids]]"]
"""Draws (epochs, batches) with two worker processes and returns positions by epoch and batch.

Each array int64 ``[seeds]`` has the position of the one edge that each seed drew at fanout 1.
"""


WalkDraws = Callable[[Graph, int, int], Callable[[Tensor], Tensor]]
"""Builds random walks on (graph, length, seed). They take nodes int64 ``[n]`` and return the nodes
visited, int64 ``[n, length + 1]``, the start first; each step goes to an in-neighbour."""


@dataclass(frozen=True)
class TemporalDraw:
    """Edges of one batch: int64 ``[e]`` each, the seed that an edge was drawn for, its destination,
    and its position in ``indices``."""

    seed: Ids
    dst: Ids
    position: Ids


Temporal = Callable[[Graph, Ids, Sequence[int], Tensor, Tensor], Callable[[], TemporalDraw]]
"""Builds a temporal sampler of (graph, times of edges int64 ``[num_edges]``, fanouts, seeds, times
of seeds), which is called once per batch."""


def law_of(request: Request) -> Law:
    """Return the counts that a request's law states, and which edges have weight.

    Sampling without replacement by weights takes min(fanout, edges with weight) edges.
    """
    graph = request.graph
    if request.law in (BY_WEIGHT, SUCCESSIVE):
        law = Law.of("weighted_prefix", graph.indptr, graph.weights)
        if request.law == BY_WEIGHT:
            return law
        assert law.weighs is not None
        edges = law.weighs.long().cumsum(0)
        before = edges.new_zeros(edges.numel() + 1)
        before[1:] = edges
        return Law(WITHOUT, before[graph.indptr].diff(), law.weighs)
    degree = graph.indptr.diff()
    return Law(request.law, degree)
