"""Records: one class per table, whose fields are the columns of its CSV file."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

_UNIT, _DESCRIPTION = "unit", "description"
_EMPTY = " | None"


@dataclass(frozen=True)
class Column:
    """A column of a table. ``dtype`` is str, int, float or bool; an empty field means unknown."""

    name: str
    dtype: str
    unit: str
    description: str


def column(unit: str, description: str) -> Any:
    """Declare a field of a record: its name is the column, its annotation the type.

    Text defaults to ``""`` and everything else to None, as read from an empty field. Annotate
    ``int | None`` where complete rows may have an empty field, ``int`` where they have none.
    """
    return dataclasses.field(default=None, metadata={_UNIT: unit, _DESCRIPTION: description})


def same_as(record: type[Record], name: str) -> Any:
    """Declare a field with the unit and the description of another record's column."""
    (source,) = (c for c in record.columns() if c.name == name)
    return column(source.unit, source.description)


class Record(Mapping[str, Any]):
    """A row of a table, typed by attributes: ``row.batch_size``.

    For a computed column name it is a mapping as well: ``row[name]``, ``row.get(name)``. Equal
    columns make equal records. Fields that are not declared by ``column`` are in no table.
    """

    __slots__ = ()
    INHERITED_BEFORE: ClassVar[str] = ""  # inherited columns precede this one

    def __post_init__(self) -> None:
        """Replace None in text columns by the empty string."""
        for name in self._texts():
            if getattr(self, name) is None:
                setattr(self, name, "")

    @classmethod
    @functools.cache
    def columns(cls) -> tuple[Column, ...]:
        """The columns of the table in file order."""
        fields = [f for f in dataclasses.fields(cls) if f.metadata]  # type: ignore[arg-type]
        inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
        own = [f for f in fields if f.name not in inherited]
        names = [f.name for f in own]
        at = names.index(cls.INHERITED_BEFORE) if cls.INHERITED_BEFORE else 0
        ordered = [*own[:at], *(f for f in fields if f.name in inherited), *own[at:]]
        return tuple(
            Column(
                f.name,
                str(f.type).removesuffix(_EMPTY),
                f.metadata[_UNIT],
                f.metadata[_DESCRIPTION],
            )
            for f in ordered
        )

    @classmethod
    @functools.cache
    def _names(cls) -> tuple[str, ...]:
        return tuple(c.name for c in cls.columns())

    @classmethod
    @functools.cache
    def _texts(cls) -> tuple[str, ...]:
        return tuple(c.name for c in cls.columns() if c.dtype == "str")

    def __getitem__(self, name: str) -> Any:
        """The value of a column. Raises ``KeyError`` where the table has no such column."""
        if name not in self._names():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """Column names in file order."""
        return iter(self._names())

    def __len__(self) -> int:
        """Number of columns."""
        return len(self._names())


def column_names(columns: tuple[Column, ...]) -> list[str]:
    """Names in file order."""
    return [c.name for c in columns]
