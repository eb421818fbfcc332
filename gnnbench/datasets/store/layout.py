"""What a prepared graph looks like on disk: one folder, ``meta.json`` and raw arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.core.errors import DataError, GnnbenchError, NoGraphError
from gnnbench.datasets.store.schema import check_meta

FORMAT = "gnnbench-graph"
FORMAT_VERSION = 1
META = "meta.json"
CHUNK_BYTES = 1 << 24
_META_BYTES = 1 << 24  # no meta.json is longer

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
# Arrays that only some graphs have: `node_ids`, the ids that an imported source gave its nodes;
# `weights` of the edges, in the order of `indices`.
OPTIONAL: dict[str, tuple[str, ...]] = {"node_ids": ("int64",), "weights": ("float32",)}
_NO_DIGEST = "0" * 64


def little_endian(dtype: str) -> np.dtype[Any]:
    """The dtype with the byte order that the store uses."""
    return np.dtype(dtype).newbyteorder("<")


def file_of(folder: Path, array: str) -> Path:
    """Where an array of a graph folder lies."""
    return folder / f"{array}.bin"


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Size of an array in bytes."""
    return math.prod(int(size) for size in shape) * np.dtype(dtype).itemsize


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def map_array(folder: Path, array: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read-only view of a stored array, without reading it."""
    if nbytes(dtype, shape) == 0:  # an empty file cannot be mapped
        return np.empty(shape, little_endian(dtype))
    return np.memmap(file_of(folder, array), little_endian(dtype), "r", shape=shape)


def is_made(entry: Mapping[str, Any]) -> bool:
    """Whether an array has no file: its bytes are made from the recipe whenever they are needed
    (``gnnbench.datasets.generators.generated_features``)."""
    return "made" in entry


def checked_array(folder: Path, array: str, entry: Mapping[str, Any]) -> np.ndarray:
    """A stored array as :func:`map_array`; of one without a file only shape and dtype are right."""
    shape = tuple(entry["shape"])
    if is_made(entry):
        return np.broadcast_to(np.zeros((), little_endian(entry["dtype"])), shape)
    return map_array(folder, array, entry["dtype"], shape)


def row_chunks(array: np.ndarray, chunk_bytes: int = 0) -> Iterator[np.ndarray]:
    """Consecutive pieces along the first axis, each of about ``chunk_bytes`` (0: a default)."""
    row = max(1, array.nbytes // max(1, len(array)))
    step = max(1, (chunk_bytes or CHUNK_BYTES) // row)
    for start in range(0, len(array), step):
        yield array[start : start + step]


def meta_text(meta: dict[str, Any]) -> str:
    """``meta.json`` with its own SHA-256 inside, taken with the digest's place zeroed."""
    body = json.dumps({**meta, "meta_sha256": _NO_DIGEST}, indent=2, ensure_ascii=False) + "\n"
    # A file name that is not UTF-8 has lone surrogates, which JSON can only hold as escapes.
    body = body.encode(errors="backslashreplace").decode()
    return body.replace(_NO_DIGEST, hashlib.sha256(body.encode()).hexdigest())


def meta_is_intact(raw: bytes, meta: dict[str, Any]) -> bool:
    """Whether every byte of ``meta.json`` is as it was written."""
    digest = meta.get("meta_sha256")
    if not isinstance(digest, str) or len(digest) != 64:
        return False
    body = raw.replace(digest.encode(), _NO_DIGEST.encode())
    return hashlib.sha256(body).hexdigest() == digest


def read_meta(folder: Path) -> dict[str, Any]:
    """Parse and check ``meta.json``.

    Raises ``NoGraphError`` where there is no graph, ``DataError`` where it is damaged, has a value
    of the wrong type or is of a format that this version does not know.
    """
    path = folder / META
    again = "delete the folder and prepare the dataset again"
    if path.exists() and not path.is_file():  # a pipe would never end
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
        if not isinstance(meta, dict) or not meta_is_intact(raw, meta):
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
    return meta


def _short(value: Any) -> str:
    return repr(value)[:40] if isinstance(value, str | int | None) else type(value).__name__


def check_sizes(folder: Path, meta: dict[str, Any]) -> None:
    """Cheap structural check: dtypes, shapes and file sizes fit together. Raises ``DataError``."""
    again = "delete the folder and prepare the dataset again"
    n, e, d = (int(meta[k]) for k in ("num_nodes", "num_edges", "feature_dim"))
    shapes = {"indptr": [n + 1], "indices": [e], "features": [n, d], "labels": [n]}
    shapes |= {"node_ids": [n], "weights": [e]}
    shapes |= {f"{split}_idx": [meta[split]] for split in ("train", "val", "test")}
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
        if is_made(entry):
            continue
        path = file_of(folder, array)
        want = nbytes(entry["dtype"], tuple(entry["shape"]))
        have = path.stat().st_size if path.is_file() else -1
        if have != want:
            found = f"is {have} bytes long" if have >= 0 else "is missing"
            raise DataError(f"{path} {found}, {want} bytes are expected; {again}")


def intact(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether a graph is stored in ``folder``, intact by size and made as ``identity`` says."""
    try:
        meta = read_meta(folder)
        check_sizes(folder, meta)
    except (GnnbenchError, KeyError, TypeError, ValueError):
        return False
    return {k: meta.get("fingerprint", {}).get(k) for k in identity} == identity
