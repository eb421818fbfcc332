"""A correct sampler in plain torch, and faults of a given size to plant in it.

Tests and ``experiment.py`` certify it: every property has a fault that breaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from gnnbench.certification.laws import row_of
from gnnbench.certification.subject import (
    SUCCESSIVE,
    Drawer,
    Ids,
    Request,
    Subject,
    Temporal,
    TemporalDraw,
    WalkDraws,
    WorkerDraws,
)
from gnnbench.core.fanouts import ALL
from gnnbench.core.minibatch import MiniBatch
from gnnbench.datasets.graph import Graph
from gnnbench.sampling.blocks import BlockBuilder
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

FAULTS = {  # name: what ``size`` is, the property that it breaks
    "first_edge": ("odds of a row's first edge", "subsets"),
    "first_half": ("odds of a row's first half", "inclusion"),
    "tilt": ("b of odds 1 + b cos(pi place)", "scores"),
    "duplicates": ("share of rows with an edge drawn twice", "distinct"),
    "fake_edges": ("share of edges with another source", "edges"),
    "edge_ids": ("share of edges with the next edge's id", "edge_ids"),
    "fewer_edges": ("share of edges lost from the second call on", "counts"),
    "lost_neighbours": ("share of edges lost at fanout -1", "all_neighbours"),
    "seeds_last": ("share of batches with two seeds swapped", "seeds_first"),
    "local_ids": ("share of batches with two local ids swapped", "local_ids"),
    "replaced": ("share of rows drawn without replacement instead of with", "replacement"),
    "ignored_weights": ("share of rows drawn without their weights", "weighted"),
    "rows": ("share of rows that copy the row before", "rows"),
    "batches": ("share of rows that copy the batch before", "batches"),
    "epochs": ("share of rows that copy the epoch before", "epochs"),
    "hops": ("share of rows that copy the hop before", "hops"),
    "workers": ("share of rows that copy the other worker", "workers"),
    "worker_epochs": ("share of rows that copy the worker's epoch before", "worker_epochs"),
    "ignored_seed": ("1: the seed is ignored", "new_seed"),
    "unseeded": ("1: random state that no seed sets", "seed"),
    "walks": ("odds of a step to the first neighbour", "walks"),
    "late_edges": ("share of seeds whose time is ignored", "time"),
    "uneven_time": ("odds of the first early edge", "time"),
}


@dataclass
class PlantedSubject(Subject):
    """The sampler with one fault of ``FAULTS``, or none (``""``), of a ``size``.

    ``base`` is added to every seed, so that certificates are independent of each other.
    """

    fault: str = ""
    size: float = 0.0
    base: int = 0
    name: str = "planted"
    device: str = "cpu"
    options: Mapping[str, object] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=lambda: {"planted": "1"})

    def picks(self, law: str) -> tuple[str, ...]:
        """One pick for each law of rows."""
        return ("planted",) if law in (WITHOUT, WITH, BY_WEIGHT, SUCCESSIVE) else ()

    def build(self, request: Request) -> Drawer:
        """Build the sampler."""
        return PlantedDrawer(self, request)

    def chance(self, fault: str) -> float:
        """Size of a fault if it is the one planted, else 0."""
        return self.size if fault == self.fault else 0.0

    def odds(self, fault: str) -> float:
        """Size of a fault if it is the one planted, else 1."""
        return self.size if fault == self.fault else 1.0

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """Draws as from two processes."""
        random = torch.Generator().manual_seed(self.base + 77)
        graph = request.graph
        start, degree = graph.indptr[seeds], graph.indptr[seeds + 1] - graph.indptr[seeds]

        def draw(epochs: int, batches: int) -> list[list[Ids]]:
            drawn: list[list[Tensor]] = []
            for epoch in range(epochs):
                drawn.append([])
                for number in range(batches):
                    new = start + (torch.rand(len(seeds), generator=random) * degree).long()
                    coin = torch.rand(len(seeds), generator=random)
                    if number % 2:
                        new = torch.where(coin < self.chance("workers"), drawn[-1][-1], new)
                    if epoch:
                        copied = coin < self.chance("worker_epochs")
                        new = torch.where(copied, drawn[-2][number], new)
                    drawn[-1].append(new)
            return [[x.numpy() for x in epoch] for epoch in drawn]

        return draw

    def walks(self) -> WalkDraws | str:
        """Walks step by step."""

        def build(graph: Graph, length: int, seed: int) -> Callable[[Tensor], Tensor]:
            random = torch.Generator().manual_seed(self.base + seed)

            def draw(nodes: Tensor) -> Tensor:
                trace = [nodes]
                for _ in range(length):
                    trace.append(self._step(graph, trace[-1], random))
                return torch.stack(trace, dim=1)

            return draw

        return build

    def _step(self, graph: Graph, nodes: Tensor, random: torch.Generator) -> Tensor:
        picks = torch.empty_like(nodes)
        for node in nodes.unique().tolist():
            row, at = torch.tensor(row_of(graph, node)), nodes == node
            weights = torch.ones(row.numel(), dtype=torch.float64)
            weights[0] = self.odds("walks")
            chosen = torch.multinomial(weights, int(at.sum()), True, generator=random)
            picks[at] = row[chosen]
        return picks

    def temporal(self) -> Temporal | str:
        """A temporal sampler of one hop."""

        def build(
            graph: Graph, times: Ids, fanouts: Sequence[int], seeds: Tensor, seed_times: Tensor
        ) -> Callable[[], TemporalDraw]:
            random = torch.Generator().manual_seed(self.base + 99)

            def draw() -> TemporalDraw:
                owner, position = _edges(graph, seeds)
                coin = torch.rand(seeds.numel(), generator=random)
                early = torch.from_numpy(times)[position] <= seed_times[owner]
                early |= (coin < self.chance("late_edges"))[owner]
                owner, position = owner[early], position[early]
                weights = torch.ones(owner.numel(), dtype=torch.float64)
                first = position == graph.indptr[seeds[owner]]
                weights[first] = self.odds("uneven_time")
                chosen = _without(owner, weights, fanouts[0], random)
                owner, position = owner[chosen], position[chosen]
                return TemporalDraw(owner.numpy(), seeds[owner].numpy(), position.numpy())

            return draw

        return build


def _edges(graph: Graph, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Index of the row and position of each in-edge of ``nodes`` int64 ``[n]``."""
    start = graph.indptr[nodes]
    degree = graph.indptr[nodes + 1] - start
    owner = torch.arange(nodes.numel()).repeat_interleave(degree)
    before = degree.cumsum(0) - degree
    return owner, torch.arange(owner.numel()) + (start - before)[owner]


def _without(owner: Tensor, weights: Tensor, fanout: int, random: torch.Generator) -> Tensor:
    """Indices of at most ``fanout`` edges of each row, taken successively by weight: the smallest
    exponential variables (Efraimidis and Spirakis, Inf. Process. Lett. 97, 2006)."""
    keys = torch.empty(owner.numel(), dtype=torch.float64).exponential_(generator=random) / weights
    order = np.lexsort((keys.numpy(), owner.numpy()))
    rows = owner.numpy()[order]
    rank = np.arange(rows.size) - np.searchsorted(rows, rows)
    kept = (rank < fanout) & np.isfinite(keys.numpy()[order])
    return torch.from_numpy(order[kept])


def _with(
    owner: Tensor, weights: Tensor, rows: int, fanout: int, random: torch.Generator
) -> Tensor:
    """Indices of ``fanout`` independent picks of each row with weight, by weight."""
    total = torch.zeros(rows, dtype=torch.float64).index_add_(0, owner, weights)
    usable = (total > 0).nonzero()[:, 0].repeat_interleave(fanout)
    ends = weights.cumsum(0)
    before = torch.zeros(rows, dtype=torch.float64)
    before[1:] = total.cumsum(0)[:-1]
    drawn = torch.rand(usable.numel(), generator=random, dtype=torch.float64)
    return torch.searchsorted(ends, before[usable] + drawn * total[usable], right=True)


class PlantedDrawer(Drawer):
    """Draws batches of a planted sampler."""

    frontier = "cumulative"

    def __init__(self, subject: PlantedSubject, request: Request) -> None:
        self._subject, self._request = subject, request
        seed = subject.base + (0 if subject.fault == "ignored_seed" else request.seed or 0)
        self._random = torch.Generator().manual_seed(seed)
        if subject.fault == "unseeded":
            self._random.seed()
        self._call = -1
        self._places: dict[tuple[int, int], Tensor] = {}  # by epoch and batch: place by node
        self._met = torch.full((request.graph.num_nodes,), -1)

    def draw(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """Draw hop by hop."""
        self._call += 1
        building = BlockBuilder(seeds, self.frontier)
        for hop, fanout in enumerate(self._request.fanouts):
            counts, positions = self._pick(building.destinations, fanout, hop, epoch, number)
            sources = self._request.graph.indices[positions].long()
            if fakes := self._subject.chance("fake_edges"):
                fake = torch.rand(sources.numel(), generator=self._random) < fakes
                sources = torch.where(fake, (sources + 1) % self._request.graph.num_nodes, sources)
            if wrong := self._subject.chance("edge_ids"):
                other = torch.rand(sources.numel(), generator=self._random) < wrong
                positions = torch.where(other, positions + 1, positions)
            building.add(counts, sources, positions)
        return self._broken(building.batch())

    def _coin(self, fault: str) -> bool:
        size = self._subject.chance(fault)
        return size > 0 and float(torch.rand((), generator=self._random)) < size

    def _broken(self, batch: MiniBatch) -> MiniBatch:
        """The batch, with its nodes in another order where such a fault is planted."""
        first = batch.blocks[0]
        if self._coin("local_ids") and first.num_src > 1 and first.num_edges:
            indices = first.indices.clone()
            indices[0] = (indices[0] + 1) % first.num_src
            batch.blocks[0] = replace(first, indices=indices)
        if self._coin("seeds_last") and batch.seeds.numel() > 1:
            order = torch.arange(first.num_src)
            order[:2] = torch.tensor([1, 0])
            batch.blocks[0] = replace(first, src_nodes=first.src_nodes[order])
        return batch

    def _pick(
        self, nodes: Tensor, fanout: int, hop: int, epoch: int, number: int
    ) -> tuple[Tensor, Tensor]:
        """Counts of each node and positions of its picks."""
        graph, law, subject = self._request.graph, self._request.law, self._subject
        owner, position = _edges(graph, nodes)
        rows = nodes.numel()
        weights = torch.ones(owner.numel(), dtype=torch.float64)
        if graph.weights is not None:
            coin = torch.rand(rows, generator=self._random)[owner]
            ignored = coin < subject.chance("ignored_weights")
            weights = torch.where(ignored, weights, graph.weights[position].double())
        if fanout == ALL:
            kept = torch.rand(owner.numel(), generator=self._random)
            chosen = (kept >= subject.chance("lost_neighbours")).nonzero()[:, 0]
        else:
            weights = weights * self._bias(nodes, owner, position)
            weights = self._forced(weights, nodes, owner, position, hop, epoch, number)
            if law in (WITH, BY_WEIGHT):
                chosen = _with(owner, weights, rows, fanout, self._random)
                if self._coin("replaced"):
                    chosen = _without(owner, weights, fanout, self._random)
            else:
                chosen = _without(owner, weights, fanout, self._random)
            chosen = self._lost(chosen, owner)
        self._remember(nodes, owner[chosen], position[chosen], hop, epoch, number)
        counts = torch.bincount(owner[chosen], minlength=rows)
        return counts, position[chosen]

    def _lost(self, chosen: Tensor, owner: Tensor) -> Tensor:
        """Edges drawn twice, or lost from the second call on."""
        if self._subject.fault == "duplicates":
            again = torch.rand(chosen.numel(), generator=self._random) < self._subject.size
            again[1:] &= owner[chosen][1:] == owner[chosen][:-1]
            again[:1] = False
            return torch.where(again, chosen.roll(1), chosen)
        if self._subject.fault == "fewer_edges" and self._call:
            return chosen[torch.rand(chosen.numel(), generator=self._random) >= self._subject.size]
        return chosen

    def _bias(self, nodes: Tensor, owner: Tensor, position: Tensor) -> Tensor:
        """Odds of every edge."""
        graph, subject = self._request.graph, self._subject
        start = graph.indptr[nodes][owner]
        degree = graph.indptr[nodes + 1][owner] - start
        place = position - start
        odds = torch.ones(owner.numel(), dtype=torch.float64)
        odds[place == 0] *= subject.odds("first_edge")
        odds[2 * place < degree] *= subject.odds("first_half")
        tilt = torch.cos(torch.pi * (place + 0.5) / degree)
        return odds * (1 + subject.chance("tilt") * tilt)

    def _forced(
        self,
        weights: Tensor,
        nodes: Tensor,
        owner: Tensor,
        position: Tensor,
        hop: int,
        epoch: int,
        number: int,
    ) -> Tensor:
        """Weights that make a share of the rows pick the place of another draw."""
        fault, graph = self._subject.fault, self._request.graph
        if fault == "hops" and hop:
            wanted = self._met[nodes]
        elif fault == "batches" and (epoch, number - 1) in self._places and not hop:
            wanted = self._places[epoch, number - 1][nodes]
        elif fault == "epochs" and (epoch - 1, number) in self._places and not hop:
            wanted = self._places[epoch - 1, number][nodes]
        elif fault == "rows":
            wanted = self._of_neighbour(nodes)
        else:
            return weights
        coin = torch.rand(nodes.numel(), generator=self._random)
        if fault == "rows":
            coin = coin[: (nodes.numel() + 1) // 2].repeat_interleave(2)[: nodes.numel()]
        wanted = torch.where(coin < self._subject.size, wanted, -1)
        forced = position - graph.indptr[nodes][owner] == wanted[owner]
        return torch.where(forced, 1e12, weights)

    def _of_neighbour(self, nodes: Tensor) -> Tensor:
        """A place of its own for every two rows, which the first row draws as well."""
        degree = (self._request.graph.indptr[nodes + 1] - self._request.graph.indptr[nodes]).clamp(
            1
        )
        pair = torch.rand((nodes.numel() + 1) // 2, generator=self._random)
        return (pair.repeat_interleave(2)[: nodes.numel()] * degree).long()

    def _remember(
        self, nodes: Tensor, owner: Tensor, position: Tensor, hop: int, epoch: int, number: int
    ) -> None:
        if self._subject.fault not in ("hops", "batches", "epochs"):
            return
        graph = self._request.graph
        place = position - graph.indptr[nodes][owner]
        if not hop:
            self._met.fill_(-1)
            self._met[graph.indices[position].long()] = place
            by_node = torch.full((graph.num_nodes,), -1)
            by_node[nodes[owner]] = place
            self._places[epoch, number] = by_node
