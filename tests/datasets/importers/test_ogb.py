"""Import of OGB's raw layouts, CSV and binary."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from own_graph import run_importer

from gnnbench.core.errors import DataError, HostMemoryError
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.ogb import import_ogb_binary, import_ogb_csv
from gnnbench.datasets.manifest import Source

EDGES = np.array([[0, 1], [2, 1], [1, 2], [3, 3], [0, 1], [4, 0]])  # source, destination
FEATURES = np.array([[0.5, -1.25], [1, 2], [3, 4], [5, 6], [7, 8]], np.float32)
LABELS = np.array([0, 2, 1, 0, 1])


def write_csv(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(",".join(str(v) for v in np.atleast_1d(row)) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()))


def write_splits(folder: Path) -> None:
    for part, ids in (("train", [3, 0]), ("valid", [1]), ("test", [2, 4])):
        write_csv(folder / "split" / "time" / f"{part}.csv.gz", ids)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    folder = tmp_path / "arxiv"
    write_csv(folder / "raw" / "edge.csv.gz", EDGES)
    write_csv(folder / "raw" / "num-node-list.csv.gz", [5])
    write_csv(folder / "raw" / "num-edge-list.csv.gz", [6])
    write_csv(folder / "raw" / "node-feat.csv.gz", FEATURES)
    write_csv(folder / "raw" / "node-label.csv.gz", LABELS)
    write_splits(folder)
    return folder


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    folder = tmp_path / "papers100M-bin"
    (folder / "raw").mkdir(parents=True)
    np.savez_compressed(
        folder / "raw" / "data.npz",
        edge_index=EDGES.T,
        num_nodes_list=np.array([5]),
        num_edges_list=np.array([6]),
        node_feat=FEATURES.astype(np.float16),
        node_year=np.zeros((5, 1)),
    )
    labels = np.array([[0], [2], [np.nan], [0], [np.nan]], np.float32)
    np.savez_compressed(folder / "raw" / "node-label.npz", node_label=labels)
    write_splits(folder)
    return folder


def load(importer, folder: Path, tmp_path: Path, **source):
    loaded = Source(loader="ogb-csv", paths=[], get="", **source)
    options = ImportOptions("tiny", num_classes=3, source=loaded)
    return run_importer(importer, folder, tmp_path, options)


@pytest.mark.parametrize("kind", ["csv", "binary", "binary, rows first"])
def test_directed_graph_is_imported(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    importer = import_ogb_csv if kind == "csv" else import_ogb_binary
    folder = request.getfixturevalue(kind.split(",")[0])
    if kind.endswith("first"):  # EDGES.T is stored column by column
        path = folder / "raw" / "data.npz"
        values = dict(np.load(path))
        np.savez(path, **{**values, "edge_index": np.ascontiguousarray(values["edge_index"])})
    graph = load(importer, folder, tmp_path)
    assert graph.indptr.tolist() == [0, 1, 4, 5, 6, 6]
    assert graph.indices.tolist() == [4, 0, 0, 2, 1, 3]  # in-neighbours; the parallel edge stays
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels.tolist() == ([0, 2, 1, 0, 1] if kind == "csv" else [0, 2, -1, 0, -1])
    assert graph.train_idx.tolist() == [0, 3]
    assert graph.val_idx.tolist() == [1]
    assert graph.test_idx.tolist() == [2, 4]
    assert graph.meta["split"] == "official, time"
    assert graph.meta["features"] == "source"


def test_undirected_graph_gets_reverse_edges(csv: Path, tmp_path: Path) -> None:
    """Each edge once: the reverse is added, parallel edges are merged, self-loops stay."""
    graph = load(import_ogb_csv, csv, tmp_path, add_reverse=True, merge=True)
    assert graph.indptr.tolist() == [0, 2, 4, 5, 6, 7]
    assert graph.indices.tolist() == [1, 4, 0, 2, 1, 3, 0]
    assert graph.meta["symmetric"] is True


def test_graph_equals_that_of_the_ogb_package(csv: Path, tmp_path: Path) -> None:
    read = pytest.importorskip("ogb.io.read_graph_raw").read_csv_graph_raw
    expected = read(str(csv / "raw"), add_inverse_edge=True)[0]
    graph = load(import_ogb_csv, csv, tmp_path, add_reverse=True, merge=True)
    dst = torch.repeat_interleave(torch.arange(5), graph.indptr.diff())
    edges = set(zip(graph.indices.tolist(), dst.tolist(), strict=True))
    assert edges == set(map(tuple, expected["edge_index"].T.tolist()))
    assert np.array_equal(graph.features.numpy(), expected["node_feat"])


def test_features_may_be_missing(csv: Path, tmp_path: Path) -> None:
    (csv / "raw" / "node-feat.csv.gz").unlink()
    assert load(import_ogb_csv, csv, tmp_path).meta["features"] == "seeded"


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("raw/edge.csv.gz", [[0, 9]], "edge with node 9"),
        ("raw/edge.csv.gz", [[0, -1]], "edge with node -1"),
        ("raw/edge.csv.gz", [[0, 1, 2]], "3 columns instead of 2"),
        ("raw/edge.csv.gz", [["a", "b"]], "edge.csv.gz is truncated, damaged"),
        ("raw/num-node-list.csv.gz", [3, 2], "one number of nodes"),
        ("raw/node-label.csv.gz", [0, 1], "node-label.csv.gz has 2 entries, 5 are"),
        ("raw/node-label.csv.gz", [0, 1, 0.5, 1, 1], "not class numbers"),
        ("raw/node-label.csv.gz", [0, 1, "inf", 1, 1], "node-label.csv.gz has inf for node 2"),
        ("raw/node-label.csv.gz", [0, 1, 10**9, 1, 1], "has 1000000000.0 for node 2"),
        ("raw/node-label.csv.gz", [0, 1, -100, 1, 1], "has -100.0 for node 2"),
        ("raw/node-label.csv.gz", [[0, 1]] * 5, "node-label.csv.gz has 2 columns instead of 1"),
        ("raw/node-label.csv.gz", [0, "", 1, 0, 1, 1], "has 6 entries, 5 are"),
        ("raw/node-feat.csv.gz", [[0, 1], "", *[[1, 0]] * 3], "has nan for node 1, in column 0"),
        ("raw/node-feat.csv.gz", [], "node-feat.csv.gz is empty"),
        ("split/time/train.csv.gz", [[0, 1]], "train.csv.gz has 2 columns instead of 1"),
        ("raw/node-feat.csv.gz", FEATURES[:3], "3 rows instead of 5"),
        ("raw/node-feat.csv.gz", [["nan", 1]] * 5, "has nan for node 0, in column 0"),
        ("split/time/train.csv.gz", [9], "train_idx has node 9"),
    ],
)
def test_malformed_csv_is_refused(csv: Path, tmp_path: Path, file: str, rows, message: str) -> None:
    write_csv(csv / file, rows)
    with pytest.raises(DataError, match=message):
        load(import_ogb_csv, csv, tmp_path)
    assert list((tmp_path / "store").iterdir()) == []


@pytest.mark.parametrize("file", ["raw/edge.csv.gz", "raw/node-label.csv.gz"])
@pytest.mark.parametrize("how", ["truncated", "missing", "flipped"])
def test_damaged_csv_is_refused(csv: Path, tmp_path: Path, file: str, how: str) -> None:
    path = csv / file
    raw = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        raw[-6] ^= 1  # the CRC
        path.write_bytes(raw)
    with pytest.raises(DataError, match=rf"{path.name} is (missing|truncated, damaged)"):
        load(import_ogb_csv, csv, tmp_path)


def test_missing_split_is_refused(csv: Path, tmp_path: Path) -> None:
    (csv / "split" / "time" / "train.csv.gz").unlink()
    with pytest.raises(DataError, match="has no split"):
        load(import_ogb_csv, csv, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": EDGES}, r"integers \[2, edges\]"),
        ({"edge_index": np.array([[0], [9]])}, "edge with node 9"),
        ({"node_feat": FEATURES[:2]}, r"shape \(2, 2\)"),
        ({"num_nodes_list": np.array([0])}, "how many nodes"),
        ({"num_nodes_list": np.array([4])}, "5 entries, 4 are|edge with node 4"),
        ({"num_nodes_list": np.array([np.nan])}, "'num_nodes_list' .* is nan, a whole number"),
        ({"num_nodes_list": np.array([np.inf])}, "'num_nodes_list' .* is inf, a whole number"),
        ({"num_nodes_list": np.array([4.5])}, "'num_nodes_list' .* is 4.5, a whole number"),
        ({"num_nodes_list": np.array(["x"])}, "'num_nodes_list' .* is 'x', a whole number"),
    ],
)
def test_malformed_binary_is_refused(binary: Path, tmp_path: Path, change, message: str) -> None:
    path = binary / "raw" / "data.npz"
    np.savez(path, **{**dict(np.load(path)), **change})
    with pytest.raises(DataError, match=message):
        load(import_ogb_binary, binary, tmp_path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1, 2**40, 0, 1]), "'node_label' .* has 1099511627776 for node 2"),
        (np.array([0, 1, 2**64 - 1, 0, 1], np.uint64), "has 18446744073709551615 for node 2"),
        (np.zeros((5, 2)), r"has shape \(5, 2\), one class a node"),
        (np.array(["a"] * 5), "has type <U1"),
        (np.zeros(5, complex), "has type complex128"),
    ],
)
def test_invalid_labels_are_refused(binary: Path, tmp_path: Path, labels, message: str) -> None:
    np.savez(binary / "raw" / "node-label.npz", node_label=labels)
    with pytest.raises(DataError, match=message):
        load(import_ogb_binary, binary, tmp_path)


@pytest.mark.parametrize("kind", ["csv", "binary"])
def test_number_of_nodes_beyond_memory_is_refused(request, tmp_path: Path, kind: str) -> None:
    folder = request.getfixturevalue(kind)
    if kind == "csv":
        write_csv(folder / "raw" / "num-node-list.csv.gz", [10**15])
    else:
        path = folder / "raw" / "data.npz"
        np.savez(path, **{**dict(np.load(path)), "num_nodes_list": np.array([2**60])})
    with pytest.raises(HostMemoryError, match="check its counts"):
        load(import_ogb_csv if kind == "csv" else import_ogb_binary, folder, tmp_path)


def test_empty_line_is_an_unlabelled_node(csv: Path, tmp_path: Path) -> None:
    write_csv(csv / "raw" / "node-label.csv.gz", [0, "", 1, 0, 1])
    assert load(import_ogb_csv, csv, tmp_path).labels.tolist() == [0, -1, 1, 0, 1]


def test_merged_and_dropped_edges_are_reported(csv: Path, tmp_path: Path) -> None:
    """0 -> 1 is listed twice, 2 -> 1 has its reverse, 3 -> 3 is a self-loop."""
    assert not load(import_ogb_csv, csv, tmp_path).meta["notes"]
    notes = load(import_ogb_csv, csv, tmp_path, merge=True).meta["notes"]
    assert notes == ["edges listed: 6; stored: 5", "edges that repeat another: 1, merged"]
    graph = load(import_ogb_csv, csv, tmp_path, add_reverse=True, merge=True, drop_self_loops=True)
    assert graph.num_edges == 6
    assert graph.meta["notes"] == [
        "edges listed: 6; stored: 6, each in both directions",
        "edges from a node to itself: 1, left out",
        "edges that repeat another: 2, merged",
    ]
