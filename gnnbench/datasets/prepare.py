"""Prepare a dataset: import or generate it into the store. Idempotent and resumable."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.core import host_memory, names
from gnnbench.core.errors import DataError, HostMemoryError, UsageError
from gnnbench.datasets.cost import Cost, Shape, cost, shape
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.make import PreparationRequest, make_graph
from gnnbench.datasets.names import DatasetRef, resolve
from gnnbench.datasets.paths import data_root
from gnnbench.datasets.sources import source_path
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.disk import Progress, folder_bytes, free_disk_bytes, graph_lock
from gnnbench.datasets.store.partial import partial_folder
from gnnbench.datasets.store.seal import Stamp, sealed_stamp, stamp

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph


def prepare(
    name: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Return the folder of a prepared dataset, which is made first if necessary.

    An existing folder with intact sizes is returned at once. Otherwise the graph is made in a
    hidden sibling folder, which resumes an interrupted call, and is renamed when it is complete and
    checked. ``seed`` decides everything random (twins, stand-in features, splits).

    Raises ``UsageError`` for an unknown name, an unwritable folder or a full disk,
    ``HostMemoryError`` for too little memory (both before work begins), ``MissingError`` with
    instructions if the source is not on this machine, ``DataError`` for a bad source.
    """
    return _prepare(PreparationRequest(resolve(name, root), data_root(root), seed, progress))


def prepare_verified(
    name: str, *, root: str | Path | None = None, seed: int = 0
) -> tuple[Path, Stamp]:
    """:func:`prepare`, then check every byte; returns the folder and the stamp of its files.

    A sealed graph (``gnnbench.datasets.store.seal``) is not read again. Raises ``DataError`` for a
    damaged graph.
    """
    from gnnbench.datasets.store.reader import verify

    folder = prepare(name, root=root, seed=seed)
    if (checked := sealed_stamp(folder)) is not None:
        return folder, checked
    before = stamp(folder)
    if not (report := verify(folder)).ok:
        raise DataError(report.message)
    return folder, before


def load_dataset(
    name_or_path: str | Path,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Graph:
    """Open a dataset by name or path; it is prepared first if it is not in the store.

    A name is one of ``gnnbench data list``, such as ``ogbn_arxiv+sym`` or ``products~twin@0.05``,
    or that of an imported graph. A path is that of a prepared folder, or of a file that ``gnnbench
    data import`` accepts, imported with its defaults. ``root`` is the store, ``seed`` decides
    everything random. Raises as :func:`prepare`, and ``UsageError`` for a directed graph without
    the direction of its matrix.
    """
    from gnnbench.datasets.store.reader import open_graph

    if not isinstance(name_or_path, str | Path):
        raise UsageError(
            f"load_dataset takes a name or a path, no {type(name_or_path).__name__}; store a PyG "
            "Data or a DGL graph with from_pyg or from_dgl of "
            "gnnbench.datasets.importers.objects and load it by the name that it gets"
        )
    path, text = names.typed_path(str(name_or_path)), str(name_or_path)
    # A bare word is a dataset's name, even if the working folder has a file of that name.
    like_a_path = isinstance(name_or_path, Path) or "/" in text or path.suffix
    if like_a_path and path.suffix != ".npz" and path.is_file():
        return open_graph(_import_file(path.absolute(), root, seed, progress))
    return open_graph(prepare(text, root=root, seed=seed, progress=progress))


def _import_file(path: Path, root: str | Path | None, seed: int, progress: Progress | None) -> Path:
    """Import a user's file under a name derived from its path, size and time."""
    stat = path.stat()
    digest = hashlib.sha256(f"{path}|{stat.st_size}|{stat.st_mtime_ns}|{seed}".encode())
    stem = re.sub("[^a-z0-9_]", "_", path.name.lower().split(".")[0]) or "edges"
    name = f"{stem}_{digest.hexdigest()[:10]}"
    return import_source(path, name, seed=seed, root=root, progress=progress)


def prepared_path(ref: DatasetRef, root: Path, seed: int = 0) -> Path:
    """Folder in which ``prepare`` puts, or finds, a dataset."""
    return PreparationRequest(ref, root, seed).final


def is_prepared(ref: DatasetRef, root: Path, seed: int = 0) -> bool:
    """Whether the dataset is stored with intact sizes and was made by the present recipe."""
    return _is_prepared(PreparationRequest(ref, root, seed))


def _is_prepared(request: PreparationRequest) -> bool:
    return layout.is_intact(request.final, request.identity)


def prepared_folder(name: str, *, root: str | Path | None = None, seed: int = 0) -> Path | None:
    """Folder of a stored dataset; None if it is not prepared, or if ``name`` is a file.

    Raises ``UsageError`` for an unknown name.
    """
    if Path(name).expanduser().is_file():
        return None
    request = PreparationRequest(resolve(name, root), data_root(root), seed)
    if (request.ref.kind == "store" and not request.ref.sym) or _is_prepared(request):
        return request.final
    return None


def expected(name: str, *, root: str | Path | None = None) -> Shape | None:
    """Upper bounds of a dataset's counts; None for a real dataset without its source.

    Raises ``UsageError`` for an unknown name, ``DataError`` for an unreadable file.
    """
    ref = resolve(name, root)
    return shape(ref, source_path(ref, data_root(root)))


def preparation(name: str, *, root: str | Path | None = None, seed: int = 0) -> Cost | None:
    """Cost of :func:`prepare`; None if nothing is to be done or the source is missing.

    Raises as :func:`expected`.
    """
    return _cost(PreparationRequest(resolve(name, root), data_root(root), seed))


def _cost(request: PreparationRequest, query_gpu: bool = False) -> Cost | None:
    ref = request.ref
    if _is_prepared(request) or (ref.kind == "store" and ref.origin is None):
        return None
    own = cost(ref, source_path(ref, request.root), query_gpu)
    if ref.origin is None:
        return own
    of_base = _cost(PreparationRequest(ref.origin, request.root, request.seed), query_gpu)
    return own + of_base if own is not None and of_base is not None else own


def check_room(name: str, *, root: str | Path | None = None, seed: int = 0) -> None:
    """Raise ``HostMemoryError`` or ``UsageError`` if a dataset cannot be prepared on this machine
    for lack of memory or disk."""
    request = PreparationRequest(resolve(name, root), data_root(root), seed)
    _check_room(request, _cost(request))


def _check_room(request: PreparationRequest, needed: Cost | None) -> None:
    if needed is None:
        return
    ref, root = request.ref, request.root
    fix = "take a smaller @scale, or " if ref.kind in ("twin", "rmat", "rows") else ""
    free = host_memory.free_memory_bytes()
    if needed.memory_bytes > free:
        raise HostMemoryError(
            f"preparing '{ref.name}' takes about {_gib(needed.memory_bytes)} of memory where"
            f" {_gib(free)} are free; {fix}close other programs or use a machine with more memory"
        )
    free = free_disk_bytes(root) + folder_bytes(partial_folder(request.final))
    if needed.disk_bytes > free:
        raise UsageError(
            f"preparing '{ref.name}' takes about {_gib(needed.disk_bytes)} of disk where"
            f" {_gib(free)} are free below {root}; {fix}free some space, or set GNNBENCH_DATA to a"
            " folder on another disk"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**27 else f"{size / 2**20:.1f} MiB"


def _prepare(request: PreparationRequest) -> Path:
    ref, final, progress = request.ref, request.final, request.progress
    if ref.kind == "store" and ref.origin is None:
        layout.check_sizes(final, layout.read_meta(final))
        return final
    if _is_prepared(request):
        return final

    def waiting() -> None:
        if progress is not None:
            progress("wait for another process that prepares the same dataset", 0, 0)

    with graph_lock(final, waiting):
        if _is_prepared(request):  # by another process meanwhile
            return final
        _check_room(request, _cost(request, query_gpu=True))
        base = None
        if ref.origin is not None:
            base = _prepare(PreparationRequest(ref.origin, request.root, request.seed, progress))
        return make_graph(request, base)
