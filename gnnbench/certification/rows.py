"""Tables of what was drawn of rows: outcomes of small rows, and picks by place of long ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from gnnbench.certification.inputs import Input
from gnnbench.certification.laws import Outcomes, favoured, outcomes
from gnnbench.certification.subject import Ids, Request, Subject
from gnnbench.core.minibatch import Hop
from gnnbench.datasets.graph import Graph
from gnnbench.validation.law import WITHOUT
from gnnbench.validation.multinomial import (
    Floats,
    detectable_divergence,
    divergence,
    log_evidence,
)

BINS = 32  # equal parts of a long row
LARGEST_ODDS = 1e6


@dataclass
class Table:
    """Counts of one kind of row, int64 ``[k]``, and their probabilities float64 ``[k]``.

    ``known``: the outcomes, of small rows; ``bins``: the parts of a long row. ``draws``: rows.
    ``seeds``: one seed whose row is of this kind; ``calls``: batches.
    """

    request: Request
    degree: int
    fanout: int
    hop: int
    law: Floats
    known: Outcomes | None = None
    seed: int = 0
    counts: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    draws: int = 0

    @property
    def log_evidence(self) -> float:
        """Logarithm of the evidence against the law."""
        return log_evidence(self.counts, self.law)

    def smallest_odds(self, level: float) -> float:
        """Odds of the first edge (small rows) or of the first half (long rows), relative to the
        others, that this many draws reveal with 90 % power at ``level``."""
        total = int(self.counts.sum())
        if total == 0:
            return math.inf
        needed = detectable_divergence(int((self.law > 0).sum()), total, level)
        low, high = 1.0, LARGEST_ODDS
        if divergence(self._favoured(high), self.law[self.law > 0]) < needed:
            return math.inf
        for _ in range(60):
            middle = math.sqrt(low * high)
            if divergence(self._favoured(middle), self.law[self.law > 0]) < needed:
                low = middle
            else:
                high = middle
        return high

    def _favoured(self, odds: float) -> Floats:
        if self.known is not None:
            return favoured(self.known, odds)[self.known.law > 0]
        q = self.law.copy()
        q[: q.size // 2] *= odds
        return q / q.sum()


@dataclass(frozen=True)
class Drawn:
    """Rows of one hop: nodes, degrees and numbers of picks int64 ``[n]``; the index of each edge's
    row and the place of the edge in it, int64 ``[e]``."""

    nodes: Ids
    degrees: Ids
    counts: Ids
    owner: Ids
    places: Ids

    @classmethod
    def of(cls, graph: Graph, hop: Hop) -> Drawn:
        """Read a hop with positions; edges of other destinations are left out."""
        nodes = np.unique(hop.dst)
        indptr = graph.indptr.numpy()
        assert hop.positions is not None
        at = np.searchsorted(nodes, hop.edge_dst).clip(max=max(nodes.size - 1, 0))
        real = nodes[at] == hop.edge_dst if nodes.size else np.zeros(0, dtype=bool)
        owner = at[real]
        places = hop.positions[real] - indptr[hop.edge_dst[real]]
        counts = np.bincount(owner, minlength=nodes.size)
        return cls(nodes, indptr[nodes + 1] - indptr[nodes], counts, owner, places)

    def codes(self, base: int) -> Ids:
        """The code of each row's picks, int64 ``[n]``; see ``Outcomes``."""
        powers = float(base) ** np.clip(self.places, 0, 52)
        return np.bincount(self.owner, powers, minlength=self.nodes.size).astype(np.int64)


def hops_of(subject: Subject, request: Request, seeds: Tensor, calls: int) -> Iterator[list[Hop]]:
    """Yield the hops of ``calls`` batches of one epoch."""
    drawer = subject.build(request)
    try:
        for number in range(calls):
            yield drawer.draw(seeds, 0, number).hops()
    finally:
        drawer.close()


def outcome_tables(
    subject: Subject,
    request: Request,
    seeds: Tensor,
    calls: int,
    *,
    largest: int = 1200,
    hop: int = 0,
) -> list[Table]:
    """Count the outcomes of all rows of hop ``hop`` (from 0) by degree.

    Rows whose law has one outcome, or more than ``largest``, are left out. Weights of a graph are
    those of its first row of a degree: all rows of a degree must have equal ones.
    """
    fanout = request.fanouts[hop]
    tables: dict[int, Table] = {}
    for hops in hops_of(subject, request, seeds, calls):
        drawn = Drawn.of(request.graph, hops[hop])
        for degree in np.unique(drawn.degrees).tolist():
            rows = drawn.degrees == degree
            if degree not in tables:
                node = int(drawn.nodes[rows][0])
                made = _table(request, degree, fanout, hop, largest, node)
                if made is None:
                    continue
                tables[degree] = made
            table = tables[degree]
            assert table.known is not None
            table.counts = table.counts + table.known.count(drawn.codes(table.known.base)[rows])
            table.draws += int(rows.sum())
    return list(tables.values())


def _table(
    request: Request, degree: int, fanout: int, hop: int, largest: int, node: int
) -> Table | None:
    graph, weights = request.graph, None
    if graph.weights is not None:
        weights = graph.weights[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    if degree < 2 or degree > 52:
        return None
    subsets = request.law == WITHOUT
    number = math.comb(degree if subsets else degree + fanout - 1, fanout)
    if weights is None and not 1 < number <= largest:
        return None
    known = outcomes(request.law, degree, fanout, weights)
    if known.codes.size < 2:
        return None
    zeros = np.zeros(known.codes.size + 1, dtype=np.int64)
    return Table(request, degree, fanout, hop, known.law_with_rest, known, node, zeros)


def place_tables(subject: Subject, request: Request, seeds: Tensor, calls: int) -> list[Table]:
    """Count the picks at each place of the rows of the first hop, by degree, and at each of 32
    equal parts of rows longer than 64.

    Where more than half of a row is picked, the edges that are left out are counted. The law must
    be uniform without replacement.
    """
    fanout = request.fanouts[0]
    by_place: dict[int, Ids] = {}
    draws: dict[int, int] = {}
    nodes: dict[int, int] = {}
    for hops in hops_of(subject, request, seeds, calls):
        drawn = Drawn.of(request.graph, hops[0])
        for degree in np.unique(drawn.degrees).tolist():
            if degree <= fanout or degree < 2:
                continue
            rows = drawn.degrees == degree
            places = drawn.places[rows[drawn.owner]]
            counts = np.bincount(places.clip(0, degree - 1), minlength=degree).astype(np.int64)
            by_place[degree] = by_place.get(degree, 0) + counts
            draws[degree] = draws.get(degree, 0) + int(rows.sum())
            nodes.setdefault(degree, int(drawn.nodes[rows][0]))
    tables = []
    for degree, counts in by_place.items():
        if 2 * fanout > degree:
            counts = (draws[degree] - counts).clip(min=0)
        shares: list[tuple[Ids, Floats]] = [(counts, np.full(degree, 1 / degree))]
        if degree > 2 * BINS:
            part = np.arange(degree) * BINS // degree
            sizes = np.bincount(part, minlength=BINS)
            binned = np.bincount(part, counts, minlength=BINS).astype(np.int64)
            shares.append((binned, sizes / degree))
        tables += [
            Table(request, degree, fanout, 0, law, None, nodes[degree], counted, draws[degree])
            for counted, law in shares
        ]
    return tables


def star_requests(
    subject: Subject, law: str, given: Input, fanouts: Sequence[int]
) -> Iterator[Request]:
    """Requests of every pick of a law and every fanout on a graph of stars."""
    for pick in subject.picks(law):
        for number, fanout in enumerate(fanouts):
            yield Request(given.graph, (fanout,), law, pick, seed=number + 1)
