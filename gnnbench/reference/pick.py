"""Pick functions: which positions of a row are drawn, without replacement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnnbench.reference.rng import bounded


def reservoir(degree: int, fanout: int, draws: Sequence[int]) -> list[int]:
    """Algorithm R (Vitter, ACM TOMS 11(1), 1985): draw i - fanout decides about item i."""
    slots = list(range(fanout))
    for item in range(fanout, degree):
        slot = bounded(draws[item - fanout], item + 1)
        if slot < fanout:
            slots[slot] = item
    return slots


def floyd(degree: int, fanout: int, draws: Sequence[int]) -> list[int]:
    """Floyd's sample (Bentley & Floyd, CACM 30(9), 1987): a repeated value becomes the bound."""
    chosen: list[int] = []
    for step in range(fanout):
        last = degree - fanout + step
        value = bounded(draws[step], last + 1)
        chosen.append(last if value in chosen else value)
    return chosen


def draws_needed(pick: str, degree: int, fanout: int) -> int:
    """Number of draws of a row; 0 where every position is taken."""
    if degree <= fanout:
        return 0
    return fanout if pick == "floyd" else degree - fanout


PICKS: dict[str, Callable[[int, int, Sequence[int]], list[int]]] = {
    "reservoir": reservoir,
    "floyd": floyd,
}


def positions(pick: str, degree: int, fanout: int, draws: Sequence[int]) -> list[int]:
    """Positions in the row, in the order of the pick; all, in stored order, if degree <= fanout."""
    if degree <= fanout:
        return list(range(degree))
    return PICKS[pick](degree, fanout, draws)
