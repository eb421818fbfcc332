"""Import a user's graph into the store under a chosen name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

from gnnbench.core import names
from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers.common import ImportOptions, naming
from gnnbench.datasets.importers.edge_arrays import ROWS
from gnnbench.datasets.importers.edges import import_edges
from gnnbench.datasets.importers.formats import graph_arrays, node_arrays
from gnnbench.datasets.importers.named import NamedArrays, NodeArrays
from gnnbench.datasets.importers.node_values import MAX_CLASSES
from gnnbench.datasets.importers.npz import import_arrays
from gnnbench.datasets.importers.room import memory_errors
from gnnbench.datasets.manifest import Source
from gnnbench.datasets.names import check_new_name
from gnnbench.datasets.paths import imported_dir
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.disk import Progress, graph_lock
from gnnbench.datasets.store.schema import Fingerprint, NewGraph
from gnnbench.datasets.store.writer import GraphWriter

# Raised when what an import writes changes, so that older folders are no longer taken for it.
_VERSION = 4
# For edge lists that list an undirected edge once, or in both directions: the union counts.
SYMMETRIC = Source(loader="edge-list", paths=[], get="", add_reverse=True, merge=True)


def import_source(
    source: str | Path,
    name: str,
    *,
    symmetric: bool = False,
    rows: str = "",
    features: str | Path | None = None,
    labels: str | Path | None = None,
    split: str | Path | None = None,
    train_fraction: float = 0.6,
    feature_dim: int = 0,
    num_classes: int = 0,
    num_nodes: int = 0,
    seed: int = 0,
    replace_graph: bool = False,
    root: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Store a graph that is a file as ``name``; returns the graph's folder.

    ``source`` is an edge list as text (``gnnbench.datasets.importers.edges``) or a file of arrays
    (``gnnbench.datasets.importers.npz`` has the keys): ``.npz``, scipy's among them, ``.npy`` with
    an
    edge_index, ``.pt`` with tensors, a dict of them or PyG's ``Data``, or of ``dgl.save_graphs``.

    ``symmetric`` adds the reverse of every edge and merges parallel ones. ``rows`` says what a row
    of an adjacency matrix is where the file does not: ``targets`` or ``sources`` of its edges.
    ``features``, ``labels`` and ``split`` are files (``gnnbench.datasets.importers.formats``) that
    go
    before what the source has. Where there are none, seeded ones are drawn (``feature_dim`` wide,
    0: 64; of ``num_classes`` classes, 0: 16; ``train_fraction`` of the nodes for training) and
    ``meta.json`` says so. ``num_nodes`` of an edge list keeps its ids as they are, isolated nodes
    included, as do given features or labels; by default its nodes are those that an edge names.

    The same call again returns at once. Raises ``UsageError`` for a name that is taken, an option
    that does not fit, or a directed graph that does not say which way it points; ``DataError`` for
    a source that is no graph.
    """
    path = names.typed_path(str(source)).absolute()
    if not path.is_file():
        if (path / layout.META).is_file():
            raise UsageError(f"{source} is a prepared graph; use it by its path, without an import")
        wrong = f"there is no file {source}"
        if path.exists():
            wrong = f"{source} is {'a folder' if path.is_dir() else 'a pipe or a device'}"
        raise UsageError(
            f"{wrong}; give an edge list as text (gzipped or not), an .npz, a "
            ".pt or a graph file of DGL"
        )
    check_options(train_fraction, feature_dim, num_classes)
    if num_nodes < 0:
        raise UsageError(f"a graph cannot have {num_nodes} nodes; give a positive number")
    if rows not in ("", *ROWS):
        raise UsageError(f"rows of a matrix are not '{rows}'; give targets or sources")
    options = ImportOptions(
        check_new_name(name), seed, feature_dim, num_classes, SYMMETRIC if symmetric else None,
        train_fraction=train_fraction, num_nodes=num_nodes, rows=rows,
    )  # fmt: skip
    files = {"features": features, "labels": labels, "split": split}
    asked = {f.name: getattr(options, f.name) for f in fields(options)}
    identity = {
        "import": {k: v for k, v in asked.items() if k not in ("source", "split", "given")},
        "symmetric": symmetric, **_stamp(path), "version": _VERSION,
        "given": {k: _stamp(names.typed_path(str(v)).absolute()) for k, v in files.items() if v},
    }  # fmt: skip
    final = imported_dir(root) / options.name
    with claimed(final, identity, replace_graph, progress) as out:
        if out is not None:
            with memory_errors(path):
                given = {k: _given(v, k) for k, v in files.items() if v}
            with memory_errors(path), naming(path):
                about = _import(path, out, replace(options, given=NodeArrays(**given)))
                seeded: NewGraph = {"seed": seed, **about}
                out.finish(name=options.name, **seeded)
    return final


def _stamp(path: Path) -> dict[str, object]:
    stat = path.stat() if path.is_file() else None
    return {"from": str(path), "size": stat and stat.st_size, "modified": stat and stat.st_mtime_ns}


def _given(file: str | Path, role: str) -> NamedArrays:
    return node_arrays(names.typed_path(str(file)).absolute(), role)


def _import(path: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    arrays = graph_arrays(path)
    if arrays is not None:
        with arrays:
            return {**import_arrays(arrays, out, options), "loader": path.suffix[1:] or "dgl"}
    if options.rows:
        raise UsageError(
            f"{path} is an edge list, whose lines are 'source target'; leave --rows out (a header "
            "may name the columns in another order)"
        )
    return import_edges(path, out, options)


def check_options(train_fraction: float, feature_dim: int, num_classes: int) -> None:
    """Raise ``UsageError`` for what no seeded stand-in can have."""
    if not 0 < train_fraction <= 1:
        raise UsageError(
            f"a training fraction of {train_fraction:g} is not above 0 and up to 1; use e.g. 0.6"
        )
    if feature_dim < 0 or num_classes < 0:
        raise UsageError("numbers of features and classes are positive (0: the default); mend them")
    if num_classes > MAX_CLASSES:
        raise UsageError(f"{num_classes} classes are too many; give {MAX_CLASSES} at most")


@contextlib.contextmanager
def claimed(
    final: Path, identity: Fingerprint, replace_graph: bool, progress: Progress | None
) -> Iterator[GraphWriter | None]:
    """A writer for the graph folder ``final``; None where that very graph is there already.

    Raises ``UsageError`` where something else is there, unless it is a graph and may be replaced.
    """

    def waiting() -> None:
        if progress is not None:
            progress("wait for another process that writes the same graph", 0, 0)

    with graph_lock(final, waiting):
        if layout.is_intact(final, identity):
            yield None
            return
        if final.exists():
            if not (final / layout.META).is_file():
                raise UsageError(f"{final} is there and is no stored graph; give another name")
            if not replace_graph:
                raise UsageError(
                    f"'{final.name}' is already another graph, in {final}; allow replacing it "
                    "(--replace), or choose another name"
                )
        with GraphWriter(final, identity, progress) as out:
            yield out


Loader = Callable[[GraphWriter], NewGraph]


def store_object(
    load: Loader, name: str, path: str | Path | None, replace_graph: bool, root: str | Path | None
) -> Path:
    """Store what ``load`` writes, under ``name`` or in the folder ``path``; returns the folder."""
    import secrets

    plain = check_new_name(name)
    final = Path(path).expanduser().absolute() if path is not None else imported_dir(root) / plain
    fresh = {"object": secrets.token_hex(8)}  # nothing tells one object from another beforehand
    with claimed(final, fresh, replace_graph, None) as out:
        assert out is not None
        try:
            with memory_errors(f"'{name}'"):
                out.finish(name=plain, **load(out))
        except DataError as error:
            raise DataError(f"'{name}': {error}") from None
    return final
