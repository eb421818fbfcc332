"""Write a graph folder: streamed, resumable, and renamed to its final name only when complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedRandom
from pathlib import Path
from typing import Unpack

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.cast import PieceCheck, as_stored, count_rounded
from gnnbench.datasets.store.disk import (
    BackgroundSync,
    Progress,
    replace_folder,
    sync_folder,
    writing_to,
)
from gnnbench.datasets.store.meta import array_notes, graph_meta
from gnnbench.datasets.store.partial import PartialGraph
from gnnbench.datasets.store.schema import ArrayEntry, Fingerprint, GraphDescription
from gnnbench.datasets.store.seal import seal, settled_stamp
from gnnbench.datasets.store.validate import validate
from gnnbench.schema.arrays import Array

_SCRATCH = "scratch_"


class GraphWriter:
    """Writes the arrays of one graph into a hidden sibling folder and renames it at the end.

    ::

        with graph_lock(final), GraphWriter(final, fingerprint) as out:
            out.write("indptr", "int64", (n + 1,), [indptr])
            out.write("features", "float32", (n, d), generator_of_row_chunks)
            ...
            out.finish(name=..., num_classes=..., source=..., licence=...)

    Arrays that an interrupted writer with the same fingerprint completed are kept: ``done(name)``
    is true for them, and ``write`` does not start its generator. Ctrl-C keeps complete arrays; an
    error removes everything. Arrays named ``scratch_...`` are temporary. The caller has
    ``graph_lock``.
    """

    def __init__(
        self, final: Path, fingerprint: Fingerprint, progress: Progress | None = None
    ) -> None:
        self.final = final
        self.progress = progress
        self._partial = PartialGraph(final, fingerprint)
        self.folder = self._partial.folder
        self._rounded: dict[str, tuple[str, int]] = {}  # array -> source dtype, changed values
        self._finished = False
        self._has_linked_files = False
        self._writing: str | None = None
        self._sync = BackgroundSync()

    def __enter__(self) -> GraphWriter:
        self._partial.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sync.close()
        if self._finished:
            return
        if kind is not None and not issubclass(kind, Exception) and self._partial.entries:
            if self._writing:
                layout.file_of(self.folder, self._writing).unlink(missing_ok=True)
            return
        self._partial.discard()

    def done(self, *names: str) -> bool:
        """Whether all these arrays are complete."""
        return all(name in self._partial.entries for name in names)

    def forget(self, name: str) -> None:
        """Write an array again even if an interrupted writer completed it."""
        self._partial.entries.pop(name, None)

    def read(self, name: str) -> Array:
        """Read-only view of a complete array; for a generated one only shape and dtype are real."""
        return layout.stored_array(self.folder, name, self._partial.entries[name])

    def write(
        self,
        name: str,
        dtype: str,
        shape: tuple[int | None, ...],
        pieces: Iterable[Array],
        origin: str = "",
    ) -> None:
        """Append ``pieces`` along the first axis; ``shape[0]`` None: as many rows as come.

        Raises ``DataError``, which names ``origin`` (default: the array), if the pieces do not
        fill the shape or do not fit the dtype, and for features and weights that are not finite.
        """
        if self.done(name):
            return
        _check_name(name, dtype)
        width = tuple(int(s) for s in shape[1:] if s is not None)
        total = layout.nbytes(dtype, (shape[0], *width)) if shape[0] is not None else 0
        check = PieceCheck(name, origin or f"'{name}'")
        digest, rows, written = hashlib.sha256(), 0, 0
        with ThreadPoolExecutor(1) as hashing, self._open(name, total) as file:
            for piece in pieces:
                piece = np.asarray(piece)
                check(piece)
                data = as_stored(name, piece, dtype)
                self._count_rounded(name, piece, data)
                if data.shape[1:] != width:
                    raise DataError(
                        f"'{name}' got rows of shape {data.shape[1:]} instead of {width}; "
                        "correct the input"
                    )
                buffer = memoryview(data.reshape(-1).view(np.uint8).data)
                hashed = hashing.submit(digest.update, buffer)  # slower than the write
                with writing_to(self.final.parent):
                    file.write(buffer)
                hashed.result()  # the next piece may reuse this memory
                rows, written = rows + len(data), written + len(buffer)
                self._report(name, written, total)
        if shape[0] is not None and rows != shape[0]:
            raise DataError(f"'{name}' got {rows} rows instead of {shape[0]}; correct the input")
        self._complete(name, dtype, [rows, *width], digest.hexdigest())

    def declare(self, name: str, dtype: str, shape: tuple[int, ...], generator: str) -> None:
        """Record an array without a file; ``generator`` makes it from ``meta.json`` on demand."""
        _check_name(name, dtype)
        size = layout.nbytes(dtype, shape)
        self._add(name, {"dtype": dtype, "shape": list(shape), "bytes": size, "made": generator})

    def link(self, name: str, source: Path, entry: ArrayEntry) -> None:
        """Take an array from another prepared graph by a hard link, or a copy across disks."""
        if self.done(name):
            return
        if layout.is_generated(entry):
            return self.declare(name, entry["dtype"], tuple(entry["shape"]), entry["made"])
        _check_name(name, entry["dtype"])
        self._has_linked_files = True
        origin, target = layout.file_of(source, name), layout.file_of(self.folder, name)
        target.unlink(missing_ok=True)
        with writing_to(self.final.parent):
            try:
                os.link(origin, target)
            except OSError:
                shutil.copyfile(origin, target)
        self._complete(name, entry["dtype"], entry["shape"], entry["sha256"])

    def finish(self, *, name: str, num_classes: int, **about: Unpack[GraphDescription]) -> Path:
        """Validate, write ``meta.json``, seal, and rename the folder to its final name.

        A graph with linked files is not sealed, because this writer did not read them. ``about``
        goes into ``meta.json``; ``symmetric`` is determined if missing or None.
        """
        entries = self._partial.entries
        missing = [array for array in layout.ARRAYS if array not in entries]
        if missing:
            raise DataError(f"{name}: nothing was given for {', '.join(missing)}")
        names = [*layout.ARRAYS, *(array for array in layout.OPTIONAL if array in entries)]
        arrays = {array: self.read(array) for array in names}
        self._report("check", 0, 1)
        validate(name, arrays, num_classes)
        notes = [
            f"{array} rounded from {dtype} to {entries[array]['dtype']}: {count:,} values"
            for array, (dtype, count) in self._rounded.items()
        ]
        notes = [*about.get("notes", []), *notes, *array_notes(arrays)]
        if notes or "notes" in about:
            about["notes"] = notes
        meta = graph_meta(name, num_classes, arrays, about)
        meta["fingerprint"] = self._partial.fingerprint
        meta["arrays"] = {array: entries[array] for array in names}
        del arrays
        with writing_to(self.final.parent):
            self._sync.wait()
            for path in self.folder.iterdir():
                if path.name.startswith(_SCRATCH):
                    path.unlink()
            with (self.folder / layout.META).open("w", encoding="utf-8") as file:
                file.write(layout.meta_text(meta))
                os.fsync(file.fileno())
            self._partial.remove_state()
            if not self._has_linked_files:
                seal(self.folder, settled_stamp(self.folder))
            sync_folder(self.folder)
            replace_folder(self.folder, self.final)
        self._finished = True
        self._report("check", 1, 1)
        return self.final

    def _count_rounded(self, name: str, source: Array, stored: Array) -> None:
        changed = count_rounded(source, stored)
        if changed:
            before = self._rounded.get(name, ("", 0))[1]
            self._rounded[name] = str(source.dtype), before + changed

    @contextlib.contextmanager
    def _open(self, name: str, size: int) -> Iterator[BufferedRandom]:
        self._writing = name
        with writing_to(self.final.parent):
            if size > shutil.disk_usage(self.folder).free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            path = layout.file_of(self.folder, name)
            # A new inode: a hard link may share the old one with another graph.
            path.unlink(missing_ok=True)
            file = path.open("x+b")
        try:
            yield file
            with writing_to(self.final.parent):
                file.flush()
                self._sync.start(file.fileno())
        finally:
            with contextlib.suppress(OSError):
                file.close()

    def _complete(self, name: str, dtype: str, shape: list[int], digest: str) -> None:
        self._add(name, _file_entry(name, dtype, shape, digest))

    def _add(self, name: str, entry: ArrayEntry) -> None:
        self._partial.add(name, entry)
        self._writing = None

    def _report(self, step: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(step, done, total)


def _check_name(name: str, dtype: str) -> None:
    """Raise ``DataError`` unless a graph may have such an array, or it is temporary."""
    if name.startswith(_SCRATCH):
        return
    if dtype not in {**layout.ARRAYS, **layout.OPTIONAL}.get(name, ()):
        raise DataError(f"a graph has no array '{name}' of type {dtype}")


def _file_entry(name: str, dtype: str, shape: list[int], digest: str) -> ArrayEntry:
    size = layout.nbytes(dtype, tuple(shape))
    return {
        "file": f"{name}.bin", "dtype": dtype, "shape": list(shape), "bytes": size,
        "sha256": digest,
    }  # fmt: skip
