"""Exact probabilities of all outcomes of one small row, and of short random walks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np

from gnnbench.certification.subject import SUCCESSIVE, Ids
from gnnbench.datasets.graph import Graph
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT
from gnnbench.validation.multinomial import Floats


@dataclass(frozen=True)
class Outcomes:
    """All outcomes of a row: int64 ``[k]`` codes in ascending order, their probabilities, and texts
    for messages. A code is the sum of ``base`` to the power of each pick's place in the row."""

    codes: Ids
    law: Floats
    base: int

    def count(self, codes: Ids) -> Ids:
        """Draws of each outcome, int64 ``[k + 1]``; the last counts impossible codes."""
        at = np.searchsorted(self.codes, codes)
        at[at == self.codes.size] = 0
        at[self.codes[at] != codes] = self.codes.size
        return np.bincount(at, minlength=self.codes.size + 1).astype(np.int64)

    @property
    def law_with_rest(self) -> Floats:
        """The probabilities, and 0 for impossible codes, float64 ``[k + 1]``."""
        return np.append(self.law, 0.0)

    def places(self, outcome: int) -> list[int]:
        """Places in the row of an outcome's picks."""
        code, places, place = int(self.codes[outcome]), [], 0
        while code:
            code, times = divmod(code, self.base)
            places += [place] * times
            place += 1
        return places


def outcomes(
    law: str, degree: int, fanout: int, weights: Sequence[float] | None = None
) -> Outcomes:
    """Return all outcomes of ``fanout`` picks of a row of ``degree`` edges.

    ``law``: without replacement every subset is equally likely; with replacement and ``weighted``
    the picks are independent; ``weighted-without-replacement`` takes one edge after the other, in
    proportion to the weights of those that are left. ``weights``: of the row's edges; equal ones
    where omitted. Raises ``ValueError`` for a random walk.
    """
    w = np.ones(degree) if weights is None else np.asarray(weights, dtype=np.float64)
    p = w / w.sum()
    usable = np.flatnonzero(w)
    by_code: dict[int, float] = {}
    if law == WITHOUT:
        sets = list(combinations(range(degree), min(fanout, degree)))
        base, by_code = 2, {sum(1 << place for place in s): 1 / len(sets) for s in sets}
    elif law in (WITH, BY_WEIGHT):
        base = fanout + 1
        for picks in combinations_with_replacement(usable.tolist(), fanout):
            times = Counter(picks)
            ways = math.factorial(fanout) / math.prod(map(math.factorial, times.values()))
            by_code[sum(base**place for place in picks)] = ways * math.prod(p[i] for i in picks)
    elif law == SUCCESSIVE:
        base = 2
        for order in permutations(usable.tolist(), min(fanout, usable.size)):
            left, chance = 1.0, 1.0
            for place in order:
                chance *= p[place] / left
                left -= p[place]
            code = sum(1 << place for place in order)
            by_code[code] = by_code.get(code, 0.0) + chance
    else:
        raise ValueError(f"the law '{law}' has no outcomes by row")
    codes = np.array(sorted(by_code), dtype=np.int64)
    chances = np.array([by_code[int(code)] for code in codes])
    return Outcomes(codes, chances / chances.sum(), base)


def favoured(known: Outcomes, odds: float) -> Floats:
    """Return the probabilities where the first edge of the row has ``odds`` times its weight.

    Outcomes without replacement count it once; with replacement by the number of its picks.
    """
    times = known.codes % known.base
    q = known.law * odds**times
    return q / q.sum()


def row_of(graph: Graph, node: int) -> list[int]:
    """In-neighbours of a node."""
    return graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()


def trace_law(graph: Graph, node: int, length: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every trace of a walk of ``length`` steps to in-neighbours.

    Every node on the way must have in-neighbours.
    """
    traces: dict[tuple[int, ...], float] = {(node,): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for trace, chance in traces.items():
            row = row_of(graph, trace[-1])
            for neighbour in row:
                key = (*trace, neighbour)
                longer[key] = longer.get(key, 0.0) + chance / len(row)
        traces = longer
    return traces


def visit_law(
    graph: Graph, node: int, walks: int, length: int, restart: float
) -> dict[tuple[tuple[int, int], ...], float]:
    """Return the probability of all visits of ``walks`` walks of ``length`` steps from ``node``.

    A result is sorted pairs (node, visits). Before each step but the first a walk goes back to the
    start with probability ``restart`` (PinSAGE, Ying et al., KDD 2018, section 3.1). Every node on
    the way must have in-neighbours.
    """
    one: dict[tuple[int, tuple[int, ...]], float] = {(node, ()): 1.0}
    for step in range(length):
        moved: dict[tuple[int, tuple[int, ...]], float] = {}
        for (at, seen), chance in one.items():
            starts = [(at, 1.0)] if step == 0 else [(at, 1 - restart), (node, restart)]
            for start, share in starts:
                row = row_of(graph, start)
                for neighbour in row:
                    key = (neighbour, tuple(sorted((*seen, neighbour))))
                    moved[key] = moved.get(key, 0.0) + chance * share / len(row)
        one = moved
    single: dict[tuple[int, ...], float] = {}
    for (_, seen), chance in one.items():
        single[seen] = single.get(seen, 0.0) + chance
    total: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(walks):
        joined: dict[tuple[int, ...], float] = {}
        for left, a in total.items():
            for right, b in single.items():
                key2 = tuple(sorted((*left, *right)))
                joined[key2] = joined.get(key2, 0.0) + a * b
        total = joined
    return {tuple(sorted(Counter(k).items())): v for k, v in total.items()}
