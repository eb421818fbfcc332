"""Queries of the command line about datasets; returns plain values and prints nothing."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gnnbench.core.errors import GnnbenchError, MissingError
from gnnbench.datasets.generators import rmat
from gnnbench.datasets.manifest import Manifest, manifests
from gnnbench.datasets.names import RMAT, ROWS, DatasetRef, imported_graphs, npz_files, resolve
from gnnbench.datasets.paths import data_root
from gnnbench.datasets.prepare import is_prepared, load_dataset, prepare, prepared_path
from gnnbench.datasets.sources import find_source, how_to_get
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.disk import Progress, folder_bytes
from gnnbench.datasets.store.reader import VerifyReport
from gnnbench.datasets.store.reader import verify as verify_folder
from gnnbench.datasets.store.schema import GraphMeta

__all__ = [
    "DatasetDetails",
    "DatasetInfo",
    "VerifyReport",
    "info",
    "inventory",
    "list_datasets",
    "load_dataset",
    "prepare",
    "verify",
]

State = Literal["prepared", "source", "generated", "missing"]


@dataclass(frozen=True)
class DatasetInfo:
    """One line of ``data list``.

    ``state``: ``prepared`` (in the store at ``path``), ``source`` (raw files at ``path``, imported
    on first use), ``generated`` (made on first use), ``missing`` (``missing`` says what,
    ``get`` is the exact way to have it). Counts are those of the manifest or of the stored graph,
    scaled for a twin; 0 where not known yet. ``num_edges`` counts directed edges, ``disk_bytes`` is
    what the prepared graph takes in the store, 0 where it is not there.
    """

    name: str
    kind: str
    state: State
    description: str = ""
    path: Path | None = None
    missing: str = ""
    get: str = ""
    num_nodes: int = 0
    num_edges: int = 0
    feature_dim: int = 0
    num_classes: int = 0
    train_size: int = 0
    symmetric: bool | None = None
    licence: str = ""
    disk_bytes: int = 0

    @property
    def available(self) -> bool:
        """Whether ``prepare`` can succeed on this machine."""
        return self.state != "missing"


@dataclass(frozen=True)
class DatasetDetails:
    """``data info``: the line, the manifest (sources, papers' figures, recipe), ``meta.json``."""

    summary: DatasetInfo
    manifest: Manifest | None
    meta: GraphMeta | None
    bytes: int = 0
    notes: tuple[str, ...] = field(default=())


def list_datasets(root: str | Path | None = None) -> list[DatasetInfo]:
    """Every known dataset: manifests, twins, R-MAT, imported graphs, ``.npz`` in raw folders.

    Then what else lies in the store: twins of a scale, graphs made symmetric, of another seed ...
    """
    names = [name for name, manifest in manifests().items() if not manifest.variant_of]
    names += [f"{name}~twin" for name, manifest in manifests().items() if manifest.twin is not None]
    names += [RMAT, ROWS]
    names += sorted({**npz_files(), **imported_graphs(root)})
    listed = [_summary(resolve(name, root), data_root(root), 0) for name in names]
    return listed + _others(data_root(root), {known.path for known in listed})


def _others(root: Path, known: set[Path | None]) -> list[DatasetInfo]:
    """Graphs in the store that nobody named."""
    graphs = []
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if folder.name[0] == "." or folder in known or not (folder / layout.META).exists():
            continue
        try:
            graphs.append(_stored(folder, "store", f"in the store as {folder.name}"))
        except GnnbenchError as error:
            size = folder_bytes(folder)
            graphs.append(
                DatasetInfo(
                    folder.name, "store", "missing", "", folder, str(error), disk_bytes=size
                )
            )
    return graphs


def store_bytes(root: str | Path | None = None) -> int:
    """What the whole store takes on disk, raw files in it too; files that graphs share once."""
    files = {}
    for file in data_root(root).rglob("*"):
        with contextlib.suppress(OSError):
            if file.is_file() and not file.is_symlink():
                stat = file.stat()
                files[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(files.values())


inventory = list_datasets


def info(name: str, *, root: str | Path | None = None, seed: int = 0) -> DatasetDetails:
    """All that is known of one dataset. Raises ``UsageError`` for an unknown name."""
    ref, folder = resolve(name, root), data_root(root)
    summary, meta, size = _summary(ref, folder, seed), None, 0
    if summary.state == "prepared" and summary.path is not None:
        meta = layout.read_meta(summary.path)
        size = sum(entry["bytes"] for entry in meta["arrays"].values())
    manifest = manifests().get(ref.base) if ref.kind in ("real", "twin") else None
    notes = [*(manifest.notes if manifest else []), *(meta or {}).get("notes", [])]
    return DatasetDetails(summary, manifest, meta, size, tuple(notes))


def verify(
    name: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> VerifyReport:
    """Recompute all checksums of a prepared dataset; the report names every changed file.

    Raises ``UsageError`` for an unknown name, ``MissingError`` where it is not prepared.
    """
    ref, folder = resolve(name, root), data_root(root)
    path = prepared_path(ref, folder, seed)
    if not path.is_dir():
        raise MissingError(
            f"'{ref.name}' is not prepared; run 'gnnbench data prepare {name}' first"
        )
    return verify_folder(path, progress)


def _stored(path: Path, kind: str, description: str) -> DatasetInfo:
    """Of a graph in the store. Raises as ``layout.check_sizes``."""
    meta = layout.read_meta(path)
    layout.check_sizes(path, meta)
    return DatasetInfo(
        meta["name"], kind, "prepared", description, path,
        num_nodes=meta["num_nodes"], num_edges=meta["num_edges"],
        feature_dim=meta["feature_dim"], num_classes=meta["num_classes"],
        train_size=meta["train"], symmetric=meta["symmetric"], licence=meta["licence"],
        disk_bytes=folder_bytes(path),
    )  # fmt: skip


def _summary(ref: DatasetRef, root: Path, seed: int) -> DatasetInfo:
    manifest = ref.manifest
    description = manifest.description if manifest else "graph from an .npz file"
    if ref.kind == "rmat":
        size = ref.size
        description = f"R-MAT of scale {size.scale}"
        if size.degree:
            description += f", mean degree {size.degree}, {size.dims} features"
    if ref.kind == "rows":
        description = "rows of features without a graph, for gathers"
    if ref.kind == "store":
        description = "prepared graph" if "/" in ref.name else "imported graph"
    path = prepared_path(ref, root, seed)
    if (ref.kind == "store" and ref.origin is None) or is_prepared(ref, root, seed):
        try:
            return replace(_stored(path, ref.kind, description), name=ref.name)
        except GnnbenchError as error:
            return DatasetInfo(ref.name, ref.kind, "missing", description, path, str(error))
    if ref.kind in ("npz", "store"):
        return DatasetInfo(ref.name, ref.kind, "source", description, ref.path)
    if ref.kind == "rmat":
        nodes, edges = rmat.counts(ref.size.scale, ref.size.degree)
        return DatasetInfo(
            ref.name,
            "rmat",
            "generated",
            description,
            num_nodes=nodes,
            num_edges=0 if ref.sym else edges,
            feature_dim=ref.size.dims,
            num_classes=rmat.NUM_CLASSES,
            symmetric=ref.sym,
            licence="generated",
        )
    if ref.kind == "rows":
        return DatasetInfo(
            ref.name,
            "rows",
            "generated",
            description,
            num_nodes=ref.shape[0],
            feature_dim=ref.shape[1],
            num_classes=1,
            train_size=ref.shape[0],
            symmetric=True,
            licence="generated",
        )
    assert manifest is not None
    if ref.kind == "twin":
        recipe = manifest.twin_recipe().scaled(ref.scale)
        return DatasetInfo(
            ref.name,
            "twin",
            "generated",
            f"twin of {ref.base}",
            num_nodes=recipe.num_nodes,
            num_edges=0 if ref.sym and not recipe.symmetric else recipe.num_edges,
            feature_dim=recipe.feature_dim,
            num_classes=recipe.num_classes,
            train_size=int(recipe.train),
            symmetric=ref.sym or recipe.symmetric,
            licence="generated",
        )
    available = find_source(ref, root)
    return DatasetInfo(
        ref.name,
        "real",
        "source" if available else "missing",
        description,
        available[1] if available else None,
        "" if available else "raw files",
        "" if available else how_to_get(manifest, root),
        manifest.num_nodes,
        0 if ref.sym and not manifest.symmetric else manifest.num_edges,
        manifest.feature_dim,
        manifest.num_classes,
        manifest.train_size,
        ref.sym or manifest.symmetric,
        manifest.licence,
    )
