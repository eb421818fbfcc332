"""The cells of a run that together give one number of a claim."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import parse_label
from gnnbench.reproduction.claim import ClaimPoint
from gnnbench.reproduction.evidence import alike, comparable_pairs, pools, steps
from gnnbench.schema import CellRow

RowSource = Callable[[str, Mapping[str, object]], list[CellRow]]
"""Rows that match a label and values of columns."""


@dataclass(frozen=True)
class CellGroup:
    """The cells of one number: those of ``first``, compared with those of ``second`` if any.

    Several cells of one side differ in one column, and their mean counts. ``earlier`` is the group
    one step before on an axis, or another pair (``than``, ``than_rows``); the number is then this
    group's over its.
    """

    first: tuple[CellRow, ...]
    second: tuple[CellRow, ...] = ()
    earlier: CellGroup | None = None

    @property
    def sides(self) -> list[tuple[CellRow, ...]]:
        """All non-empty sides, those of ``earlier`` last."""
        own = [side for side in (self.first, self.second) if side]
        return [*own, *(self.earlier.sides if self.earlier else [])]

    def rows(self) -> tuple[CellRow, ...]:
        """All rows of a single side; of several sides the first row of each."""
        if not self.second:
            return self.first
        return tuple(side[0] for side in self.sides)


def groups(point: ClaimPoint, rows: RowSource) -> Iterator[CellGroup]:
    """One group for each number of a point."""
    if point.than or point.than_rows:
        yield from _relative(point, rows)
        return
    if point.along and point.versus:
        yield from _growth(point, rows)
        return
    first = rows(point.of, {})
    if point.along:
        for later, earlier in steps(first, point.along, point.along_with):
            yield CellGroup((later,), (earlier,))
        return
    first_pools = _pools(point, first)
    if not point.versus:
        yield from map(CellGroup, first_pools)
        return
    free = [*point.versus_rows, *filter(None, [point.over])]
    for a, b in product(first_pools, _pools(point, rows(point.versus, point.versus_rows))):
        if comparable_pairs([a[0]], [b[0]], (point.of, point.versus), free):
            yield CellGroup(a, b)


def _pools(point: ClaimPoint, rows: list[CellRow]) -> list[tuple[CellRow, ...]]:
    """Single rows; with ``over``, pools of at least two rows that differ in that column alone."""
    if not point.over:
        return [(row,) for row in rows]
    return [tuple(pool) for pool in pools(rows, point.over) if len(pool) > 1]


def _growth(point: ClaimPoint, rows: RowSource) -> Iterator[CellGroup]:
    """Pairs of cells, each with the pair one step before on an axis."""
    every = groups(point.model_copy(update={"along": ""}), rows)
    by_first = group_by(every, lambda group: str(group.first[0]["id"]))
    firsts = [own[0].first[0] for own in by_first.values()]
    first, second = (point.along.split() * 2)[:2]
    for later, earlier in steps(firsts, first, point.along_with):
        for a, b in product(by_first[later["id"]], by_first[earlier["id"]]):
            if steps([b.second[0], a.second[0]], second, point.along_with)[:1] == [
                (a.second[0], b.second[0])
            ]:
                yield CellGroup(a.first, a.second, b)


def _relative(point: ClaimPoint, rows: RowSource) -> Iterator[CellGroup]:
    """Pairs of cells, each with every other pair that ``than`` and ``than_rows`` name.

    The two are equal in all other settings.
    """

    def other_rows(label: str, wanted: Mapping[str, object]) -> list[CellRow]:
        return rows(label, {**point.than_rows, **wanted})

    own = point.model_copy(update={"than": {}, "than_rows": {}})
    other = own.model_copy(update={str(key): value for key, value in point.than.items()})
    labels = (own.of, own.versus, other.of, other.versus)
    free = {*point.than_rows, *(key for name in labels for key in parse_label(name)[1])}
    for a, b in product(groups(own, rows), groups(other, other_rows)):
        if a != b and alike(a.first[0], b.first[0], free):
            yield CellGroup(a.first, a.second, b)


def equal(a: CellGroup, b: CellGroup, free: Collection[str]) -> bool:
    """Whether two groups, of any runs, agree in everything except ``free``."""
    first, second = a.rows(), b.rows()
    return len(first) == len(second) and all(
        x["system"] == y["system"] and alike(x, y, free) for x, y in zip(first, second, strict=True)
    )


def distinct(all_groups: Iterable[CellGroup], free: Collection[str]) -> list[CellGroup]:
    """The first of every set of equal groups."""
    result: list[CellGroup] = []
    for group in all_groups:
        if not any(equal(group, known, free) for known in result):
            result.append(group)
    return result
