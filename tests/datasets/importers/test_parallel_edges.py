"""Parallel edges and self-loops through every importer of text and folders; SciPy as oracle."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from own_graph import run_importer

from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.npyfolder import import_igb, import_mag240m
from gnnbench.datasets.importers.ogb import import_ogb_binary, import_ogb_csv
from gnnbench.datasets.manifest import Source
from gnnbench.datasets.store.reader import open_graph

# 0 -> 1 twice and 2 -> 2 twice.
EDGES = np.array([[0, 1], [0, 1], [2, 2], [1, 0], [2, 2], [3, 0]])
INDPTR, INDICES = [0, 2, 4, 6, 6], [1, 3, 0, 0, 2, 2]
MERGED_INDPTR, MERGED_INDICES = [0, 2, 3, 4, 5], [1, 3, 0, 2, 0]


def ogb_csv(folder: Path) -> None:
    raw, split = folder / "raw", folder / "split" / "time"
    for one in (raw, split):
        one.mkdir(parents=True)
    texts = {
        raw / "edge.csv.gz": "".join(f"{u},{v}\n" for u, v in EDGES),
        raw / "num-node-list.csv.gz": "4\n",
        raw / "node-label.csv.gz": "0\n1\n0\n1\n",
        split / "train.csv.gz": "0\n1\n",
        split / "valid.csv.gz": "2\n",
        split / "test.csv.gz": "3\n",
    }
    for path, text in texts.items():
        path.write_bytes(gzip.compress(text.encode()))


def ogb_binary(folder: Path) -> None:
    ogb_csv(folder)
    x = np.zeros((4, 2), np.float32)
    data = {"edge_index": EDGES.T, "num_nodes_list": np.array([4]), "node_feat": x}
    np.savez(folder / "raw" / "data.npz", **data)
    np.savez(folder / "raw" / "node-label.npz", node_label=np.array([[0.0], [1], [0], [1]]))


def npy_folder(folder: Path, link: str, edges: np.ndarray, label: str) -> None:
    papers = folder / "processed" / "paper"
    for one in (papers, folder / "processed" / link):
        one.mkdir(parents=True)
    np.save(folder / "processed" / link / "edge_index.npy", edges)
    np.save(papers / "node_feat.npy", np.zeros((4, 2), np.float16))
    np.save(papers / label, np.array([0.0, 1, 0, 1]))
    np.save(papers / "node_year.npy", np.array([2017, 2018, 2019, 2020]))


def igb(folder: Path) -> None:
    npy_folder(folder, "paper__cites__paper", EDGES, "node_label_19.npy")


def mag240m(folder: Path) -> None:
    npy_folder(folder, "paper___cites___paper", EDGES.T, "node_label.npy")


FOLDERS = {
    "ogb csv": (ogb_csv, import_ogb_csv),
    "ogb binary": (ogb_binary, import_ogb_binary),
    "igb": (igb, import_igb),
    "mag240m": (mag240m, import_mag240m),
}


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("kind", FOLDERS)
def test_folders_keep_or_merge_parallel_edges(tmp_path: Path, kind: str, merge: bool) -> None:
    """Merged only if the manifest says that the graph is undirected and lists each edge once."""
    make, load = FOLDERS[kind]
    make(tmp_path / "raw")
    source = Source(loader="ogb-csv", paths=[], get="", add_reverse=merge, merge=merge)
    options = ImportOptions("g", source=source)
    graph = run_importer(load, tmp_path / "raw", tmp_path, options)
    assert graph.indptr.tolist() == (MERGED_INDPTR if merge else INDPTR)
    assert graph.indices.tolist() == (MERGED_INDICES if merge else INDICES)


@settings(max_examples=15, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25),
    symmetric=st.booleans(),
)
def test_edge_lists_equal_scipy(tmp_path_factory, pairs, symmetric: bool) -> None:
    """The CSC of all edges, or the pattern of A + A.T."""
    assume(pairs[0][1] != len(pairs) - 1)  # may be a line of counts, which is refused
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "e.txt").write_text("# u v\n" + "".join(f"{u}\t{v}\n" for u, v in pairs))
    graph = open_graph(
        import_source(
            folder / "e.txt", "g", symmetric=symmetric, num_nodes=7, feature_dim=1, root=folder
        )
    )
    u, v = np.array(pairs).T
    counts = sp.csc_matrix((np.ones(len(u), int), (u, v)), (7, 7))  # sums duplicates
    if symmetric:
        counts = ((counts + counts.T) > 0).astype(int).tocsc()
    counts.sort_indices()
    columns = np.repeat(np.arange(7), np.diff(counts.indptr))
    indptr = np.concatenate([[0], np.bincount(columns, counts.data, 7).cumsum()])
    assert graph.indptr.tolist() == indptr.tolist()
    assert graph.indices.tolist() == np.repeat(counts.indices, counts.data).tolist()
