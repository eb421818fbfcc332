"""Arrays by name, in a file or in memory, as the importers read them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.node_values import int64_ids
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.schema.arrays import Array, ArrayType

# Values of one element, which need no array of their own shape.
_SINGLE = {"num_nodes", "num_classes", "feat_dim", "feat_kind", "rows", "format", "source",
           "license", "split_origin", "note"}  # fmt: skip


@dataclass(frozen=True)
class ArrayHeader:
    """Shape and type of an array that is not read yet."""

    shape: tuple[int, ...]
    dtype: ArrayType
    fortran: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class NamedArrays(ABC):
    """Arrays by name; errors name ``path``. Use as a context manager.

    ``notes`` are sentences for the import report, ``dropped`` the names of values of the source
    that are no arrays.
    """

    path: Path
    keys: set[str]
    notes: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()

    def __enter__(self) -> NamedArrays:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def first(self, names: tuple[str, ...]) -> str:
        """The first of ``names`` that exists; empty if none does."""
        return next((name for name in names if name in self), "")

    def label(self, key: str) -> str:
        """The name of an array in error messages."""
        return f"'{key}' in {self.path}"

    def missing(self, key: str) -> DataError:
        """The error for a missing array."""
        return DataError(f"{self.path} has no array '{key}'; get it again or add the array")

    def left(self, used: set[str]) -> list[str]:
        """Names of unused arrays, except single values."""

        def is_array(key: str) -> bool:
            try:
                header = self.header(key)
                return header.shape != () and (key not in _SINGLE or header.size != 1)
            except DataError:  # of pickled objects, say
                return True

        return sorted({*self.dropped, *(key for key in self.keys - used if is_array(key))})

    @abstractmethod
    def header(self, key: str) -> ArrayHeader:
        """Shape and type of an array, without reading it."""

    @abstractmethod
    def flat(self, key: str) -> Iterator[Array]:
        """All elements in stored order, in pieces."""

    @abstractmethod
    def array(self, key: str) -> Array:
        """A whole array."""

    @abstractmethod
    def _row_pieces(self, key: str, header: ArrayHeader) -> Iterator[Array]: ...

    def rows(self, key: str) -> Iterator[Array]:
        """Pieces of a matrix along its first axis. Raises ``DataError`` where it is none."""
        header = self.header(key)
        if len(header.shape) != 2 or header.shape[1] < 1 or header.dtype.kind not in "fiub":
            raise DataError(
                f"{self.label(key)} has type {header.dtype} and shape {header.shape}, numbers "
                "in two dimensions are expected; correct the file"
            )
        for piece in self._row_pieces(key, header):
            yield piece.astype(np.float32) if piece.dtype.kind == "b" else piece

    def integers(self, key: str, length: int | None = None) -> Array:
        """A one-dimensional array of integers (of a given length) as int32 or int64.

        Raises ``DataError`` for another type or shape and for a value beyond int64.
        """
        header = self.header(key)
        if header.dtype.kind not in "iu" or len(header.shape) != 1:
            raise DataError(
                f"{self.label(key)} has type {header.dtype} and shape {header.shape}, one "
                "dimension of integers is expected; correct the file"
            )
        if length is not None and header.shape[0] != length:
            raise DataError(
                f"{self.label(key)} has {header.shape[0]} entries, {length} are expected; "
                "correct the file"
            )
        return int64_ids(self.array(key), self.label(key))

    def scalar(self, key: str, default: object = None) -> object:
        """A number or a text stored as an array of one element."""
        if key not in self.keys:
            return default
        if self.header(key).size != 1:
            raise DataError(f"{self.label(key)} must be a single value; correct the file")
        value = self.array(key).reshape(()).item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else value

    def count(self, key: str) -> int | None:
        """A single whole number from 0 up; None if there is no such array.

        Raises ``DataError`` for any other value: a fraction, NaN, a text, a date ...
        """
        if key not in self.keys:
            return None
        value = self.scalar(key)
        is_count = (
            isinstance(value, int | float)
            and self.header(key).dtype.kind not in "bmM"
            and 0 <= value < 1 << 63  # False for NaN
            and value == int(value)
        )
        if not is_count or not isinstance(value, int | float):
            raise DataError(
                f"{self.label(key)} is {repr(value)[:40]}, a whole number from 0 up is expected; "
                "correct it"
            )
        return int(value)


class MemoryArrays(NamedArrays):
    """Arrays in memory, or mapped."""

    def __init__(
        self,
        path: Path,
        arrays: Mapping[str, Array],
        notes: Iterable[str] = (),
        dropped: Iterable[str] = (),
    ) -> None:
        self.path, self._arrays, self.keys = path, arrays, set(arrays)
        self.notes, self.dropped = tuple(notes), frozenset(dropped)

    def header(self, key: str) -> ArrayHeader:
        """Shape and type of an array."""
        array = self.array(key)
        return ArrayHeader(array.shape, array.dtype)

    def flat(self, key: str) -> Iterator[Array]:
        """All elements, in pieces."""
        return row_chunks(self.array(key).reshape(-1))

    def array(self, key: str) -> Array:
        """The array itself."""
        if key not in self.keys:
            raise self.missing(key)
        return self._arrays[key]

    def _row_pieces(self, key: str, header: ArrayHeader) -> Iterator[Array]:
        return row_chunks(self.array(key))


@dataclass(frozen=True)
class NodeArrays:
    """Features, labels and split that are given apart from the edges; None: not given."""

    features: NamedArrays | None = None
    labels: NamedArrays | None = None
    split: NamedArrays | None = None
