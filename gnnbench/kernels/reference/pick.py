"""Pick functions, which draw positions of a row, and random walks, which draw nodes.

``draws`` are 32-bit words. A row's positions count from its first entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate

from gnnbench.core.fanouts import ALL
from gnnbench.kernels.reference.rng import bounded

Draws = Sequence[int]


def reservoir(degree: int, fanout: int, draws: Draws) -> list[int]:
    """Algorithm R (Vitter, ACM TOMS 11(1), 1985): draw i - fanout decides about item i."""
    slots = list(range(fanout))
    for item in range(fanout, degree):
        slot = bounded(draws[item - fanout], item + 1)
        if slot < fanout:
            slots[slot] = item
    return slots


FIRST_OCTAVE, MOST_CANDIDATES, CELL_DRAWS = 3, 16, 20


@cache
def candidate_counts(octave: int) -> list[int]:
    """Largest words that mean at most 0, 1, .. candidates of a cell: Binomial(2^j, 2^(1-j))."""
    with localcontext(prec=60):
        items, chance = 1 << octave, Decimal(2) ** (1 - octave)
        exactly, at_most, words = (1 - chance) ** items, Decimal(0), []
        for count in range(MOST_CANDIDATES):
            at_most += exactly
            words.append(round(at_most * (1 << 32)) - 1)
            exactly *= (items - count) * chance / ((count + 1) * (1 - chance))
    return words


def thinned_cells(degree: int, fanout: int) -> list[tuple[int, int]]:
    """The cells of a row, each its first item and octave: from ``8 ceil(fanout / 2)`` on."""
    half = (fanout + 1) // 2
    cells = []
    octave = FIRST_OCTAVE
    while half << octave < degree:
        items = range(half << octave, min(degree, half << (octave + 1)), 1 << octave)
        cells += [(first, octave) for first in items]
        octave += 1
    return cells


def reservoir_thinned(degree: int, fanout: int, draws: Draws) -> list[int]:
    """Algorithm R's law by thinning (Lewis & Shedler, 1979), see ``thinning.h``.

    Draw i - fanout decides about item i before the cells. A cell's draws tell how many of its items
    are candidates, then which (Floyd's sample) and, in what is left of the draw, for which slot.
    """
    behind = ((fanout + 1) // 2) << FIRST_OCTAVE
    slots = reservoir(min(degree, behind), fanout, draws)
    for cell, (first, octave) in enumerate(thinned_cells(degree, fanout)):
        start = behind + CELL_DRAWS * cell
        count = bisect_left(candidate_counts(octave), draws[start])
        places: list[int] = []
        for t in range(count):
            last = (1 << octave) - count + t
            place, rest = divmod(draws[start + 1 + t] * (last + 1), 1 << 32)
            places.append(last if place in places else place)
            item = first + places[-1]
            slot = bounded(rest, item + 1) >> (octave - 1)
            if item < degree and slot < fanout:
                slots[slot] = max(slots[slot], item)
    return slots


def floyd(degree: int, fanout: int, draws: Draws) -> list[int]:
    """Floyd's sample (Bentley & Floyd, CACM 30(9), 1987): a repeated value becomes the bound."""
    chosen: list[int] = []
    for step in range(fanout):
        last = degree - fanout + step
        value = bounded(draws[step], last + 1)
        chosen.append(last if value in chosen else value)
    return chosen


def fisher_yates(degree: int, fanout: int, draws: Draws) -> list[int]:
    """A shuffle cut short (GNNLab, EuroSys'22, section 5.1): the last entry fills each gap."""
    left = list(range(degree))
    chosen = []
    for step in range(fanout):
        at = bounded(draws[step], len(left))
        chosen.append(left[at])
        left[at] = left[-1]
        left.pop()
    return chosen


def with_replacement(degree: int, fanout: int, draws: Draws) -> list[int]:
    """Any entry at each draw."""
    return [bounded(draws[step], degree) for step in range(fanout)]


def weighted_alias(
    threshold: Sequence[int], alias: Sequence[int], fanout: int, draws: Draws
) -> list[int]:
    """Walker's alias method: an entry at random gives way to its alias by a coin."""
    chosen = []
    for step in range(fanout):
        entry = bounded(draws[2 * step], len(alias))
        chosen.append(entry if draws[2 * step + 1] < threshold[entry] else alias[entry])
    return chosen


def weighted_prefix(prefix: Sequence[int], fanout: int, draws: Draws) -> list[int]:
    """Inversion: the entry in whose part of the total a 64-bit draw falls."""
    chosen = []
    for step in range(fanout):
        word = (draws[2 * step] << 32) + draws[2 * step + 1]
        target = (word * prefix[-1]) >> 64
        chosen.append(bisect_right(prefix, target))
    return chosen


def random_walk(
    row_of: Callable[[int], Sequence[int]],
    vertex: int,
    walks: int,
    length: int,
    restart: int,
    fanout: int,
    draws: Draws,
) -> list[tuple[int, int]]:
    """Nodes visited most, with their visits (PinSAGE, Ying et al., KDD'18, section 3.1).

    ``row_of`` gives a node's in-neighbours, ``vertex`` has some. Most visited first, ties by id.
    """
    visits: Counter[int] = Counter()
    word = iter(draws)
    for _ in range(walks):
        node = vertex
        for step in range(length):
            coin, choice = next(word), next(word)
            if step > 0 and coin < restart:
                node = vertex
            row = row_of(node)
            if len(row) == 0:
                row = row_of(vertex)
            node = row[bounded(choice, len(row))]
            visits[node] += 1
    return sorted(visits.items(), key=lambda item: (-item[1], item[0]))[:fanout]


WITHOUT_REPLACEMENT: dict[str, Callable[[int, int, Draws], list[int]]] = {
    "reservoir": reservoir,
    "floyd": floyd,
    "fisher_yates": fisher_yates,
    "reservoir_thinned": reservoir_thinned,
}


def draws_needed(pick: str, degree: int, fanout: int) -> int:
    """Most draws that a row takes, random walks apart; 0 where every position is taken."""
    if pick in WITHOUT_REPLACEMENT and (degree <= fanout or fanout == ALL):
        return 0
    if pick == "reservoir_thinned" and (cells := len(thinned_cells(degree, fanout))):
        return ((fanout + 1) // 2 << FIRST_OCTAVE) + CELL_DRAWS * cells
    if pick.startswith("reservoir"):
        return degree - fanout
    return 2 * fanout if pick.startswith("weighted") else fanout


def positions(
    pick: str, degree: int, fanout: int, draws: Draws, tables: Sequence[Sequence[int]] = ()
) -> list[int]:
    """Positions in the row, in the order of the pick; ``tables`` are the row's.

    Without replacement all, in stored order, if degree <= fanout or it is -1; with it none from an
    empty row, weighted none from a row without weight.
    """
    if pick in WITHOUT_REPLACEMENT:
        if degree <= fanout or fanout == ALL:
            return list(range(degree))
        return WITHOUT_REPLACEMENT[pick](degree, fanout, draws)
    if degree == 0:
        return []
    if pick == "with_replacement":
        return with_replacement(degree, fanout, draws)
    if pick == "weighted_alias":
        threshold, alias = tables
        return [] if alias[0] == NO_WEIGHT else weighted_alias(threshold, alias, fanout, draws)
    (prefix,) = tables
    return [] if prefix[-1] == 0 else weighted_prefix(prefix, fanout, draws)


# ---- integers of the weighted picks ----

NO_WEIGHT = 0xFFFFFFFF
CERTAIN = 0xFFFFFFFF


def integer_weights(weights: Sequence[float]) -> list[int]:
    """A row's weights in units of 2^-31 of the largest, at least one where it is not zero."""
    largest = max(weights, default=0.0)
    return [0 if w == 0 else max(1, round(w / largest * 2**31)) for w in weights]


def prefix_table(weights: Sequence[int]) -> list[int]:
    """Inclusive sums of a row's integer weights."""
    return list(accumulate(weights))


def alias_table(weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Thresholds and aliases of a row's integer weights (Walker 1977; Vose 1991).

    Entries lighter than the mean are filled up by the heavy ones, both in stored order; a heavy
    one that has become light is filled up at once by the next.
    """
    degree, total = len(weights), sum(weights)
    if total == 0:
        return [0] * degree, [NO_WEIGHT] * degree
    share = [w * degree for w in weights]  # the mean share is the total
    light = [i for i in range(degree) if share[i] < total]
    heavy = [i for i in range(degree) if share[i] >= total]
    threshold, alias = [CERTAIN] * degree, list(range(degree))
    giver = heavy.pop(0)
    while True:
        if share[giver] < total:
            taker, giver = giver, heavy.pop(0)
        elif light:
            taker = light.pop(0)
        else:
            break  # what is left has the mean share exactly
        threshold[taker] = (share[taker] << 32) // total
        alias[taker] = giver
        share[giver] -= total - share[taker]
    return threshold, alias
