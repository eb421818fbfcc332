"""Write a graph folder: streamed, resumable, and under its final name only when complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.cast import as_stored, rounded
from gnnbench.datasets.store.csc import is_symmetric
from gnnbench.datasets.store.seal import seal, settled
from gnnbench.datasets.store.validate import validate
from gnnbench.version import __version__

# Told after every piece: step, bytes done, bytes in all (0: not known beforehand).
Progress = Callable[[str, int, int], None]

_SCRATCH = "scratch_"
_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn what a file system can refuse into one sentence. Raises ``UsageError``."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise UsageError(
                f"the disk of {folder} is full; free some space or set GNNBENCH_DATA to a folder "
                "on another disk"
            ) from None
        raise UsageError(
            f"cannot write below {folder} ({error.strerror or error}); set GNNBENCH_DATA to a "
            "folder that you may write"
        ) from None


def partial_folder(final: Path) -> Path:
    """Where a graph is made before it gets its name."""
    return final.parent / f".{final.name}.partial"


def folder_bytes(folder: Path) -> int:
    """Bytes of the files in a folder; 0 where it is not there."""
    return sum(p.stat().st_size for p in folder.iterdir()) if folder.is_dir() else 0


def free_disk_bytes(folder: Path) -> int:
    """Free on the disk that a folder is on, or would be."""
    there = next(f for f in (folder, *folder.parents) if f.exists())
    return shutil.disk_usage(there).free


@contextlib.contextmanager
def graph_lock(final: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a graph folder against other processes that would write it."""
    from filelock import FileLock  # which workers of other environments may lack

    with writing_to(final.parent):
        final.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(final.parent / f".{final.name}.lock")
        try:
            lock.acquire(blocking=False)
        except TimeoutError:
            if waiting is not None:
                waiting()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


class GraphWriter:
    """Collects the arrays of one graph in a hidden sibling folder and renames it at the end.

    ::

        with graph_lock(final), GraphWriter(final, fingerprint) as out:
            out.write("indptr", "int64", (n + 1,), [indptr])
            with out.map("indices", "int32", (e,)) as view:
                view[:] = ...
            out.write("features", "float32", (n, d), generator_of_row_pieces)
            ...
            out.finish(name=..., num_classes=..., source=..., licence=...)

    An array that an interrupted earlier writer with the same fingerprint finished is kept: then
    ``done(name)`` is true, and ``write`` does not even start its generator. Ctrl-C keeps finished
    arrays for the next time; an error removes everything. Names that start with ``scratch_`` hold
    what is needed in between and do not end up in the graph. The caller holds ``graph_lock``.
    """

    def __init__(
        self, final: Path, fingerprint: Mapping[str, Any], progress: Progress | None = None
    ) -> None:
        self.final = final
        self.folder = partial_folder(final)
        self.progress = progress
        self._fingerprint = json.loads(json.dumps(fingerprint))
        self._arrays: dict[str, dict[str, Any]] = {}
        self._rounded: dict[str, tuple[str, int]] = {}  # of an array: its given type, how many
        self._finished = False
        self._linked = False  # to what another graph's checksums are of
        self._writing: str | None = None
        self._pool = ThreadPoolExecutor(4)  # of what the disk is asked to keep, beside all else
        self._syncing: list[Future[None]] = []

    def __enter__(self) -> GraphWriter:
        with writing_to(self.final.parent):
            self._take_over()
            self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown()
        if self._finished:
            return
        if kind is not None and not issubclass(kind, Exception) and self._arrays:
            if self._writing:
                layout.file_of(self.folder, self._writing).unlink(missing_ok=True)
            return
        shutil.rmtree(self.folder, ignore_errors=True)

    def _take_over(self) -> None:
        """Keep the arrays that an interrupted writer of the same graph left complete."""
        state_file = self.folder / "state.json"
        try:
            state = json.loads(state_file.read_text()) if state_file.is_file() else {}
            if state["fingerprint"] == self._fingerprint:
                for name, entry in state["arrays"].items():
                    path = layout.file_of(self.folder, name)
                    if layout.is_made(entry) or (
                        path.is_file() and layout.sha256_file(path) == entry["sha256"]
                    ):
                        self._arrays[name] = entry
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._arrays = {}
        if not self._arrays and self.folder.exists():
            shutil.rmtree(self.folder)

    def done(self, *names: str) -> bool:
        """Whether all these arrays are complete."""
        return all(name in self._arrays for name in names)

    def forget(self, name: str) -> None:
        """Make an array anew that an interrupted writer left; for arrays that belong together."""
        self._arrays.pop(name, None)

    def read(self, name: str) -> np.ndarray:
        """Read-only view of a complete array; of one that is made, shape and dtype alone."""
        return layout.checked_array(self.folder, name, self._arrays[name])

    def write(
        self,
        name: str,
        dtype: str,
        shape: tuple[int | None, ...],
        pieces: Iterable[np.ndarray],
    ) -> None:
        """Append pieces along the first axis; ``shape[0]`` None: as many as come.

        Raises ``DataError`` where the pieces do not fill the shape or do not fit the dtype.
        """
        if self.done(name):
            return
        self._check_name(name, dtype)
        width = tuple(int(s) for s in shape[1:] if s is not None)
        total = layout.nbytes(dtype, (shape[0], *width)) if shape[0] is not None else 0
        digest, rows, written = hashlib.sha256(), 0, 0
        with ThreadPoolExecutor(1) as hashing, self._open(name, total) as file:
            for piece in pieces:
                data = as_stored(name, piece, dtype)
                self._count_rounded(name, np.asarray(piece), data)
                if data.shape[1:] != width:
                    raise DataError(
                        f"'{name}' got rows of shape {data.shape[1:]} instead of {width}; "
                        "correct the input"
                    )
                buffer = memoryview(data.reshape(-1).view(np.uint8).data)
                hashed = hashing.submit(digest.update, buffer)  # takes longer than the writing
                with writing_to(self.final.parent):
                    file.write(buffer)
                hashed.result()  # the next piece may lie where this one does
                rows, written = rows + len(data), written + len(buffer)
                self._tell(name, written, total)
        if shape[0] is not None and rows != shape[0]:
            raise DataError(f"'{name}' got {rows} rows instead of {shape[0]}; correct the input")
        self._complete(name, dtype, (rows, *width), digest.hexdigest())

    @contextlib.contextmanager
    def map(self, name: str, dtype: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
        """A writable array in the file itself, for results that do not come in order."""
        self._check_name(name, dtype)
        size = layout.nbytes(dtype, shape)
        with self._open(name, size) as file, writing_to(self.final.parent):
            if size:
                # A hole would end in SIGBUS on a full disk; reserved space fails here instead.
                os.posix_fallocate(file.fileno(), 0, size)
        if size:
            view = np.memmap(
                layout.file_of(self.folder, name), layout.little_endian(dtype), "r+", shape=shape
            )
            yield view
            view.flush()
        else:
            yield np.empty(shape, layout.little_endian(dtype))
        self._complete(name, dtype, shape, layout.sha256_file(layout.file_of(self.folder, name)))
        self._tell(name, size, size)

    def declare(self, name: str, dtype: str, shape: tuple[int, ...], maker: str) -> None:
        """An array without a file, which ``maker`` makes from ``meta.json`` when it is needed."""
        self._check_name(name, dtype)
        size = layout.nbytes(dtype, shape)
        self._note(name, {"dtype": dtype, "shape": list(shape), "bytes": size, "made": maker})

    def link(self, name: str, source: Path, entry: Mapping[str, Any]) -> None:
        """Take over an array of another prepared graph, without a copy where the disk allows."""
        if self.done(name):
            return
        if layout.is_made(entry):
            return self.declare(name, entry["dtype"], tuple(entry["shape"]), entry["made"])
        self._check_name(name, entry["dtype"])
        self._linked = True
        origin, target = layout.file_of(source, name), layout.file_of(self.folder, name)
        target.unlink(missing_ok=True)
        with writing_to(self.final.parent):
            try:
                os.link(origin, target)
            except OSError:
                shutil.copyfile(origin, target)
        self._complete(name, entry["dtype"], tuple(entry["shape"]), entry["sha256"])

    def finish(self, *, name: str, num_classes: int, **about: Any) -> Path:
        """Check everything, write ``meta.json``, seal, and move the folder to its final name.

        What has files of another graph is not sealed: nobody has read them for it.

        ``about`` goes into ``meta.json`` as it is: ``source``, ``licence``, ``symmetric`` (found
        out where not given), ``features``, ``labels``, ``split``, ``seed``, ``notes`` ...
        """
        missing = [array for array in layout.ARRAYS if not self.done(array)]
        if missing:
            raise DataError(f"{name}: nothing was given for {', '.join(missing)}")
        kept = [*layout.ARRAYS, *(array for array in layout.OPTIONAL if self.done(array))]
        arrays = {array: self.read(array) for array in kept}
        self._tell("check", 0, 1)
        made = layout.is_made(self._arrays["features"])
        validate(name, arrays, num_classes, contents_of_features=not made)
        if about.get("symmetric") is None:
            about["symmetric"] = is_symmetric(arrays["indptr"], arrays["indices"])
        notes = [*about.get("notes", []), *self._notes(arrays)]
        if notes or "notes" in about:
            about["notes"] = notes
        about.setdefault("source", "")
        about.setdefault("licence", "")
        meta: dict[str, Any] = {
            "format": layout.FORMAT,
            "format_version": layout.FORMAT_VERSION,
            "created_by": f"gnnbench {__version__}",
            "name": name,
            "num_nodes": len(arrays["indptr"]) - 1,
            "num_edges": len(arrays["indices"]),
            "feature_dim": int(arrays["features"].shape[1]),
            "num_classes": int(num_classes),
            **{k: len(arrays[f"{k}_idx"]) for k in ("train", "val", "test")},
            **about,
            "fingerprint": self._fingerprint,
            "arrays": {array: self._arrays[array] for array in kept},
        }
        del arrays
        with writing_to(self.final.parent):
            for synced in self._syncing:
                synced.result()
            for path in self.folder.iterdir():
                if path.name.startswith(_SCRATCH):
                    path.unlink()
            with (self.folder / layout.META).open("w", encoding="utf-8") as file:
                file.write(layout.meta_text(meta))
                os.fsync(file.fileno())
            (self.folder / "state.json").unlink(missing_ok=True)
            if not self._linked:  # every checksum is of what was written here
                seal(self.folder, settled(self.folder))
            _sync_folder(self.folder)
            _replace_folder(self.folder, self.final)
        self._finished = True
        self._tell("check", 1, 1)
        return self.final

    def _count_rounded(self, name: str, given: np.ndarray, stored: np.ndarray) -> None:
        changed = rounded(given, stored)
        if changed:
            before = self._rounded.get(name, ("", 0))[1]
            self._rounded[name] = str(given.dtype), before + changed

    def _notes(self, arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
        """What was changed while writing, and what training leaves out."""
        for name, (dtype, count) in self._rounded.items():
            yield f"{name} rounded from {dtype} to {self._arrays[name]['dtype']}: {count:,} values"
        for first, second in itertools.combinations(("train", "val", "test"), 2):
            both = np.isin(arrays[f"{first}_idx"], arrays[f"{second}_idx"], assume_unique=True)
            if both.any():
                yield f"nodes in {first} and in {second}: {np.count_nonzero(both):,}, kept in both"
        train = arrays["train_idx"]
        unlabelled = int(np.count_nonzero(arrays["labels"][train] < 0))
        if unlabelled:
            yield (
                f"training nodes without a label, which no loss counts: {unlabelled:,} of "
                f"{len(train):,}"
            )

    def _check_name(self, name: str, dtype: str) -> None:
        if name.startswith(_SCRATCH):
            return
        if dtype not in {**layout.ARRAYS, **layout.OPTIONAL}.get(name, ()):
            raise DataError(f"a graph has no array '{name}' of type {dtype}")

    @contextlib.contextmanager
    def _open(self, name: str, size: int) -> Iterator[Any]:
        self._writing = name
        with writing_to(self.final.parent):
            if size > shutil.disk_usage(self.folder).free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            path = layout.file_of(self.folder, name)
            # A fresh inode: an earlier file may be shared with another graph by a hard link.
            path.unlink(missing_ok=True)
            file = path.open("x+b")
        try:
            yield file
            with writing_to(self.final.parent):
                file.flush()
                self._syncing.append(self._pool.submit(_sync_own, os.dup(file.fileno())))
        finally:
            with contextlib.suppress(OSError):
                file.close()

    def _complete(self, name: str, dtype: str, shape: tuple[int, ...], digest: str) -> None:
        entry = {
            "file": f"{name}.bin",
            "dtype": dtype,
            "shape": list(shape),
            "bytes": layout.nbytes(dtype, shape),
            "sha256": digest,
        }
        self._note(name, entry)

    def _note(self, name: str, entry: dict[str, Any]) -> None:
        self._arrays[name] = entry
        self._writing = None
        state = {"fingerprint": self._fingerprint, "arrays": self._arrays}
        with writing_to(self.final.parent):
            fresh = self.folder / "state.json.new"
            fresh.write_text(json.dumps(state))
            fresh.replace(self.folder / "state.json")

    def _tell(self, step: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(step, done, total)


def _sync_own(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace_folder(fresh: Path, final: Path) -> None:
    """Rename; an older folder of that name stands aside until the new one is in place."""
    aside = final.parent / f".{final.name}.old"
    if aside.exists():
        shutil.rmtree(aside)
    if final.exists():
        final.rename(aside)
    fresh.rename(final)
    _sync_folder(final.parent)
    shutil.rmtree(aside, ignore_errors=True)
