"""Make one graph of the store: import it, generate it, or derive it from a prepared graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gnnbench.core.errors import DataError, MissingError
from gnnbench.datasets.generators import rmat, rows, twin
from gnnbench.datasets.generators.seeded import WEIGHTS_VERSION, YEARS, seeded_weights
from gnnbench.datasets.importers.common import ImportOptions, naming
from gnnbench.datasets.importers.loaders import LOADERS
from gnnbench.datasets.manifest import Manifest, Source
from gnnbench.datasets.names import DatasetRef
from gnnbench.datasets.sources import check_digests, find_source, how_to_get
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import csc_edges
from gnnbench.datasets.store.disk import Progress
from gnnbench.datasets.store.schema import GraphDescription, GraphMeta, NewGraph
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.writer import GraphWriter

# To be incremented when an importer writes something else, so that older folders are made again.
_IMPORT_VERSION = 2
_NPZ_VERSION = 3  # of files without a manifest
# Keys of meta.json that a derived graph copies from its base.
_COPIED = ("source", "loader", "licence", "features", "labels", "split", "weights", "seed", "notes",
           "assumed", "recipe")  # fmt: skip


@dataclass(frozen=True)
class PreparationRequest:
    """A dataset to prepare below the data root; ``seed`` decides everything that is random."""

    ref: DatasetRef
    root: Path
    seed: int = 0
    progress: Progress | None = None

    @property
    def final(self) -> Path:
        """Folder of the prepared graph."""
        ref = self.ref
        if ref.kind == "store" and ref.path is not None and ref.origin is None:
            return ref.path
        return self.root / ref.folder_name(self.seed)

    @property
    def identity(self) -> dict[str, object]:
        """What decides the contents, as recorded in the fingerprint of the graph."""
        ref = self.ref
        identity: dict[str, object] = {"dataset": ref.name, "seed": self.seed}
        identity["version"] = _IMPORT_VERSION
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
        if ref.kind == "store" and ref.path is not None:  # the name may get another graph
            identity["base"] = layout.read_meta(ref.path)["meta_sha256"]
        return identity

    def writer(self, extra: dict[str, object] | None = None) -> GraphWriter:
        """A writer for the folder; ``extra`` is added to the fingerprint."""
        return GraphWriter(self.final, {**self.identity, **(extra or {})}, self.progress)


def make_graph(request: PreparationRequest, base: Path | None) -> Path:
    """Write the graph and return its folder. The caller has the ``graph_lock``.

    ``base`` is the folder of the graph that one with a suffix (``+sym``, ``+weights``) is derived
    from.
    """
    if base is not None:
        return _add_weights(request, base) if request.ref.weights else _symmetrize(request, base)
    if request.ref.kind in ("twin", "rmat", "rows"):
        return _generate(request)
    return _import(request)


def _import(request: PreparationRequest) -> Path:
    ref = request.ref
    manifest, source, path = ref.manifest, None, ref.path
    if manifest is not None:
        available = find_source(ref, request.root)
        if available is None:
            raise MissingError(
                f"the real dataset '{ref.base}' is not on this machine; get it with: "
                f"{how_to_get(manifest, request.root)}; or use its twin '{ref.base}~twin'"
            )
        source, path = available
        check_digests(source, path)
    assert path is not None
    options = ImportOptions(
        ref.name,
        request.seed,
        manifest.feature_dim if manifest else 0,
        manifest.num_classes if manifest else 0,
        source,
        (manifest.train_size, manifest.val_size, manifest.test_size) if manifest else (0, 0, 0),
        rows="targets" if manifest else "",  # the convention of our own .npz files
    )
    stat = path.stat()
    origin = {"from": str(path), "size": stat.st_size, "modified": stat.st_mtime_ns}
    loader = LOADERS[source.loader if source is not None else "npz"]
    with naming(path), request.writer(origin) as out:
        about = loader(path, out, options)
        if manifest is not None:
            _check_counts(manifest, source, out, path)
            licence = about.get("licence") or (source.licence if source is not None else "")
            about["licence"] = licence or manifest.licence
            if source is not None and source.note:
                about["notes"] = [*about.get("notes", []), source.note]
            about["assumed"] = sorted({*about.get("assumed", []), *manifest.assumed})
        seeded: NewGraph = {"seed": request.seed, **about}
        return out.finish(name=ref.name, **seeded)


def _check_counts(manifest: Manifest, source: Source | None, out: GraphWriter, path: Path) -> None:
    """Raise ``DataError`` if the imported counts differ from the manifest's.

    Counts that are ``assumed``, for example since papers round them, are not compared.
    """
    edges = source.num_edges if source is not None and source.num_edges else manifest.num_edges
    imported = {
        "num_nodes": len(out.read("labels")),
        "num_edges": len(out.read("indices")),
        "feature_dim": out.read("features").shape[1],
    }
    counts = (manifest.num_nodes, edges, manifest.feature_dim)
    published = dict(zip(imported, counts, strict=True))
    if any(imported[k] != published[k] for k in imported if k not in manifest.assumed):
        nodes, edges, width = imported.values()
        raise DataError(
            f"{path} gives {nodes} nodes, {edges} edges and {width} features where "
            f"'{manifest.name}' has {counts[0]}, {counts[1]} and {counts[2]}; get it again"
        )


def _symmetrize(request: PreparationRequest, base: Path) -> Path:
    """Union of the edges and their reverses; parallel edges are merged, no self-loops added."""
    meta = layout.read_meta(base)
    entries = meta["arrays"]
    with request.writer(_base_fingerprint(base, meta)) as out:
        indptr, indices = (layout.stored_array(base, k, entries[k]) for k in ("indptr", "indices"))
        edges = csc_edges(indptr, indices)
        write_csc(out, edges, meta["num_nodes"], add_reverse=True, merge=True)
        for array in entries:
            if array not in ("indptr", "indices", "weights"):
                out.link(array, base, entries[array])
        about = _copied_description(meta)
        about["symmetric"] = True
        about["notes"] = [
            *meta.get("notes", []), "made symmetric: union with the reversed edges, merged",
        ]  # fmt: skip
        if "weights" in entries:
            about["notes"].append("edge weights not kept: merged edges have none of their own")
        return out.finish(name=request.ref.name, num_classes=meta["num_classes"], **about)


def _add_weights(request: PreparationRequest, base: Path) -> Path:
    """The same graph with edge weights: the year of the neighbour (GNNLab, section 3)."""
    meta = layout.read_meta(base)
    entries = meta["arrays"]
    with request.writer(_base_fingerprint(base, meta)) as out:
        for array in entries:
            out.link(array, base, entries[array])
        indices = out.read("indices")
        weights = seeded_weights(indices, meta["num_nodes"], request.seed)
        out.write("weights", "float32", (len(indices),), weights)
        about = _copied_description(meta)
        about["symmetric"] = meta["symmetric"]
        about["weights"] = f"seeded: the year of the neighbour, 1 to {YEARS}, each as frequent"
        about["assumed"] = sorted({*meta.get("assumed", []), "weights"})
        return out.finish(name=request.ref.name, num_classes=meta["num_classes"], **about)


def _base_fingerprint(base: Path, meta: GraphMeta) -> dict[str, object]:
    digests = [meta["arrays"][k]["sha256"] for k in ("indptr", "indices")]
    return {"from": str(base), "topology": digests}


def _copied_description(meta: GraphMeta) -> GraphDescription:
    """The description of a base graph, in the order of its ``meta.json``."""
    copied: GraphDescription = {}
    for key, value in meta.items():
        if key in _COPIED:
            copied[key] = value  # type: ignore[literal-required]
    return copied


def _generate(request: PreparationRequest) -> Path:
    ref, seed = request.ref, request.seed
    with request.writer() as out:
        if ref.kind == "rmat":
            about = rmat.generate(ref.size, seed, out)
        elif ref.kind == "rows":
            about = rows.generate(*ref.shape, seed, out)
        else:
            assert ref.manifest is not None
            about = twin.generate(ref.manifest.twin_recipe(), ref.scale, seed, out)
        seeded: NewGraph = {"seed": seed, **about}
        return out.finish(name=ref.name, **seeded)
