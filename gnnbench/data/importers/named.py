"""Arrays by name, in a file or in memory, as the importers read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.data.store.layout import row_chunks
from gnnbench.errors import DataError


@dataclass(frozen=True)
class ArrayHeader:
    """Shape and type of an array that is not read yet."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class NamedArrays(ABC):
    """Arrays by name; ``path`` is told in errors. Use as a context manager."""

    path: Path
    keys: set[str]

    def __enter__(self) -> NamedArrays:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def first(self, names: tuple[str, ...]) -> str:
        """The first of some names that is there; empty where none is."""
        return next((name for name in names if name in self), "")

    def told(self, key: str) -> str:
        """How an array is named in an error."""
        return f"'{key}' in {self.path}"

    def missing(self, key: str) -> DataError:
        """What to raise for an array that is not there."""
        return DataError(f"{self.path} has no array '{key}'; get it again or add the array")

    @abstractmethod
    def header(self, key: str) -> ArrayHeader:
        """Shape and type of an array, without reading it."""

    @abstractmethod
    def flat(self, key: str) -> Iterator[np.ndarray]:
        """All elements in stored order, in pieces."""

    @abstractmethod
    def array(self, key: str) -> np.ndarray:
        """A whole array."""

    @abstractmethod
    def _row_pieces(self, key: str, header: ArrayHeader) -> Iterator[np.ndarray]: ...

    def rows(self, key: str) -> Iterator[np.ndarray]:
        """Pieces of a matrix along its first axis. Raises ``DataError`` where it is none."""
        header = self.header(key)
        if len(header.shape) != 2 or header.shape[1] < 1 or header.dtype.kind not in "fiub":
            raise DataError(
                f"{self.told(key)} has type {header.dtype} and shape {header.shape}, numbers "
                "in two dimensions are expected; correct the file"
            )
        for piece in self._row_pieces(key, header):
            yield piece.astype(np.float32) if piece.dtype.kind == "b" else piece

    def integers(self, key: str, length: int | None = None) -> np.ndarray:
        """A one-dimensional integer array (of a given length). Raises ``DataError`` otherwise."""
        header = self.header(key)
        if header.dtype.kind not in "iu" or len(header.shape) != 1:
            raise DataError(
                f"{self.told(key)} has type {header.dtype} and shape {header.shape}, one "
                "dimension of integers is expected; correct the file"
            )
        if length is not None and header.shape[0] != length:
            raise DataError(
                f"{self.told(key)} has {header.shape[0]} entries, {length} are expected; "
                "correct the file"
            )
        return self.array(key)

    def scalar(self, key: str, default: Any = None) -> Any:
        """A number or a text stored as an array of one element."""
        if key not in self.keys:
            return default
        values = self.array(key)
        if values.size != 1:
            raise DataError(f"{self.told(key)} must be a single value; correct the file")
        value = values.reshape(()).item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else value


class HeldArrays(NamedArrays):
    """Arrays in memory, or mapped."""

    def __init__(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        self.path, self._arrays, self.keys = path, arrays, set(arrays)

    def header(self, key: str) -> ArrayHeader:
        """Shape and type of an array."""
        array = self.array(key)
        return ArrayHeader(array.shape, array.dtype)

    def flat(self, key: str) -> Iterator[np.ndarray]:
        """All elements, in pieces."""
        return row_chunks(self.array(key).reshape(-1))

    def array(self, key: str) -> np.ndarray:
        """The array itself."""
        if key not in self.keys:
            raise self.missing(key)
        return self._arrays[key]

    def _row_pieces(self, key: str, header: ArrayHeader) -> Iterator[np.ndarray]:
        return row_chunks(self.array(key))


@dataclass(frozen=True)
class NodeArrays:
    """Features, labels and split that are given apart from the edges; None: not given."""

    features: NamedArrays | None = None
    labels: NamedArrays | None = None
    split: NamedArrays | None = None


def as_array(values: Any) -> np.ndarray:
    """A tensor of any device and layout, or anything else, as a numpy array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.layout) != "torch.strided":
            values = values.to_dense()
        if values.dtype.is_floating_point and values.element_size() < 4:
            values = values.float()  # numpy has no bfloat16
        values = values.numpy()
    return np.asarray(values)
