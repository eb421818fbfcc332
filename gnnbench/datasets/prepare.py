"""Prepare a dataset: find its source or generate it, and store it. Idempotent and resumable."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnbench.core import host_memory, names
from gnnbench.core.errors import DataError, HostMemoryError, MissingError, UsageError
from gnnbench.datasets.cost import Cost, Shape, cost, shape
from gnnbench.datasets.download_sources import downloads
from gnnbench.datasets.generators import rmat, rows, twin
from gnnbench.datasets.generators.seeded import WEIGHTS_VERSION, YEARS, seeded_weights
from gnnbench.datasets.importers.common import ImportOptions, naming
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.loaders import LOADERS
from gnnbench.datasets.manifest import Manifest, Source
from gnnbench.datasets.names import DatasetRef, resolve
from gnnbench.datasets.paths import data_root, find_raw
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import csc_edges
from gnnbench.datasets.store.seal import sealed, stamp
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.writer import (
    GraphWriter,
    Progress,
    folder_bytes,
    free_disk_bytes,
    graph_lock,
    partial_folder,
)

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph

# Raised when what an importer writes changes, so that older folders are prepared again.
_IMPORT_VERSION = 2
_NPZ_VERSION = 3  # of files without a manifest


def prepare(
    name: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Folder of the prepared dataset; made if it is not there yet.

    An existing folder that is intact by size is returned at once. Otherwise the graph is made in a
    hidden sibling, steps that an interrupted call finished are reused, and it gets its name only
    when complete and checked. ``seed`` decides what is drawn (twins, stand-in features, splits).

    Raises ``UsageError`` for an unknown name or a folder that cannot be written or is too small,
    ``HostMemoryError`` where memory is (either before work begins), ``MissingError`` where the
    source is not on this machine (it says how to get it), ``DataError`` for a bad source.
    """
    return _prepare(resolve(name, root), data_root(root), seed, progress)


def prepare_verified(
    name: str, *, root: str | Path | None = None, seed: int = 0
) -> tuple[Path, dict[str, list[int]]]:
    """:func:`prepare`, every byte checked: its folder, and the stamp (``seal.stamp``) of its
    files as they were then.

    What was checked before, or written whole by the store, is sealed and not read again as long as
    no file changes (``gnnbench.datasets.store.seal``). Raises ``DataError`` for a damaged graph.
    """
    from gnnbench.datasets.store.reader import verify

    folder = prepare(name, root=root, seed=seed)
    if (found := sealed(folder)) is not None:
        return folder, found
    found = stamp(folder)
    if not (report := verify(folder)).ok:
        raise DataError(report.message)
    return folder, found


def load_dataset(
    name_or_path: str | Path,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Graph:
    """Open a dataset by its name or path; what is not in the store yet is prepared first.

    A name is one that ``gnnbench data list`` tells, as ``ogbn_arxiv+sym`` or
    ``products~twin@0.05``, or that of an imported graph. A path is that of a prepared folder, or of
    a file that ``gnnbench data import`` takes, imported with its defaults. ``root`` is the store,
    ``seed`` decides what is drawn. Raises as :func:`prepare`, and ``UsageError`` for a directed
    graph that does not say which way it points.
    """
    from gnnbench.datasets.store.reader import open_graph

    if not isinstance(name_or_path, str | Path):
        raise UsageError(
            f"load_dataset takes a name or a path, no {type(name_or_path).__name__}; store a PyG "
            "Data or a DGL graph with from_pyg or from_dgl of "
            "gnnbench.datasets.importers.objects and load it by the name that it gets"
        )
    path, text = names.typed_path(str(name_or_path)), str(name_or_path)
    # A bare word means a dataset, whatever lies in the current folder.
    like_a_path = isinstance(name_or_path, Path) or "/" in text or path.suffix
    if like_a_path and path.suffix != ".npz" and path.is_file():
        return open_graph(_own_file(path.absolute(), root, seed, progress))
    return open_graph(prepare(text, root=root, seed=seed, progress=progress))


def _own_file(path: Path, root: str | Path | None, seed: int, progress: Progress | None) -> Path:
    """Folder of a user's file, imported under a name made of the file's."""
    stat = path.stat()
    digest = hashlib.sha256(f"{path}|{stat.st_size}|{stat.st_mtime_ns}|{seed}".encode())
    stem = re.sub("[^a-z0-9_]", "_", path.name.lower().split(".")[0]) or "edges"
    name = f"{stem}_{digest.hexdigest()[:10]}"
    return import_source(path, name, seed=seed, root=root, progress=progress)


def prepared_path(ref: DatasetRef, root: Path, seed: int = 0) -> Path:
    """Where ``prepare`` puts, or finds, a dataset."""
    if ref.kind == "store" and ref.path is not None and ref.origin is None:
        return ref.path
    return root / ref.folder_name(seed)


def is_prepared(ref: DatasetRef, root: Path, seed: int = 0) -> bool:
    """Whether the dataset is stored, intact by size and made by the present recipe."""
    return layout.intact(prepared_path(ref, root, seed), _identity(ref, seed))


def prepared_folder(name: str, *, root: str | Path | None = None, seed: int = 0) -> Path | None:
    """Where a dataset that is stored lies; None of one that is not prepared yet, and of a file.

    Raises ``UsageError`` for an unknown name.
    """
    if Path(name).expanduser().is_file():
        return None
    ref, folder = resolve(name, root), data_root(root)
    found = prepared_path(ref, folder, seed)
    if ref.kind == "store" and not ref.sym:
        return found
    return found if is_prepared(ref, folder, seed) else None


def expected(name: str, *, root: str | Path | None = None) -> Shape | None:
    """Counts of a dataset that is not prepared yet, at most; None of a real one that is not here.

    Raises ``UsageError`` for an unknown name, ``DataError`` for a file that cannot be read.
    """
    ref = resolve(name, root)
    return shape(ref, _source_path(ref, data_root(root)))


def preparation(name: str, *, root: str | Path | None = None, seed: int = 0) -> Cost | None:
    """What :func:`prepare` would take; None where there is nothing to do, or no source to do it
    from. Raises as :func:`expected`."""
    return _preparation(resolve(name, root), data_root(root), seed)


def _preparation(ref: DatasetRef, root: Path, seed: int, begun: bool = False) -> Cost | None:
    if is_prepared(ref, root, seed) or (ref.kind == "store" and ref.origin is None):
        return None
    own = cost(ref, _source_path(ref, root), begun)
    before = _preparation(ref.origin, root, seed, begun) if ref.origin is not None else None
    return own + before if own is not None and before is not None else own


def check_room(name: str, *, root: str | Path | None = None, seed: int = 0) -> None:
    """Raise ``HostMemoryError`` or ``UsageError`` where the dataset is not prepared and what that
    takes is not free on this machine."""
    ref, folder = resolve(name, root), data_root(root)
    _check_room(ref, folder, seed, _preparation(ref, folder, seed))


def _check_room(ref: DatasetRef, root: Path, seed: int, needed: Cost | None) -> None:
    if needed is None:
        return
    mend = "take a smaller @scale, or " if ref.kind in ("twin", "rmat", "rows") else ""
    free = host_memory.free_memory_bytes()
    if needed.memory_bytes > free:
        raise HostMemoryError(
            f"preparing '{ref.name}' takes about {_gib(needed.memory_bytes)} of memory where"
            f" {_gib(free)} are free; {mend}close other programs or use a machine with more memory"
        )
    final = prepared_path(ref, root, seed)
    free = free_disk_bytes(root) + folder_bytes(partial_folder(final))
    if needed.disk_bytes > free:
        raise UsageError(
            f"preparing '{ref.name}' takes about {_gib(needed.disk_bytes)} of disk where"
            f" {_gib(free)} are free below {root}; {mend}free some space, or set GNNBENCH_DATA to a"
            " folder on another disk"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**27 else f"{size / 2**20:.1f} MiB"


def _source_path(ref: DatasetRef, root: Path) -> Path | None:
    if ref.kind != "real":
        return ref.path
    found = find_source(ref, root)
    return None if found is None else found[1]


def find_source(ref: DatasetRef, root: Path) -> tuple[Source, Path] | None:
    """The first source of a real dataset whose files are on this machine, and where."""
    manifest = ref.manifest
    for source in manifest.source if manifest is not None else []:
        if (path := find_raw(source.paths, root, source.needs)) is not None:
            return source, path
    return None


def how_to_get(manifest: Manifest, root: Path) -> str:
    """The exact ways to have a real dataset; commands come before what is done by hand."""
    ours = [f"gnnbench data get {manifest.name}"] if manifest.name in downloads() else []
    ways = [s.get.replace("{raw}", str(root / "raw")) for s in manifest.source]
    return "; or ".join(ours + sorted(ways, key=lambda way: way.startswith(("put ", "get "))))


def _prepare(ref: DatasetRef, root: Path, seed: int, progress: Progress | None) -> Path:
    final, identity = prepared_path(ref, root, seed), _identity(ref, seed)
    if ref.kind == "store" and ref.origin is None:
        layout.check_sizes(final, layout.read_meta(final))
        return final
    if layout.intact(final, identity):
        return final

    def waiting() -> None:
        if progress is not None:
            progress("wait for another process that prepares the same dataset", 0, 0)

    with graph_lock(final, waiting):
        if layout.intact(final, identity):  # another process was faster
            return final
        _check_room(ref, root, seed, _preparation(ref, root, seed, begun=True))
        if ref.origin is not None:
            base = _prepare(ref.origin, root, seed, progress)
            derive = _weighted if ref.weights else _symmetric
            return derive(ref, base, final, identity, seed, progress)
        if ref.kind in ("twin", "rmat", "rows"):
            return _generated(ref, final, identity, seed, progress)
        return _imported(ref, root, final, identity, seed, progress)


def _identity(ref: DatasetRef, seed: int) -> dict[str, Any]:
    identity: dict[str, Any] = {"dataset": ref.name, "seed": seed, "version": _IMPORT_VERSION}
    if ref.kind == "twin" and ref.manifest is not None:
        identity["recipe"] = ref.manifest.twin_recipe().model_dump(mode="json")
    if ref.kind == "rmat":
        identity["recipe"] = rmat.recipe(ref.size)
    if ref.kind == "rows":
        identity["recipe"] = rows.recipe(*ref.shape)
    if ref.kind == "npz":
        identity["npz"] = _NPZ_VERSION
    if ref.weights:
        identity["weights"] = WEIGHTS_VERSION
    if ref.kind == "store" and ref.path is not None:  # another graph may come under its name
        identity["base"] = layout.read_meta(ref.path)["meta_sha256"]
    return identity


def _imported(
    ref: DatasetRef,
    root: Path,
    final: Path,
    identity: dict[str, Any],
    seed: int,
    progress: Progress | None,
) -> Path:
    manifest, source, path = ref.manifest, None, ref.path
    if manifest is not None:
        found = find_source(ref, root)
        if found is None:
            raise MissingError(
                f"the real dataset '{ref.base}' is not on this machine; get it with: "
                f"{how_to_get(manifest, root)}; or use its twin '{ref.base}~twin'"
            )
        source, path = found
        _check_digests(source, path)
    assert path is not None
    options = ImportOptions(
        ref.name,
        seed,
        manifest.feature_dim if manifest else 0,
        manifest.num_classes if manifest else 0,
        source,
        (manifest.train_size, manifest.val_size, manifest.test_size) if manifest else (0, 0, 0),
        rows="targets" if manifest else "",  # a manifest's .npz is ours
    )
    stat = path.stat()
    origin = {"from": str(path), "size": stat.st_size, "modified": stat.st_mtime_ns}
    loader = LOADERS[source.loader if source is not None else "npz"]
    with naming(path), GraphWriter(final, {**identity, **origin}, progress) as out:
        about = loader(path, out, options)
        if manifest is not None:
            _check_counts(manifest, source, out, path)
            about["licence"] = about.get("licence") or (source and source.licence) or ""
            about["licence"] = about["licence"] or manifest.licence
            if source is not None and source.note:
                about["notes"] = [*about.get("notes", []), source.note]
            about["assumed"] = sorted({*about.get("assumed", []), *manifest.assumed})
        return out.finish(name=ref.name, seed=seed, **about)


def _check_digests(source: Source, path: Path) -> None:
    for name, digest in source.sha256.items():
        file = path if path.name == name else path / name
        if file.is_file() and layout.sha256_file(file) != digest:
            raise DataError(
                f"{file} is not the file that the manifest describes (SHA-256 differs from "
                f"{digest[:12]}...); get it again, or prepare it by its path instead of its name"
            )


def _check_counts(manifest: Manifest, source: Source | None, out: GraphWriter, path: Path) -> None:
    edges = source.num_edges if source is not None and source.num_edges else manifest.num_edges
    have = (len(out.read("labels")), len(out.read("indices")), out.read("features").shape[1])
    want = (manifest.num_nodes, edges, manifest.feature_dim)
    # What was only published rounded cannot be met.
    keys = ("num_nodes", "num_edges", "feature_dim")
    want = tuple(  # type: ignore[assignment]
        h if key in manifest.assumed else w for h, w, key in zip(have, want, keys, strict=True)
    )
    if have != want:
        raise DataError(
            f"{path} gives {have[0]} nodes, {have[1]} edges and {have[2]} features where "
            f"'{manifest.name}' has {want[0]}, {want[1]} and {want[2]}; get it again"
        )


def _symmetric(
    ref: DatasetRef,
    base: Path,
    final: Path,
    identity: dict[str, Any],
    seed: int,
    progress: Progress | None,
) -> Path:
    """Union of the edges and their reverses, parallel edges merged, no new self-loops."""
    meta = layout.read_meta(base)
    entries = meta["arrays"]
    with GraphWriter(final, {**identity, **_made_of(base, entries)}, progress) as out:
        indptr, indices = (
            layout.map_array(base, k, entries[k]["dtype"], tuple(entries[k]["shape"]))
            for k in ("indptr", "indices")
        )
        num_nodes = int(meta["num_nodes"])
        write_csc(out, csc_edges(indptr, indices), num_nodes, add_reverse=True, merge=True)
        for array in entries:
            if array not in ("indptr", "indices", "weights"):
                out.link(array, base, entries[array])
        notes = [*meta.get("notes", []), "made symmetric: union with the reversed edges, merged"]
        if "weights" in entries:
            notes.append("edge weights not kept: merged edges have none of their own")
        about = {**_about(meta), "symmetric": True, "notes": notes}
        return out.finish(name=ref.name, num_classes=int(meta["num_classes"]), **about)


def _weighted(
    ref: DatasetRef,
    base: Path,
    final: Path,
    identity: dict[str, Any],
    seed: int,
    progress: Progress | None,
) -> Path:
    """The same graph with weights of the edges: the year of the neighbour (GNNLab, section 3)."""
    meta = layout.read_meta(base)
    entries = meta["arrays"]
    with GraphWriter(final, {**identity, **_made_of(base, entries)}, progress) as out:
        for array in entries:
            out.link(array, base, entries[array])
        indices, num_nodes = out.read("indices"), int(meta["num_nodes"])
        weights = seeded_weights(indices, num_nodes, seed)
        out.write("weights", "float32", (len(indices),), weights)
        about = {
            **_about(meta),
            "symmetric": meta["symmetric"],
            "weights": f"seeded: the year of the neighbour, 1 to {YEARS}, each as frequent",
            "assumed": sorted({*meta.get("assumed", []), "weights"}),
        }
        return out.finish(name=ref.name, num_classes=int(meta["num_classes"]), **about)


def _made_of(base: Path, entries: dict[str, Any]) -> dict[str, Any]:
    """What a derived graph's fingerprint has of the one that it is made of."""
    return {"from": str(base), "topology": [entries[k]["sha256"] for k in ("indptr", "indices")]}


def _about(meta: dict[str, Any]) -> dict[str, Any]:
    """What ``meta.json`` says of a graph besides what ``GraphWriter.finish`` finds out."""
    found_out = {"format", "format_version", "created_by", "meta_sha256", "arrays", "fingerprint"}
    found_out |= {"name", "num_nodes", "num_edges", "feature_dim", "num_classes", "symmetric"}
    found_out |= {"train", "val", "test"}
    return {key: value for key, value in meta.items() if key not in found_out}


def _generated(
    ref: DatasetRef,
    final: Path,
    identity: dict[str, Any],
    seed: int,
    progress: Progress | None,
) -> Path:
    with GraphWriter(final, identity, progress) as out:
        if ref.kind == "rmat":
            about = rmat.generate(ref.size, seed, out)
        elif ref.kind == "rows":
            about = rows.generate(*ref.shape, seed, out)
        else:
            assert ref.manifest is not None
            about = twin.generate(ref.manifest.twin_recipe(), ref.scale, seed, out)
        return out.finish(name=ref.name, seed=seed, **about)
