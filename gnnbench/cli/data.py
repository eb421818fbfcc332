"""``gnnbench data``: list, info, import, prepare, verify."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.cli.common import Json, Quiet, print_json, print_table
from gnnbench.errors import DataError

app = typer.Typer(no_args_is_help=True, help="List, describe, prepare and verify datasets.")


@app.command("list")
def data_list(json: Json = False) -> None:
    """Every known dataset and its state."""
    from gnnbench.doctor import datasets

    if json:
        print_json(datasets())
    else:
        print_table("datasets", datasets())


@app.command("info")
def data_info(name: str, json: Json = False) -> None:
    """All that is known of a dataset: sources, published figures, what is stored."""
    from dataclasses import asdict

    from gnnbench.data import catalog
    from gnnbench.data.describe import describe

    found = catalog.info(name)
    if json:
        manifest = found.manifest and found.manifest.model_dump(mode="json")
        print_json({**asdict(found), "manifest": manifest})
        return
    for line in describe(found):
        print(line)


@app.command("import")
def data_import(
    source: Annotated[str, typer.Argument(help="Edge list as text (gzipped or not), or an .npz.")],
    name: Annotated[str, typer.Option(help="Name to use it by afterwards.")],
    symmetric: Annotated[
        bool,
        typer.Option("--symmetric", help="Add the reverse of every edge, merge parallel ones."),
    ] = False,
    train_fraction: Annotated[
        float, typer.Option(help="Share of the nodes to train on, where the source has no split.")
    ] = 0.6,
    features: Annotated[int, typer.Option(min=0, help="Width of seeded features; 0: 64.")] = 0,
    classes: Annotated[int, typer.Option(min=0, help="Number of seeded classes; 0: 16.")] = 0,
    nodes: Annotated[
        int, typer.Option(min=0, help="Number of nodes, ids kept; 0: those that edges name.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what the source has not.")] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another graph of that name.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Store a graph of yours under a name; use it with 'run --datasets NAME'.

    An edge list has one 'source target' a line, with # or % before comments. PyG and DGL objects
    come in from Python: gnnbench.data.importers.objects.from_pyg and from_dgl.
    """
    from gnnbench.data.importers.imported import import_source
    from gnnbench.data.store.layout import read_meta
    from gnnbench.progress import Display

    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        display.plan(1, 0.0)
        folder = import_source(
            source, name, symmetric=symmetric, train_fraction=train_fraction, feature_dim=features,
            num_classes=classes, num_nodes=nodes, seed=seed, replace_graph=replace,
            progress=progress,
        )  # fmt: skip
    meta = read_meta(folder)
    keys = ("name", "num_nodes", "num_edges", "features", "labels", "split", "notes")
    if json:
        print_json({"path": str(folder), **{key: meta[key] for key in keys}})
        return
    print(folder)
    if not quiet:
        print(f"{meta['name']}: {meta['num_nodes']} nodes, {meta['num_edges']} directed edges")
        for key in ("features", "labels", "split"):
            print(f"{key}: {meta[key]}")
        for note in meta["notes"]:
            print(note)


@app.command("prepare")
def data_prepare(
    name: str,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a twin.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import or generate a dataset into the store; resumes where it was stopped."""
    from gnnbench.data import catalog
    from gnnbench.progress import Display

    with Display(quiet) as display:

        def progress(text: str, done: int, total: int) -> None:
            display.step(text, done / total if total else 0.0)

        display.plan(1, 0.0)
        folder = catalog.prepare(name, seed=seed, progress=progress)
    if json:
        print_json({"name": name, "path": str(folder)})
    else:
        print(folder)


@app.command("verify")
def data_verify(name: str, json: Json = False) -> None:
    """Check every byte of a prepared dataset against its checksums."""
    from dataclasses import asdict

    from gnnbench.data import catalog

    report = catalog.verify(name)
    if json:
        print_json({**asdict(report), "ok": report.ok})
    elif report.ok:
        print(report.message)
    if not report.ok:
        raise DataError(report.message)
