"""Edge lists as text: accepted and refused files, and node ids."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.catalog import info, list_datasets, verify
from gnnbench.datasets.importers import edges as edges_module
from gnnbench.datasets.importers import tally, textfile
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.names import resolve
from gnnbench.datasets.prepare import load_dataset
from gnnbench.datasets.store.reader import open_graph


@pytest.fixture
def write(tmp_path: Path):
    def make(text: str | bytes, name: str = "edges.txt") -> Path:
        path = tmp_path / name
        raw = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return make


def stored_edges(graph) -> list[tuple[int, int]]:
    degree = np.diff(graph.indptr.numpy())
    return list(zip(graph.indices.tolist(), np.repeat(np.arange(len(degree)), degree), strict=True))


def ids_of(graph) -> np.ndarray | None:
    entry = graph.meta["arrays"].get("node_ids")
    return None if entry is None else np.fromfile(graph.path / entry["file"], "<i8")


EDGES = [(1, 0), (0, 1), (2, 1), (0, 2)]  # (source, target), sorted as in the store
ACCEPTED = {
    "blanks": "0 1\n1 0\n0 2\n2 1\n",
    "tabs and comments": "# a comment\n#\n0\t1\n1\t0\n# between\n0\t2\n2\t1",
    "commas": "0,1\n1, 0\n 0,2\n2,1\n",
    "semicolons": "0;1\n1;0\n0;2\n2;1\n",
    "KONECT": "% sym positive\n% 4 3 3\n0 1\n1 0\n0 2\n2 1\n",
    "Windows": "\ufeff0 1\r\n1 0\r\n0 2\r\n2 1\r\n",
    "empty lines": "\n\n0 1 \n\n1 0\n0 2\n2 1\n\n",
    "weights": "0 1 .5\n1 0 1e-3\n0 2 1\n2 1 3\n",
    "header": "source,target\n0,1\n1,0\n0,2\n2,1\n",
    "quoted header": '"src","dst","weight"\n0,1,1\n1,0,1\n0,2,1\n2,1,1\n',
    "header in another order": "year\tto\tfrom\n7\t1\t0\n7\t0\t1\n7\t2\t0\n7\t1\t2\n",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
@pytest.mark.parametrize("name", ["edges.txt", "edges.csv.gz"])
def test_edge_lists_that_are_accepted(root: Path, write, text: str, name: str) -> None:
    graph = open_graph(import_source(write(text, name), "mine"))
    assert stored_edges(graph) == EDGES
    assert graph.num_nodes == 3
    assert ids_of(graph) is None
    notes_weights = any("not kept: weights" in note for note in graph.meta["notes"])
    assert notes_weights == ("weight" in text or ".5" in text)


REFUSED = [
    ("", "has no edges"),
    ("# only this\n", "has no edges"),
    ("source,target\n", "has no edges"),
    ("a,b\n0,1\n", r"first line of .*edges.txt \('a,b'\) is neither an edge"),
    ("Q1 Q2\nQ2 Q3\n", "has 'Q1 Q2' where two ids are expected, .*; number the nodes from 0"),
    ("0.5 1.2\n0.1 2.2\n", "'0.5 1.2' where two ids are expected, which are whole numbers"),
    ("Q1 Q2\n", "neither an edge of integer ids nor a header"),
    ("src,dst,dst\n0,1,1\n", "names one 'source' and one 'target'"),
    ("source,target\n0,1,2\n", "2 names in its header and 3 columns"),
    ("7\n0 1\n", "has one column where an edge has two ids"),
    ("3 2\n0 1\n1 2\n", "tells how many nodes and edges"),
    ("0 1 2 3\n", "has 4 columns"),
    ("0 1\n1\n", r"line 2 of .*edges.txt \('1'\) has 1 of 2 columns; correct it"),
    ("0 1\n1 2 3\n", "line 2 of .* has 3 columns where the first edge has 2"),
    ("# x\n\n0 1\n1 x\n", r"line 4 of .* \('1 x'\) has 'x' where the id of a node is expected"),
    ("source\ttarget\n0\t1\n1\t2.5\n", "line 3 of .* has '2.5' where the id"),
    ("0 1\n1 99999999999999999999\n", "line 2 of .* has an edge with node 9999999"),
    ("0 1\n-1 2\n", "line 2 of .* has an edge with node -1; number the nodes from 0"),
    ("%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n", "is a Matrix Market file"),
    (gzip.compress(b"0 1\n" * 999, mtime=0)[:-9], "edges.txt is truncated, damaged"),
    (b"\x1f\x8bno", "edges.txt is truncated, damaged"),
    (b"\x00\xff\xfe", "edges.txt is not text; give an edge list"),
    (b"PK\x03\x04 some archive", "is a zip archive, not text; unpack it"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_edge_lists_that_are_refused(root: Path, write, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        import_source(write(text), "mine")
    assert "\n" not in str(caught.value)
    assert not (root / "imported" / "mine").exists()
    with pytest.raises(UsageError, match="unknown dataset 'mine'"):
        resolve("mine")


@pytest.mark.parametrize("far", [20, 10**12])
def test_ids_with_gaps_are_numbered_and_kept(root: Path, write, far: int) -> None:
    graph = open_graph(import_source(write(f"7 {far}\n{far} 7\n12 7\n"), "mine"))
    assert ids_of(graph).tolist() == [7, 12, far]
    assert stored_edges(graph) == [(1, 0), (2, 0), (0, 2)]
    assert verify("mine").ok
    with (graph.path / "node_ids.bin").open("r+b") as file:
        file.write(b"\x01")
    assert verify("mine").problems == ("node_ids.bin changed",)


def test_num_nodes_keeps_the_ids(root: Path, write) -> None:
    path = write("7 5\n5 7\n")
    graph = open_graph(import_source(path, "mine", num_nodes=10))
    assert (graph.num_nodes, ids_of(graph)) == (10, None)
    assert stored_edges(graph) == [(7, 5), (5, 7)]
    with pytest.raises(DataError, match=r"line 1 of .* node 7, outside 0\.\.6"):
        import_source(path, "other", num_nodes=7)


def test_symmetric_import_merges_parallel_edges(root: Path, write) -> None:
    path = write("0 1\n0 1\n1 1\n2 0\n")
    plain = open_graph(import_source(path, "plain"))
    assert stored_edges(plain) == [(2, 0), (0, 1), (0, 1), (1, 1)]
    assert plain.meta["symmetric"] is False
    both = open_graph(import_source(path, "both", symmetric=True))
    assert stored_edges(both) == [(1, 0), (2, 0), (0, 1), (1, 1), (0, 2)]
    assert both.meta["symmetric"] is True
    assert stored_edges(load_dataset("plain+sym")) == stored_edges(both)
    assert stored_edges(load_dataset(f"{plain.path}+sym")) == stored_edges(both)


@pytest.mark.parametrize(
    "text,options,notes",
    [
        ("0 1\n1 0\n1 2\n", {}, ["edges listed: 3; stored: 3, of 3 nodes"]),
        (
            "0 1\n0 1\n1 1\n2 0\n0 1\n",
            {},
            [
                "edges listed: 5; stored: 5, of 3 nodes",
                "edges that repeat another: 2, kept as parallel edges (--symmetric merges)",
                "edges from a node to itself: 1, kept",
                "no edge has its reverse: if the graph is undirected and lists each edge once,"
                " import it again with --symmetric --replace",
            ],
        ),
        (
            "0 1\n1 0\n0 1\n1 1\n1 1\n2 0\n",
            {"symmetric": True},
            [
                "edges listed: 6; stored: 5, of 3 nodes, each in both directions",
                "edges that repeat another or its reverse: 3, merged",
                "edges from a node to itself: 1, kept",
            ],
        ),
        (
            "3 7\n7 3\n",
            {},
            [
                "edges listed: 2; stored: 2, of 2 nodes",
                "ids were renumbered: 3..7 are nodes 0..1 in their order; that of node k is"
                " node_ids[k]",
            ],
        ),
        ("0 0\n1 1\n", {}, ["edges listed: 2; stored: 2, of 2 nodes",
                            "edges from a node to itself: 2, kept"]),
        (
            "3 7\n7 3\n",
            {"num_nodes": 9},
            ["edges listed: 2; stored: 2, of 9 nodes", "nodes that no edge names: 7, kept"],
        ),
    ],
)  # fmt: skip
def test_merged_kept_and_renumbered_edges_are_reported(
    root: Path, write, text, options, notes
) -> None:
    assert open_graph(import_source(write(text), "mine", **options)).meta["notes"] == notes


def test_only_some_of_many_edges_are_checked_for_reverses(root: Path, write, monkeypatch) -> None:
    monkeypatch.setattr(tally, "LOOKED_AT", 20)
    path = write("".join(f"{i} {i + 1}\n" for i in range(100)))
    hint = open_graph(import_source(path, "mine")).meta["notes"][-1]
    assert hint.startswith("of 20 edges looked at none has its reverse: if the graph is")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None)
def test_loops_repeats_and_reverses_equal_those_of_a_set(listed) -> None:
    rows = sorted((target, source) for source, target in listed)
    indptr = np.searchsorted([target for target, _ in rows], np.arange(8))
    indices = np.array([source for _, source in rows])
    loops, repeats = tally._loops_and_repeats(indptr, indices)
    assert (loops, repeats) == (sum(a == b for a, b in listed), len(listed) - len(set(listed)))
    both = any(a != b and (b, a) in listed for a, b in listed)
    assert tally._one_way(indptr, indices) == (0 if both else len(listed))


def test_seeded_features_labels_and_split_are_recorded(root: Path, write) -> None:
    path = write("".join(f"{i} {(i * 7) % 100}\n" for i in range(100)))
    graph = open_graph(
        import_source(path, "mine", train_fraction=0.1, feature_dim=9, num_classes=5, seed=3)
    )
    assert (graph.feature_dim, graph.num_classes) == (9, 5)
    parts = [graph.train_idx, graph.val_idx, graph.test_idx]
    assert [len(p) for p in parts] == [10, 20, 70]
    assert {k: graph.meta[k] for k in ("features", "labels", "split")} == {
        "features": "seeded",
        "labels": "seeded",
        "split": "random 10/20/70, seed 3",
    }
    most = open_graph(import_source(path, "most", train_fraction=1))
    assert [len(p) for p in (most.train_idx, most.val_idx, most.test_idx)] == [100, 0, 0]


def test_imported_graph_is_found_and_replaced_by_name(root: Path, write, tmp_path: Path) -> None:
    path = write("0 1\n1 0\n")
    folder = import_source(path, "My-Graph")
    assert folder == root / "imported" / "my_graph"
    assert resolve("my-graph").path == folder
    assert "my_graph" in [d.name for d in list_datasets()]
    assert info("my_graph").summary.state == "prepared"
    assert info("my_graph+sym").summary.state == "source"
    with pytest.raises(UsageError, match="did you mean 'my_graph'"):
        resolve("my_grap")
    written = (folder / "meta.json").stat().st_mtime_ns
    assert import_source(path, "my_graph") == folder
    assert (folder / "meta.json").stat().st_mtime_ns == written
    with pytest.raises(UsageError, match="already another graph"):
        import_source(path, "my_graph", feature_dim=3)
    sym = load_dataset("my_graph+sym")
    import_source(path, "my_graph", feature_dim=3, replace_graph=True)
    assert load_dataset("my_graph").feature_dim == 3
    assert sym.feature_dim == 64
    assert load_dataset("my_graph+sym").feature_dim == 3  # not that of the replaced graph
    other_root = import_source(path, "there", root=tmp_path / "elsewhere")
    assert load_dataset("there", root=tmp_path / "elsewhere").path == other_root


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("reddit", {}, "name of another dataset"),
        ("ogbn-products", {}, "name of another dataset"),
        ("a~twin", {}, "cannot name a graph"),
        ("a/b", {}, "cannot name a graph"),
        ("..", {}, "cannot name a graph"),
        ("", {}, "cannot name a graph"),
        ("a@0.5", {}, "cannot name a graph"),
        ("ok", {"train_fraction": 0}, "training fraction of 0"),
        ("ok", {"train_fraction": float("nan")}, "training fraction of nan"),
        ("ok", {"feature_dim": -1}, "positive"),
        ("ok", {"num_nodes": -1}, "-1 nodes"),
    ],
)
def test_invalid_options_are_refused(root: Path, write, name: str, options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        import_source(write("0 1\n"), name, **options)


def test_other_sources_are_imported_or_refused(root: Path, write, make_npz, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; give an edge list"):
        import_source(tmp_path, "mine")
    with pytest.raises(UsageError, match="never loads; load it in Python"):
        import_source(write(b"PK", "data.pkl"), "mine")
    npz = make_npz()
    both = open_graph(import_source(npz, "both", symmetric=True))
    assert stored_edges(both) == stored_edges(load_dataset(f"{npz}+sym"))
    graph = open_graph(import_source(npz, "mine"))
    assert graph.indices.tolist() == load_dataset(str(npz)).indices.tolist()


def test_folder_without_a_graph_is_not_replaced(root: Path, write) -> None:
    other_folder = root / "imported" / "mine"
    other_folder.mkdir(parents=True)
    (other_folder / "precious").touch()
    with pytest.raises(UsageError, match="is no stored graph"):
        import_source(write("0 1\n"), "mine", replace_graph=True)
    assert (other_folder / "precious").exists()


def test_interrupted_import_resumes(root: Path, write) -> None:
    path = write("0 1\n1 0\n")

    def interrupt(step: str, done: int, total: int) -> None:
        if step == "features":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_source(path, "mine", progress=interrupt)
    with pytest.raises(UsageError, match="unknown dataset"):
        resolve("mine")
    steps: list[str] = []
    import_source(path, "mine", progress=lambda step, done, total: steps.append(step))
    assert "scratch_edges" not in steps
    assert "features" in steps
    assert verify("mine").ok


@settings(max_examples=20)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), min_size=1),
    wide=st.booleans(),
)
def test_edge_list_round_trip(tmp_path_factory, pairs, wide: bool) -> None:
    folder = tmp_path_factory.mktemp("any")
    pairs = pairs if wide else [(u % 50, v % 50) for u, v in pairs]
    path = folder / "e.tsv"
    path.write_text("source\ttarget\n" + "".join(f"{u}\t{v}\n" for u, v in pairs))
    graph = open_graph(import_source(path, "any", root=folder))
    ids = ids_of(graph)
    read_back = [(u, v) if ids is None else (ids[u], ids[v]) for u, v in stored_edges(graph)]
    assert sorted(read_back) == sorted(pairs)


def test_edges_do_not_depend_on_the_block_size(root: Path, write, monkeypatch) -> None:
    path = write("% x\n" + "".join(f"{i % 17} {i % 5}\n" for i in range(100)))
    form = edges_module.sniff(path)
    whole = np.concatenate(list(edges_module.edge_pieces(path, form)))
    monkeypatch.setattr(textfile, "_BLOCK_BYTES", 7)
    small = np.concatenate(list(edges_module.edge_pieces(path, form)))
    assert np.array_equal(whole, small)
    assert len(whole) == 100
