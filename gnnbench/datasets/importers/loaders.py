"""The importers by the name that a manifest's source gives as its ``loader``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.edges import import_edges
from gnnbench.datasets.importers.npyfolder import import_igb, import_mag240m
from gnnbench.datasets.importers.npz import import_npz
from gnnbench.datasets.importers.ogb import import_ogb_binary, import_ogb_csv
from gnnbench.datasets.importers.pyg import import_coauthor, import_graphsaint, import_reddit
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter

Importer = Callable[[Path, GraphWriter, ImportOptions], NewGraph]

LOADERS: dict[str, Importer] = {
    "npz": import_npz,
    "ogb-csv": import_ogb_csv,
    "ogb-binary": import_ogb_binary,
    "pyg-reddit": import_reddit,
    "pyg-coauthor": import_coauthor,
    "pyg-graphsaint": import_graphsaint,
    "edge-list": import_edges,
    "igb": import_igb,
    "mag240m": import_mag240m,
}
