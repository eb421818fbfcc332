"""Which cells of a run make one number of a claim: measured ones, or those that were planned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from gnnbench.reproduction.claim import Point
from gnnbench.reproduction.evidence import alike, couples, pools, steps

Row = dict[str, Any]
Rows = Callable[[str, Row], list[Row]]


@dataclass(frozen=True)
class Group:
    """Cells of one number: ``first`` held against ``second`` where there are any.

    Of several that differ in a column alone their mean counts. ``earlier`` is the couple one step
    before along an axis, over whose ratio this one's is.
    """

    first: tuple[Row, ...]
    second: tuple[Row, ...] = ()
    earlier: Group | None = None

    @property
    def sides(self) -> list[tuple[Row, ...]]:
        """The cells side by side, as they are told: a number of several is told by each."""
        own = [side for side in (self.first, self.second) if side]
        return [*own, *(self.earlier.sides if self.earlier else [])]

    def rows(self) -> tuple[Row, ...]:
        """All rows, those of a mean by the first of each side where there are two."""
        if not self.second:
            return self.first
        return tuple(side[0] for side in self.sides)


def groups(point: Point, rows: Rows) -> Iterator[Group]:
    """Groups of one number each; ``rows`` gives those of a label and of columns that differ."""
    if point.along and point.beside:
        yield from _growth(point, rows)
        return
    first = rows(point.of, {})
    if point.along:
        for later, before in steps(first, point.along, point.along_with):
            yield Group((later,), (before,))
        return
    mine = _pools(point, first)
    if not point.beside:
        yield from map(Group, mine)
        return
    but = [*point.beside_rows, *filter(None, [point.over])]
    for a, b in product(mine, _pools(point, rows(point.beside, point.beside_rows))):
        if couples([a[0]], [b[0]], (point.of, point.beside), but):
            yield Group(a, b)


def _pools(point: Point, rows: list[Row]) -> list[tuple[Row, ...]]:
    """Each row by itself, or pools of those alike in all but a column, of two or more."""
    if not point.over:
        return [(row,) for row in rows]
    return [tuple(pool) for pool in pools(rows, point.over) if len(pool) > 1]


def _growth(point: Point, rows: Rows) -> Iterator[Group]:
    """Couples, each with that one step earlier along an axis."""
    of: dict[str, list[Group]] = {}
    for couple in groups(point.model_copy(update={"along": ""}), rows):
        of.setdefault(couple.first[0]["id"], []).append(couple)
    firsts = [couples[0].first[0] for couples in of.values()]
    first, second = (point.along.split() * 2)[:2]
    for later, earlier in steps(firsts, first, point.along_with):
        for a, b in product(of[later["id"]], of[earlier["id"]]):
            if steps([b.second[0], a.second[0]], second, point.along_with)[:1] == [
                (a.second[0], b.second[0])
            ]:
                yield Group(a.first, a.second, b)


def equal(a: Group, b: Group, free: Collection[str]) -> bool:
    """Whether two groups, of any runs, are the same point of a grid: alike in all but ``free``."""
    mine, other = a.rows(), b.rows()
    return len(mine) == len(other) and all(
        x["system"] == y["system"] and alike(x, y, free) for x, y in zip(mine, other, strict=True)
    )


def unlike(found: Iterable[Group], free: Collection[str]) -> list[Group]:
    """Groups without those that are the same point."""
    kept: list[Group] = []
    for group in found:
        if not any(equal(group, known, free) for known in kept):
            kept.append(group)
    return kept
