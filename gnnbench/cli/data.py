"""``gnnbench data``: list, info, import, get, prepare, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gnnbench.cli import completing
from gnnbench.cli.common import Json, Quiet, with_units
from gnnbench.cli.formats import FORMAT, FormatCommand, print_tables
from gnnbench.core.console import print_json, print_table, say
from gnnbench.core.errors import DataError, UsageError

Dataset = Annotated[str, typer.Argument(autocompletion=completing.dataset)]

app = typer.Typer(no_args_is_help=True, help="List, describe, get, import, prepare and verify.")


@app.command("list", cls=FormatCommand)
def data_list(
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """List all known datasets with state and size on disk."""
    from gnnbench.core.units import binary
    from gnnbench.datasets.catalog import store_bytes
    from gnnbench.datasets.paths import data_root, store_problem
    from gnnbench.harness.doctor import datasets

    if format == "json":
        print_json(datasets())
        return
    if format == "csv":
        print_tables({"datasets": datasets()}, format)
        return
    left_out = ("train", "description", "get")  # 'data info' prints them; the names are long
    rows = [{k: v for k, v in row.items() if k not in left_out} for row in datasets()]
    print_tables({"datasets": with_units(rows)}, format)
    if format != "table":
        return
    say("gnnbench data info NAME describes a dataset and how to get it")
    print(f"the store {data_root()} takes {binary(store_bytes())}")
    if problem := store_problem():
        print(problem)


@app.command("info", cls=FormatCommand)
def data_info(name: Dataset, format: Annotated[Literal["table", "json"], FORMAT] = "table") -> None:
    """Describe a dataset: sources, published figures, stored files."""
    from dataclasses import asdict

    from gnnbench.datasets import catalog
    from gnnbench.datasets.describe import describe

    info = catalog.info(name)
    if format == "json":
        manifest = info.manifest and info.manifest.model_dump(mode="json")
        print_json({**asdict(info), "manifest": manifest})
        return
    for line in describe(info):
        print(line)


@app.command("import")
def data_import(
    source: Annotated[
        str,
        typer.Argument(help="Edge list as text (gzipped or not), .npz, .npy, .pt or DGL's file."),
    ],
    name: Annotated[str, typer.Option(help="Name of the dataset.")],
    symmetric: Annotated[
        bool,
        typer.Option("--symmetric", help="Add the reverse of every edge, merge parallel ones."),
    ] = False,
    rows: Annotated[
        str,
        typer.Option(
            metavar="targets|sources",
            help="Meaning of a row of an adjacency matrix: 'targets' (it lists the sources of the"
            " edges into it) or 'sources' (the targets of its edges).",
        ),
    ] = "",
    features: Annotated[
        str, typer.Option(metavar="FILE", help="Features, a row a node: .npy, .npz, .pt, text.")
    ] = "",
    labels: Annotated[
        str,
        typer.Option(metavar="FILE", help="Classes, one a node (-1: none): .npy, .npz, .pt, text."),
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="'train', 'val', 'test': ids or masks in an .npz or .pt, or a word a line.",
        ),
    ] = "",
    train_fraction: Annotated[
        float, typer.Option(help="Share of the nodes to train on, where there is no split.")
    ] = 0.6,
    feature_dim: Annotated[
        int, typer.Option(min=0, help="Width of seeded features, where there are none; 0: 64.")
    ] = 0,
    classes: Annotated[int, typer.Option(min=0, help="Number of seeded classes; 0: 16.")] = 0,
    nodes: Annotated[
        int, typer.Option(min=0, help="Number of nodes, ids kept; 0: those that edges name.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated data.")] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another graph of that name.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import your graph under a name; use it with 'run --datasets NAME'.

    An edge list has one 'source target' a line, with # or % before comments. With --features or
    --labels node k is their row k; else nodes are those that an edge names.

    A file of arrays (.npz of numpy or scipy, .pt with a dict or PyG's Data, DGL's save_graphs) has
    edge_index [2, edges], or src and dst, or an adjacency matrix: indptr and indices, row and col,
    what scipy saves. Nodes: features (x, feat), labels (y, label), train_idx or train_mask and so
    on; edges: weights (edge_weight, weight). What is not kept is named.

    Which way edges point: edge_index is sources, then targets. A matrix does not say; unless it is
    the same both ways, give --rows (or a text 'rows' in the file), or --symmetric.

    Objects in Python: gnnbench.datasets.importers.objects.from_pyg and from_dgl. All of it:
    docs/own-graph.md.
    """
    from gnnbench.core.progress import Display
    from gnnbench.datasets.importers.imported import import_source
    from gnnbench.datasets.names import check_new_name
    from gnnbench.datasets.paths import imported_dir
    from gnnbench.datasets.store.layout import META, read_meta

    _check_is_file(source)
    stored = imported_dir() / check_new_name(name) / META
    before = _stamp(stored)
    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        display.plan(1, 0.0)
        folder = import_source(
            source, name, symmetric=symmetric, rows=rows, features=features or None,
            labels=labels or None, split=split or None, train_fraction=train_fraction,
            feature_dim=feature_dim, num_classes=classes, num_nodes=nodes, seed=seed,
            replace_graph=replace, progress=progress,
        )  # fmt: skip
    meta = read_meta(folder)
    keys = ("name", "num_nodes", "num_edges", "features", "labels", "split", "notes")
    state = "stored" if not before else "unchanged" if before == _stamp(stored) else "replaced"
    if json:
        print_json(
            {
                "path": str(folder),
                "state": state,
                **{key: value for key, value in meta.items() if key in keys},
            }
        )
        return
    print(folder)
    if not quiet:
        counts = f"{meta['num_nodes']:,} nodes, {meta['num_edges']:,} directed edges"
        print(f"{meta['name']}: {_STATES[state]}{counts}")
        for key in ("features", "labels", "split"):
            print(f"{key}: {_ORIGINS.get(meta[key], meta[key])}")
        for note in meta["notes"]:
            print(note)


_STATES = {
    "stored": "",
    "unchanged": "stored already, from the same file with the same options; ",
    "replaced": "replaced the graph of that name; ",
}
_ORIGINS = {
    "source": "those of the source",
    "seeded": "random, from the seed",
}


def _stamp(path: Path) -> tuple[int, int] | None:
    """Inode and modification time of a file; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _check_is_file(source: str) -> None:
    """Raise ``UsageError`` for a folder and for a name that ``data get`` or ``data prepare`` take.

    Prepared graphs are left to the import, which says what to do with them.
    """
    from gnnbench.core.names import typed_path
    from gnnbench.datasets.download_sources import downloads
    from gnnbench.datasets.store.layout import META

    if not source:
        raise UsageError("the source is empty; give the file of a graph")
    path = typed_path(source)
    if path.is_file() or (path / META).is_file():
        return
    plain = path.name.replace("-", "_").lower()
    if path.is_dir():
        known = plain if plain in downloads() else "NAME"
        raise UsageError(
            f"{source} is a folder, and 'data import' takes a file (an edge list as text, .npz,"
            f" .npy, .pt or DGL's file); for a dataset as OGB, SNAP, PyG or DGL publish it, give"
            f" 'gnnbench data get {known}', and for a folder of .npz graphs set"
            " GNNBENCH_REAL_DATA to it"
        )
    if path.parent == Path() and plain in downloads():
        raise UsageError(
            f"there is no file {source}; 'gnnbench data get {plain}' downloads the dataset of that"
            " name"
        )


@app.command("get")
def data_get(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.downloads,
            help="Dataset to download; default: list the available ones.",
        ),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download a published graph (OGB, SNAP, PyG, DGL), check it, and import it.

    An interrupted download continues. Raw files are in raw/ of the dataset store, their checksums
    in downloads.json. The licence is the host's.
    """
    from gnnbench.core.progress import Display
    from gnnbench.core.units import binary
    from gnnbench.datasets.download import find, get
    from gnnbench.datasets.download_sources import downloads

    if not name:
        if json:
            print_json([source.model_dump() for source in downloads().values()])
            return
        shown = ("name", "host", "licence")
        rows = [{key: getattr(source, key) for key in shown} for source in downloads().values()]
        print_table("to get", rows)
        return
    source = find(name)
    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            size = f": {binary(done)} of {binary(total)}" if total else ""
            display.step(text + size, done / total if total else 0.0)

        display.note(f"{source.name} is from {source.host}, licence: {source.licence}")
        display.plan(1, 0.0)
        folder = get(name, progress=progress)
    if json:
        print_json({"name": name, "path": str(folder)})
    else:
        print(folder)


@app.command("prepare")
def data_prepare(
    name: Dataset,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a twin.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import or generate a dataset and seal it. An interrupted preparation continues.

    Checks memory and disk first: exit code 3 if memory is too small, 2 if the disk is.
    """
    from dataclasses import astuple

    from gnnbench.core.progress import Display
    from gnnbench.core.units import taking
    from gnnbench.datasets import catalog
    from gnnbench.datasets.prepare import check_room, preparation

    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        check_room(name, seed=seed)
        needed = preparation(name, seed=seed)
        if needed is not None:
            display.note(f"{name} is to be prepared: {taking(*astuple(needed))}")
        display.plan(1, 0.0)
        folder = catalog.prepare(name, seed=seed, progress=progress)
    if json:
        print_json({"name": name, "path": str(folder)})
    else:
        print(folder)


@app.command("verify")
def data_verify(name: Dataset, json: Json = False) -> None:
    """Check every byte of a prepared dataset against its checksums, and renew its seal.

    Runs do so only where the graph has no seal, or a file changed since it was sealed.
    """
    from dataclasses import asdict

    from gnnbench.datasets import catalog

    report = catalog.verify(name)
    if json:
        print_json({**asdict(report), "ok": report.ok})
    elif report.ok:
        print(report.message)
    if not report.ok:
        raise DataError(report.message)
