"""Layout of a prepared graph on disk: one folder with ``meta.json`` and raw arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from gnnbench.core.errors import DataError, GnnbenchError, NoGraphError
from gnnbench.datasets.store.schema import ArrayEntry, Fingerprint, GraphMeta, check_meta
from gnnbench.schema.arrays import Array, ArrayType

FORMAT = "gnnbench-graph"
FORMAT_VERSION = 1
META = "meta.json"
CHUNK_BYTES = 1 << 24
_META_BYTES = 1 << 24  # largest meta.json

# Array name -> dtypes it may have. All little-endian, C order, no header; file "<name>.bin".
ARRAYS: dict[str, tuple[str, ...]] = {
    "indptr": ("int64",),
    "indices": ("int32", "int64"),
    "features": ("float32",),
    "labels": ("int64",),
    "train_idx": ("int64",),
    "val_idx": ("int64",),
    "test_idx": ("int64",),
}
# Optional arrays: `node_ids`, the ids of the nodes in an imported source; edge `weights`, in the
# order of `indices`.
OPTIONAL: dict[str, tuple[str, ...]] = {"node_ids": ("int64",), "weights": ("float32",)}
_NO_DIGEST = "0" * 64


def little_endian(dtype: str) -> ArrayType:
    """The dtype in the byte order of the store."""
    return np.dtype(dtype).newbyteorder("<")


def file_of(folder: Path, array: str) -> Path:
    """Path of an array's file."""
    return folder / f"{array}.bin"


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Size of an array in bytes."""
    return math.prod(int(size) for size in shape) * np.dtype(dtype).itemsize


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def map_array(folder: Path, array: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """Map a stored array read-only."""
    if nbytes(dtype, shape) == 0:  # an empty file cannot be mapped
        return np.empty(shape, little_endian(dtype))
    return np.memmap(file_of(folder, array), little_endian(dtype), "r", shape=shape)


def is_generated(entry: ArrayEntry) -> bool:
    """Whether an array has no file, since ``gnnbench.datasets.generators.generated_features`` makes
    it on demand."""
    return "made" in entry


def stored_array(folder: Path, array: str, entry: ArrayEntry) -> Array:
    """Map an array read-only; for one without a file, zeros of its shape and dtype."""
    shape = tuple(entry["shape"])
    if is_generated(entry):
        return np.broadcast_to(np.zeros((), little_endian(entry["dtype"])), shape)
    return map_array(folder, array, entry["dtype"], shape)


def row_chunks(array: Array, chunk_bytes: int = 0) -> Iterator[Array]:
    """Consecutive chunks along the first axis, about ``chunk_bytes`` each (0: ``CHUNK_BYTES``)."""
    row = max(1, array.nbytes // max(1, len(array)))
    step = max(1, (chunk_bytes or CHUNK_BYTES) // row)
    for start in range(0, len(array), step):
        yield array[start : start + step]


def meta_text(meta: GraphMeta) -> str:
    """``meta.json`` as text, with its own SHA-256, computed over zeros in place of the digest."""
    body = json.dumps({**meta, "meta_sha256": _NO_DIGEST}, indent=2, ensure_ascii=False) + "\n"
    # File names that are not UTF-8 have lone surrogates, which JSON needs as escapes.
    body = body.encode(errors="backslashreplace").decode()
    return body.replace(_NO_DIGEST, hashlib.sha256(body.encode()).hexdigest())


def _meta_is_intact(raw: bytes, meta: dict[str, object]) -> bool:
    """Whether ``meta.json`` agrees with the digest in it."""
    digest = meta.get("meta_sha256")
    if not isinstance(digest, str) or len(digest) != 64:
        return False
    body = raw.replace(digest.encode(), _NO_DIGEST.encode())
    return hashlib.sha256(body).hexdigest() == digest


def read_meta(folder: Path) -> GraphMeta:
    """Parse and check ``meta.json``.

    Raises ``NoGraphError`` if there is no graph, ``DataError`` if the file is damaged, has a value
    of the wrong type or an unknown format version.
    """
    path = folder / META
    again = "delete the folder and prepare the dataset again"
    if path.exists() and not path.is_file():  # reading a pipe would block
        raise DataError(f"{path} is no file; {again}")
    try:
        with path.open("rb") as file:
            raw = file.read(_META_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NoGraphError(
            f"there is no prepared graph in {folder}; run 'gnnbench data prepare' first"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}); check its permissions") from None
    try:
        meta = json.loads(raw) if len(raw) <= _META_BYTES else None
        if not isinstance(meta, dict) or not _meta_is_intact(raw, meta):
            raise ValueError
    except (ValueError, RecursionError):
        raise DataError(f"{path} is damaged; {again}") from None
    if meta.get("format") != FORMAT or meta.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"{path} has format {_short(meta.get('format'))} version "
            f"{_short(meta.get('format_version'))}, "
            f"and this gnnbench reads version {FORMAT_VERSION}; {again}"
        )
    try:
        check_meta(meta, {**ARRAYS, **OPTIONAL})
    except ValueError as error:
        raise DataError(f"{path} is malformed: {error}; {again}") from None
    return cast(GraphMeta, meta)


def _short(value: object) -> str:
    return repr(value)[:40] if isinstance(value, str | int | None) else type(value).__name__


def check_sizes(folder: Path, meta: GraphMeta) -> None:
    """Check that dtypes, shapes, counts and file sizes agree. Raises ``DataError``."""
    again = "delete the folder and prepare the dataset again"
    n, e, d = meta["num_nodes"], meta["num_edges"], meta["feature_dim"]
    shapes = {"indptr": [n + 1], "indices": [e], "features": [n, d], "labels": [n]}
    shapes |= {"node_ids": [n], "weights": [e]}
    shapes |= {"train_idx": [meta["train"]], "val_idx": [meta["val"]]}
    shapes |= {"test_idx": [meta["test"]]}
    optional = {k: v for k, v in OPTIONAL.items() if k in meta["arrays"]}
    for array, dtypes in {**ARRAYS, **optional}.items():
        entry = meta["arrays"].get(array)
        if entry is None or entry["dtype"] not in dtypes:
            raise DataError(f"{folder / META} has no usable array '{array}'; {again}")
        if array in shapes and entry["shape"] != shapes[array]:
            raise DataError(
                f"'{array}' in {folder} has shape {entry['shape']} instead of {shapes[array]}; "
                f"{again}"
            )
        if is_generated(entry):
            continue
        path = file_of(folder, array)
        expected = nbytes(entry["dtype"], tuple(entry["shape"]))
        size = path.stat().st_size if path.is_file() else -1
        if size != expected:
            problem = f"is {size} bytes long" if size >= 0 else "is missing"
            raise DataError(f"{path} {problem}, {expected} bytes are expected; {again}")


def is_intact(folder: Path, identity: Fingerprint) -> bool:
    """Whether ``folder`` has a graph with intact sizes and with ``identity`` in its fingerprint."""
    try:
        meta = read_meta(folder)
        check_sizes(folder, meta)
    except (GnnbenchError, KeyError, TypeError, ValueError):
        return False
    return {k: meta.get("fingerprint", {}).get(k) for k in identity} == identity
