"""Read raw sources in chunks; every fault of a file is a ``DataError``."""

from __future__ import annotations

import contextlib
import gzip
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.named import ArrayHeader, NamedArrays
from gnnbench.datasets.importers.room import check_memory
from gnnbench.schema.arrays import Array

_PIECE_BYTES = 1 << 24
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    struct.error,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert any exception while reading into a ``DataError`` that names the file."""
    try:
        yield
    except _BROKEN as error:
        if isinstance(error, FileNotFoundError):
            raise DataError(f"{path} is missing; get the dataset again") from None
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(
            f"{path} is truncated, damaged or not what it should be ({detail}); get it again"
        ) from None


_header_2 = np.lib.format.read_array_header_2_0


class NpzFile(NamedArrays):
    """An ``.npz`` whose arrays are read without unpickling and, where large, in pieces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            self._zip = zipfile.ZipFile(path)
        self.keys = {n.removesuffix(".npy") for n in self._zip.namelist() if n.endswith(".npy")}

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def _open(self, key: str) -> tuple[IO[bytes], ArrayHeader]:
        if key not in self.keys:
            raise self.missing(key)
        file = self._zip.open(f"{key}.npy")
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"array format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2
        try:
            shape, fortran, dtype = read(file)
        except Exception as error:  # a damaged header ends in any of Python's parse errors
            raise ValueError(str(error)) from None
        if dtype.hasobject:
            raise ValueError(f"'{key}' holds pickled objects, which are never loaded")
        size, stored = math.prod(shape) * dtype.itemsize, self._zip.getinfo(f"{key}.npy").file_size
        if min(shape, default=0) < 0 or size + file.tell() != stored:
            raise ValueError(f"the header of '{key}' says {size} bytes, the file has another size")
        return file, ArrayHeader(shape, dtype, fortran)

    def header(self, key: str) -> ArrayHeader:
        """Shape and type of an array, without reading it."""
        with reading(self.path):
            file, header = self._open(key)
            file.close()
        return header

    def flat(
        self, key: str, start: int = 0, stop: int | None = None, multiple: int = 1
    ) -> Iterator[Array]:
        """Elements ``start`` to ``stop`` in stored order, in pieces of a ``multiple`` of elements.

        Reading to the end checks the CRC.
        """
        with reading(self.path):
            file, header = self._open(key)
            with file:
                stop = header.size if stop is None else stop
                size = header.dtype.itemsize
                skip = start * size
                while skip > 0:  # seeking would switch the CRC check off
                    skip -= len(file.read(min(skip, _PIECE_BYTES))) or skip
                step = max(1, _PIECE_BYTES // max(1, size * multiple)) * multiple
                for begin in range(start, stop, step):
                    want = (min(begin + step, stop) - begin) * size
                    piece = file.read(want)
                    if len(piece) != want:
                        raise EOFError(f"'{key}' ends early")
                    yield np.frombuffer(piece, header.dtype)
                if stop == header.size and file.read(1):
                    raise ValueError(f"'{key}' is longer than its header says")

    def array(self, key: str) -> Array:
        """A whole array."""
        header = self.header(key)
        check_memory(2 * header.size * header.dtype.itemsize, self.label(key))
        pieces = list(self.flat(key))
        whole = np.concatenate(pieces) if pieces else np.empty(0, header.dtype)
        return whole.reshape(header.shape, order="F" if header.fortran else "C")

    def _row_pieces(self, key: str, header: ArrayHeader) -> Iterator[Array]:
        if header.fortran:
            yield self.array(key)
            return
        width = header.shape[1]
        for piece in self.flat(key, multiple=width):
            yield piece.reshape(-1, width)


def csv_pieces(path: Path, dtype: str, rows: int = 1 << 20) -> Iterator[Array]:
    """Rows of a headerless ``.csv.gz`` as ``[*, columns]``, in pieces.

    An empty line is a row of NaN in columns of floats, since the place of a row says which node it
    is. In columns of integers it is skipped.
    """
    import pandas as pd

    with reading(path), gzip.open(path, "rb") as file:
        try:
            for frame in pd.read_csv(
                file, header=None, chunksize=rows, dtype=dtype,
                skip_blank_lines=np.dtype(dtype).kind != "f",
            ):  # fmt: skip
                yield frame.to_numpy()
        except pd.errors.EmptyDataError:
            return


def csv_column(path: Path, dtype: str) -> Array:
    """The values of a headerless ``.csv.gz`` of one column. Raises ``DataError`` for several."""
    pieces = []
    for piece in csv_pieces(path, dtype):
        if piece.shape[1] != 1:
            raise DataError(f"{path} has {piece.shape[1]} columns instead of 1; get it again")
        pieces.append(piece[:, 0])
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)
