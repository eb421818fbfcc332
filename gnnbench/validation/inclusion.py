"""Whether a sampler with random numbers of its own picks neighbours by the law that it states.

Counts and edges can be looked at one by one; chance only in many picks. For every row that is
looked at, statistics T whose mean and variance V under the law are known exactly: the mean score of
the neighbours picked, by several scores, and how often two picks belong together. Rows are drawn
independently, each given all before it, so that for any rate r the product over rows of
exp(r T - V (exp(r M) - 1 - r M) / M^2), M a bound of |T|, exceeds 1 / a with a probability of a at
most (Bennett, J. Amer. Statist. Assoc. 57, 1962; Freedman, Ann. Probab. 3, 1975; Ville). Nothing is
asymptotic: few rows find little, and never more false alarms.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT, Law

# How often a right sampler is refused: at most so many times of a look (a gate, a verification
# epoch, a recheck), whatever the graph and however many batches.
ALARM = 1e-6
TESTED = (WITHOUT, WITH, BY_WEIGHT)
ROWS = 2048  # of a hop, drawn at random
ROW_EDGES = 128  # of the graph that are looked at for them, as a mean
LARGEST_ROW = 16  # times that mean, at least
REMEMBERED = 1 << 18  # picks; later ones are compared with these
# Rates: each is sharp for a sum of variance 40 / r^2.
RATES = tuple(2.0**power for power in range(1, -14, -1))
LARGEST = 500.0  # of a rate times a bound: its exponential is still a float64
SCORES = {  # neighbours are picked ...
    "place": "by their place in the row, or their id where rows are sorted by it",
    "middle": "by how far they are from the row's middle",
    "degree": "by their degree",
    "id": "by their id",
    "weight": "by the weight of their edge otherwise than the law says",
    "again": "with regard to what was picked for the same node before",
    "together": "together with others that were picked for the same node before",
    "beside": "together with their neighbours in the row",
    "repeats": "more often or less often twice than independent picks are",
}
DRAWN = {  # what is counted to tell by how much: of scores the picks above the row's mean
    "place": "edges in the first half of their row",
    "middle": "edges at either end of their row",
    "degree": "neighbours of higher degree than others of their row",
    "id": "neighbours of higher id than others of their row",
    "weight": "edges of larger weight than others of their row",
    "again": "neighbours drawn before for the same node",
    "together": "pairs of neighbours drawn before for the same node",
    "beside": "pairs of edges next to each other in their row",
    "repeats": "pairs of one neighbour",
}

TESTS = 2 * len(SCORES) * len(RATES)


class Statistic(NamedTuple):
    """Of rows, float64 ``[n]`` each: T, V and M; how often what ``DRAWN`` names was drawn, and how
    often it is under the law, as a mean; the rows' degrees, int64."""

    found: Tensor
    variance: Tensor
    bound: Tensor
    drawn: Tensor
    expected: Tensor
    degree: Tensor

    def of(self, rows: Tensor) -> Statistic:
        """Those of some rows."""
        return Statistic(*(values[rows] for values in self))


@dataclass
class _Sum:
    """Logarithms of the two products, for T and for -T, by rate."""

    up: Tensor
    down: Tensor
    rows: int = 0

    @classmethod
    def empty(cls) -> _Sum:
        none = torch.zeros(len(RATES), dtype=torch.float64)
        return cls(none, none.clone())

    def add(self, found: Tensor, variance: Tensor, bound: Tensor) -> None:
        """Rows' T, V and M, float64 ``[n]`` each."""
        chance = (variance > 0) & (bound > 0)
        found, variance, bound = (t[chance] for t in (found, variance, bound))
        rates = torch.tensor(RATES, dtype=torch.float64)[:, None]
        # Where the exponential would overflow, that rate is given up: it would find nothing.
        at = (rates * bound).clamp(max=LARGEST)
        cost = (variance * (torch.expm1(at) - at) / bound**2).sum(1)
        self.up += rates[:, 0] * found.sum() - cost
        self.down -= rates[:, 0] * found.sum() + cost
        self.rows += int(chance.sum())

    @property
    def evidence(self) -> float:
        """Logarithm of the largest product."""
        return float(torch.maximum(self.up, self.down).max())


class Inclusion:
    """Looks at rows as they are drawn and remembers them; ``fault`` judges all of them at once.

    ``law`` is one of those of ``TESTED``; of others nothing is known beyond counts. ``rows``: of a
    hop, which decide what it costs: some 10 ms for 512 of them.
    """

    def __init__(self, graph: Graph, law: Law, rows: int = ROWS) -> None:
        self._graph, self._law, self._most = graph, law, rows
        self._random = torch.Generator().manual_seed(secrets.randbits(62))
        self._sums: dict[str, _Sum] = {}
        # By statistic and hop: sums of T, V, what was drawn and expected, by power of the degree.
        self._classes: dict[tuple[str, int], Tensor] = {}
        # Nodes whose picks are remembered; couples (node, neighbour) in order, and their times.
        self._known = torch.zeros(graph.num_nodes, dtype=torch.bool)
        self._couples = torch.empty(0, dtype=torch.int64)
        self._times = torch.empty(0, dtype=torch.int64)

    def add(self, dst: Tensor, counts: Tensor, src: Tensor, hop: int = 1) -> None:
        """Rows of one hop: nodes int64 ``[n]``, each once; picks of each ``[n]``; neighbours."""
        if self._law.name not in TESTED:
            return
        rows = self._chosen(dst, counts)
        if not rows.numel():
            return
        starts = counts.cumsum(0) - counts
        dst, counts, starts = dst[rows], counts[rows], starts[rows]
        owner, at = _ragged(starts, counts)
        self._look(_Rows(self._graph, self._law, dst, counts, owner, src[at]), hop)

    @property
    def rows(self) -> int:
        """Rows that left a choice."""
        return self._sums["place"].rows if self._sums else 0

    @property
    def log_evidence(self) -> float:
        """Logarithm of the evidence against the law; it exceeds that of 1 / a in a share of at most
        a of all looks at a right sampler."""
        return max((found.evidence for found in self._sums.values()), default=0.0) - math.log(TESTS)

    def smallest_tilt(self, level: float) -> float:
        """The b that is detected with 90 % power at ``level`` if picks have odds of
        1 + b cos(pi place): Bennett's bound for the rows so far, to first order in b."""
        variance = sum(
            float(c[1].sum()) for (name, _), c in self._classes.items() if name == "place"
        )
        needed = math.log(TESTS / level)
        return (math.sqrt(2 * needed) + 1.28) / math.sqrt(variance) if variance else math.inf

    @property
    def fault(self) -> str:
        """What no right sampler does but once in 1 / ``ALARM`` looks, as a sentence, or ``""``."""
        for name, found in self._sums.items():
            evidence = found.evidence - math.log(TESTS)
            if evidence > -math.log(ALARM):
                return (
                    f"its picks are not '{self._law.name}': neighbours are picked {SCORES[name]}"
                    f" ({found.rows} rows; by chance alone in less than one of"
                    f" 1e{min(int(evidence / math.log(10)), 99)} runs); {self._where(name)}"
                )
        return ""

    def _where(self, name: str) -> str:
        """In which hop and for which destinations most, in which direction and by how much."""
        hops = {hop: sums for (one, hop), sums in self._classes.items() if one == name}
        hop, sums = max(hops.items(), key=lambda item: float(_deviations(item[1].sum(1)).abs()))
        total = sums.sum(1)
        deviations = _deviations(sums) * total[0].sign()
        power = int(deviations.argmax())
        low, high = 2**power, 2 ** (power + 1) - 1
        often = "often" if total[2] > total[3] else "seldom"
        return (
            f"in hop {hop} {DRAWN[name]} were drawn too {often}, {total[2]:,.0f} times where"
            f" {total[3]:,.0f} are expected, most plainly for destinations of in-degree {low} to"
            f" {high}: {sums[2, power]:,.0f}, expected {sums[3, power]:,.0f}"
        )

    def _chosen(self, dst: Tensor, counts: Tensor) -> Tensor:
        """Rows that leave a choice, in a random order; half of them known, where so many are."""
        degree = self._graph.indptr[dst + 1] - self._graph.indptr[dst]
        edges = self._most * ROW_EDGES
        choice = (counts > 0) & (degree > 1) & (degree <= max(edges // LARGEST_ROW, ROW_EDGES))
        if self._law.name == WITHOUT:
            choice &= counts < degree
        rows = choice.nonzero()[:, 0]
        rows = rows[torch.randperm(rows.numel(), generator=self._random)]
        known = self._known[dst[rows]]
        known &= known.cumsum(0) <= self._most // 2
        rows = torch.cat([rows[known], rows[~known]])[: self._most]
        return rows[degree[rows].cumsum(0) <= edges]

    def _look(self, rows: _Rows, hop: int) -> None:
        graph = self._graph
        place = (rows.nth + 0.5) / rows.degree[rows.owner]
        own = graph.indptr[rows.neighbour + 1] - graph.indptr[rows.neighbour]
        scores = {
            "place": torch.cos(math.pi * place),
            "middle": torch.cos(2 * math.pi * place),
            "degree": own.double().log1p(),
            "id": rows.neighbour.double() / graph.num_nodes,
        }
        if graph.weights is not None:
            weights = graph.weights[rows.position].double()
            scores["weight"] = weights / rows.largest(weights)[rows.owner].clamp(min=1e-300)
        for name, score in scores.items():
            self._add(name, hop, rows.scored(score))
        known = self._known[rows.dst]
        if bool(known.any()):
            before = self._before(rows).double()
            self._add("again", hop, rows.scored(before).of(known))
            if self._law.name == WITHOUT:
                self._add("together", hop, rows.together(before > 0))
        if self._law.name == WITHOUT:
            self._add("beside", hop, rows.beside())
        else:
            self._add("repeats", hop, rows.repeats())
        self._remember(rows)

    def _add(self, name: str, hop: int, found: Statistic) -> None:
        self._sums.setdefault(name, _Sum.empty()).add(*found[:3])
        none = torch.zeros(4, 64, dtype=torch.float64)
        powers = found.degree.double().log2().long()
        values = torch.stack([found.found, found.variance, found.drawn, found.expected])
        self._classes.setdefault((name, hop), none).index_add_(1, powers, values)

    def _before(self, rows: _Rows) -> Tensor:
        """How often each edge's couple was picked before."""
        wanted = rows.dst[rows.owner] * self._graph.num_nodes + rows.neighbour
        if not self._couples.numel():
            return torch.zeros_like(wanted)
        at = torch.searchsorted(self._couples, wanted).clamp_(max=self._couples.numel() - 1)
        return torch.where(self._couples[at] == wanted, self._times[at], 0)

    def _remember(self, rows: _Rows) -> None:
        if self._couples.numel() > REMEMBERED:
            return
        self._known[rows.dst] = True
        couples = torch.cat([self._couples, rows.picked])
        times = torch.cat([self._times, torch.ones_like(rows.picked)])
        self._couples, where = couples.unique(return_inverse=True)
        self._times = torch.zeros_like(self._couples).index_add_(0, where, times)


class _Rows:
    """Whole rows of the graph, each with what was picked of it.

    Picks of parallel edges cannot be distinguished, so their share is divided among them.
    ``owner``, ``nth``, ``position``, ``neighbour`` int64 ``[e]`` of the rows' edges: whose row,
    which of it, where in the graph, and which node; ``picked`` int64: couples of the picks.
    """

    def __init__(
        self, graph: Graph, law: Law, dst: Tensor, counts: Tensor, by: Tensor, src: Tensor
    ) -> None:
        starts = graph.indptr[dst]
        self.dst, self.size = dst, dst.numel()
        self.degree = graph.indptr[dst + 1] - starts
        self.owner, self.position = _ragged(starts, self.degree)
        self.nth = self.position - starts[self.owner]
        self.neighbour = graph.indices[self.position].long()
        self._counts, self._without = counts.double(), law.name == WITHOUT
        if law.name == BY_WEIGHT:
            assert graph.weights is not None
            chance = graph.weights[self.position].double()
        else:
            chance = torch.ones(self.owner.numel(), dtype=torch.float64)
        self._chance = chance / self._sum(chance)[self.owner]
        # Cells: edges of one row to one neighbour.
        nodes = graph.num_nodes
        keys, self._cell = (self.owner * nodes + self.neighbour).unique(return_inverse=True)
        self._row = keys // nodes
        self._p = self._cells(self._chance)
        drawn = by * nodes + src.long()
        at = torch.searchsorted(keys, drawn).clamp_(max=keys.numel() - 1)
        real = keys[at] == drawn  # one that is not is reported elsewhere
        self._times = torch.bincount(at[real], minlength=keys.numel()).double()
        self.picked = dst[by] * nodes + src.long()

    def _sum(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.size).index_add_(0, self.owner, values)

    def _cells(self, values: Tensor) -> Tensor:
        count = int(self._row.numel())
        return values.new_zeros(count).index_add_(0, self._cell, values)

    def _of_cells(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.size).index_add_(0, self._row, values)

    def largest(self, values: Tensor) -> Tensor:
        """Of each row."""
        return values.new_zeros(self.size).scatter_reduce(0, self.owner, values, "amax")

    def scored(self, score: Tensor) -> Statistic:
        """Sum of the scores picked less its mean under the law, its variance and its bound, by row.

        ``score`` float64 ``[e]``. Without replacement k of d picks have the variance of k
        independent ones times (d - k) / (d - 1), and leaving out d - k is the same choice.
        """
        mean_of_cell = self._cells(self._chance * score) / self._p.clamp(min=1e-300)
        mean = self._of_cells(self._p * mean_of_cell)
        off = mean_of_cell - mean[self._row]
        sums = self._of_cells(self._times * off)
        k, d = self._counts, self.degree.double()
        variance = k * self._of_cells(self._p * off * off)
        most = (
            off.abs()
            .new_zeros(self.size)
            .scatter_reduce(0, self._row, torch.where(self._p > 0, off.abs(), 0.0), "amax")
        )
        above = (off > 0).double()
        moments = (self._of_cells(self._times * above), k * self._of_cells(self._p * above))
        if self._without:
            variance, most = variance * (d - k) / (d - 1), torch.minimum(k, d - k) * most
        else:
            most = k * most
        return Statistic(sums, variance, most, *moments, self.degree)

    def together(self, marked: Tensor) -> Statistic:
        """Pairs of picks that are both ``marked`` (bool ``[e]``), which earlier picks were.

        Given these, k of d hold X of m marked ones, and the mean of the number of their subsets of
        j is (m over j) times the chance of j given places. Rows with parallel edges are left out.
        """
        k, d, m = self._counts, self.degree.double(), self._sum(marked.double())
        pairs = self._sum(self._times[self._cell] * marked)
        pairs = pairs * (pairs - 1) / 2
        subsets = [torch.ones_like(k)]  # their means, by j
        for j in range(4):
            chance = (k - j).clamp(min=0) / (d - j).clamp(min=1)
            subsets.append(subsets[-1] * chance * (m - j).clamp(min=0) / (j + 1))
        mean = subsets[2]
        variance = (6 * subsets[4] + 6 * subsets[3] + mean - mean * mean).clamp(min=0)
        most = torch.minimum(k, m)
        bound = torch.maximum(most * (most - 1) / 2 - mean, mean)
        return Statistic(pairs - mean, variance, bound, pairs, mean, self.degree).of(self._single)

    @cached_property
    def _single(self) -> Tensor:
        """Rows without parallel edges, bool ``[n]``."""
        return torch.bincount(self._row, minlength=self.size) == self.degree

    def beside(self) -> Statistic:
        """Pairs of picks that are next to each other in the row, its ends being neighbours.

        Of k of d in a circle E = d p2 and E of the square = d p2 + 2 d p3 + d (d - 3) p4, where
        pj is the chance of j given places. Rows with parallel edges are left out.
        """
        k, d = self._counts, self.degree.double()
        picked = self._times[self._cell]
        following = torch.arange(self.owner.numel()) + 1
        last = self.nth + 1 == self.degree[self.owner]
        following = torch.where(last, following - self.degree[self.owner], following)
        pairs = self._sum(picked * picked[following])
        chance = [torch.ones_like(k)]
        for j in range(4):
            chance.append(chance[-1] * (k - j).clamp(min=0) / (d - j).clamp(min=1))
        mean = d * chance[2]
        square = mean + 2 * d * chance[3] + d * (d - 3).clamp(min=0) * chance[4]
        usable = self._single & (d > 3) & (k > 1)
        variance = (square - mean * mean).clamp(min=0)
        bound = torch.maximum(k - mean, mean)
        return Statistic(pairs - mean, variance, bound, pairs, mean, self.degree).of(usable)

    def repeats(self) -> Statistic:
        """Pairs of a row's picks that are one neighbour; with k independent picks their mean is
        k (k - 1) / 2 times the sum of p^2."""
        k = self._counts
        square, cube = (self._of_cells(self._p**power) for power in (2, 3))
        pairs = k * (k - 1) / 2
        seen, mean = self._of_cells(self._times * (self._times - 1)) / 2, pairs * square
        variance = pairs * (square - square**2)
        variance = variance + k * (k - 1) * (k - 2) * (cube - square**2).clamp(min=0)
        bound = pairs * torch.maximum(square, 1 - square)
        return Statistic(seen - mean, variance, bound, seen, mean, self.degree)


def _deviations(sums: Tensor) -> Tensor:
    """Sums of T in standard deviations; 0 where nothing was left to chance."""
    return torch.where(sums[1] > 0, sums[0] / sums[1].clamp(min=1e-300).sqrt(), 0.0)


def _ragged(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Owner and index of ``starts[i]`` to ``starts[i] + lengths[i] - 1``, one after the other."""
    owner = torch.arange(lengths.numel()).repeat_interleave(lengths)
    before = lengths.cumsum(0) - lengths
    return owner, torch.arange(owner.numel()) + (starts - before)[owner]
