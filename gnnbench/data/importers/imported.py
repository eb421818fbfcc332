"""Take a user's graph into the store under a name of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gnnbench.data.importers.common import ImportOptions, naming
from gnnbench.data.importers.edges import import_edges
from gnnbench.data.importers.npz import import_npz
from gnnbench.data.manifest import Source
from gnnbench.data.names import check_new_name
from gnnbench.data.paths import imported_dir
from gnnbench.data.store import layout
from gnnbench.data.store.writer import GraphWriter, Progress, graph_lock
from gnnbench.errors import DataError, UsageError

# Raised when what an import writes changes, so that older folders are no longer taken for it.
_VERSION = 2
_PICKLED = {".pt", ".pth", ".pkl", ".pickle"}
# For edge lists that list an undirected edge once, or in both directions: the union counts.
_SYMMETRIC = Source(loader="edge-list", paths=[], get="", add_reverse=True, merge=True)


def import_source(
    source: str | Path,
    name: str,
    *,
    symmetric: bool = False,
    train_fraction: float = 0.6,
    feature_dim: int = 0,
    num_classes: int = 0,
    num_nodes: int = 0,
    seed: int = 0,
    replace_graph: bool = False,
    root: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Store an edge list or an ``.npz`` as ``name``; returns the graph's folder.

    ``symmetric`` adds the reverse of every edge and merges parallel ones. Where the source has no
    features, labels or split, seeded ones are drawn (``feature_dim`` wide, 0: 64; of
    ``num_classes`` classes, 0: 16; ``train_fraction`` of the nodes for training) and ``meta.json``
    says so. ``num_nodes`` of an edge list keeps its ids as they are, isolated nodes included; by
    default its nodes are those that an edge names.

    The same call again returns at once. Raises ``UsageError`` for a name that is taken or an option
    that does not fit, ``DataError`` for a source that is no graph.
    """
    path = Path(source).expanduser().absolute()
    if not path.is_file():
        raise UsageError(
            f"there is no file {source}; give an edge list as text (gzipped or not) or an .npz"
        )
    if path.suffix in _PICKLED:
        raise UsageError(
            f"{source} holds pickled objects, which gnnbench never loads; load it in Python and "
            "call gnnbench.data.importers.objects.from_pyg or from_dgl"
        )
    npz = path.suffix == ".npz"
    if npz and (symmetric or num_nodes):
        raise UsageError(
            f"{source} is an .npz with its own number of nodes; leave --num-nodes out, and write "
            f"'{name}+sym' where it is to be symmetric"
        )
    check_options(train_fraction, feature_dim, num_classes)
    if num_nodes < 0:
        raise UsageError(f"a graph cannot have {num_nodes} nodes; give a positive number")
    options = ImportOptions(
        check_new_name(name), seed, feature_dim, num_classes, _SYMMETRIC if symmetric else None,
        train_fraction=train_fraction, num_nodes=num_nodes,
    )  # fmt: skip
    stat = path.stat()
    asked = {k: v for k, v in asdict(options).items() if k not in ("source", "split")}
    identity = {
        "import": {**asked, "symmetric": symmetric},
        "from": str(path), "size": stat.st_size, "modified": stat.st_mtime_ns, "version": _VERSION,
    }  # fmt: skip
    final = imported_dir(root) / options.name
    with claimed(final, identity, replace_graph, progress) as out:
        if out is not None:
            with naming(path):
                about = (import_npz if npz else import_edges)(path, out, options)
                out.finish(name=options.name, seed=seed, **about)
    return final


def check_options(train_fraction: float, feature_dim: int, num_classes: int) -> None:
    """Raise ``UsageError`` for what no seeded stand-in can have."""
    if not 0 < train_fraction <= 1:
        raise UsageError(
            f"a training fraction of {train_fraction:g} is not above 0 and up to 1; use e.g. 0.6"
        )
    if feature_dim < 0 or num_classes < 0:
        raise UsageError("numbers of features and classes are positive (0: the default); mend them")


@contextlib.contextmanager
def claimed(
    final: Path, identity: dict[str, Any], replace_graph: bool, progress: Progress | None
) -> Iterator[GraphWriter | None]:
    """A writer for the graph folder ``final``; None where that very graph is there already.

    Raises ``UsageError`` where something else is there, unless it is a graph and may be replaced.
    """

    def waiting() -> None:
        if progress is not None:
            progress("wait for another process that writes the same graph", 0, 0)

    with graph_lock(final, waiting):
        if layout.intact(final, identity):
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


Loader = Callable[[GraphWriter], dict[str, Any]]


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
            out.finish(name=plain, **load(out))
        except DataError as error:
            raise DataError(f"'{name}': {error}") from None
    return final
