"""Import of the raw files that PyTorch Geometric downloads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from own_graph import run_importer

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.pyg import import_coauthor, import_graphsaint, import_reddit

ROW, COL = np.array([0, 1, 1, 2, 0, 3]), np.array([1, 0, 2, 1, 1, 3])


@pytest.fixture
def reddit(tmp_path: Path) -> Path:
    folder = tmp_path / "Reddit" / "raw"
    folder.mkdir(parents=True)
    np.savez(
        folder / "reddit_data.npz",
        feature=np.arange(8, dtype=np.float32).reshape(4, 2),
        label=np.array([0, 1, 1, 0], np.int32),
        node_types=np.array([1, 3, 2, 1], np.int32),
        node_ids=np.arange(4),
    )
    sp.save_npz(folder / "reddit_graph.npz", sp.coo_matrix((np.ones(6), (ROW, COL)), (4, 4)))
    return folder


@pytest.fixture
def coauthor(tmp_path: Path) -> Path:
    # 0 - 1 listed twice, 1 -> 2 one way only, a self-loop at 3
    adj = sp.csr_matrix((np.ones(4, np.float32), ([0, 1, 1, 3], [1, 0, 2, 3])), (4, 4))
    attr = sp.csr_matrix(np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0], [0, 2, 1]], np.float32))
    values = {}
    for name, matrix in (("adj", adj), ("attr", attr)):
        values |= {
            f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")
        }
        values[f"{name}_shape"] = np.array(matrix.shape)
    # The real file also has pickled names, which are not read.
    values["node_names"] = np.array(["a", {"b": 1}], dtype=object)
    path = tmp_path / "ms_academic_phy.npz"
    np.savez(path, labels=np.array([0, 1, 1, 0], np.int64), **values)
    return path


def load(importer, path: Path, tmp_path: Path):
    return run_importer(importer, path, tmp_path, ImportOptions("tiny", num_classes=2))


def edges(graph) -> set[tuple[int, int]]:
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    return set(zip(graph.indices.tolist(), dst.tolist(), strict=True))


def test_reddit_is_imported(reddit: Path, tmp_path: Path) -> None:
    graph = load(import_reddit, reddit, tmp_path)
    assert graph.indptr.tolist() == [0, 1, 3, 4, 5]
    assert graph.indices.tolist() == [1, 0, 2, 1, 3]  # the parallel entry is merged
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.labels.tolist() == [0, 1, 1, 0]
    assert graph.train_idx.tolist() == [0, 3]
    assert graph.val_idx.tolist() == [2]
    assert graph.test_idx.tolist() == [1]


def test_coauthor_equals_the_reader_of_pyg(coauthor: Path, tmp_path: Path) -> None:
    graph = load(import_coauthor, coauthor, tmp_path)
    assert edges(graph) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert graph.features.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert graph.meta["symmetric"] is True
    assert graph.meta["assumed"] == ["split"]

    read_npz = pytest.importorskip("torch_geometric.io").read_npz
    expected = read_npz(str(coauthor), to_undirected=True)
    assert edges(graph) == set(map(tuple, expected.edge_index.T.tolist()))
    assert torch.equal(graph.features, expected.x)
    assert torch.equal(graph.labels, expected.y)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("reddit_graph.npz", {"row": np.array([0, 1, 1, 2, 0, 9])}, "edge with node 9"),
        ("reddit_graph.npz", {"col": COL[:3]}, "'col' .* 3 entries, 6 are expected"),
        ("reddit_graph.npz", {"shape": np.array([7, 7])}, "for 7 nodes, not 4"),
        ("reddit_data.npz", {"label": np.zeros(2, int)}, "'label' .* 2 entries"),
        ("reddit_data.npz", {"feature": np.zeros(4)}, r"shape \(4,\)"),
        ("reddit_data.npz", {"node_types": np.full(4, 3)}, "training set is empty"),
    ],
)
def test_malformed_reddit_is_refused(
    reddit: Path, tmp_path: Path, file: str, change, message: str
) -> None:
    path = reddit / file
    np.savez(path, **{**dict(np.load(path)), **change})
    with pytest.raises(DataError, match=message):
        load(import_reddit, reddit, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adj_indices": np.array([0, 1, 9, 3])}, "edge with node 9"),
        ({"adj_indptr": np.array([0, 3, 1, 3, 4])}, "indptr decreases at position 2"),
        ({"adj_shape": np.array([9, 9])}, "for 9 nodes, not 4"),
        ({"attr_indices": np.array([1, 0, 1, 3])}, "sparse features .* malformed"),
        ({"labels": np.full(4, 0.5)}, "'labels' .* not class numbers"),
    ],
)
def test_malformed_coauthor_is_refused(
    coauthor: Path, tmp_path: Path, change, message: str
) -> None:
    values = dict(np.load(coauthor, allow_pickle=True))
    np.savez(coauthor, **{**values, **change})
    with pytest.raises(DataError, match=message):
        load(import_coauthor, coauthor, tmp_path)


@pytest.fixture
def saint(tmp_path: Path) -> Path:
    folder = tmp_path / "Flickr" / "raw"
    folder.mkdir(parents=True)
    sp.save_npz(
        folder / "adj_full.npz", sp.csr_matrix((np.ones(3), ([0, 0, 2], [1, 2, 1])), (4, 4))
    )
    np.save(folder / "feats.npy", np.arange(8.0).reshape(4, 2))
    (folder / "class_map.json").write_text(json.dumps({"0": 1, "1": 0, "3": 1}))
    (folder / "role.json").write_text(json.dumps({"tr": [3, 0], "va": [1], "te": []}))
    return folder


def test_graphsaint_is_imported(saint: Path, tmp_path: Path) -> None:
    graph = load(import_graphsaint, saint, tmp_path)
    assert edges(graph) == {(0, 1), (0, 2), (2, 1)}  # a row is a source
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.labels.tolist() == [1, 0, -1, 1]
    assert (graph.train_idx.tolist(), graph.val_idx.tolist()) == ([0, 3], [1])
    (saint / "feats.npy").unlink()
    (saint / "class_map.json").write_text(json.dumps({str(i): [0, int(i != 2)] for i in range(4)}))
    graph = load(import_graphsaint, saint, tmp_path)
    assert graph.labels.tolist() == [1, 1, -1, 1]
    assert graph.meta["labels"] == "source, the first of several classes"
    assert graph.meta["features"] == "seeded"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("class_map.json", '{"9": 1}', "class_map.json is truncated, damaged .*node 9 of 4"),
        ("class_map.json", "[3]", "class_map.json is truncated, damaged"),
        ("class_map.json", "[[0, 1]]", "it holds a list instead of an object"),
        ("class_map.json", '{"0": true}', "node 0 has the class True"),
        ("class_map.json", '{"0_1": 1}', "node 0_1 of 4"),
        ("class_map.json", '{"0": 1000000000}', "has 1000000000 for node 0"),
        ("role.json", '{"tr": [[0]], "va": [], "te": []}', "'tr' in .* has lists in a list"),
        ("role.json", '{"tr": 0, "va": [], "te": []}', "'tr' in .* is no list of nodes"),
        ("role.json", '{"tr": [0.5], "va": [], "te": []}', "'tr' in .* has type float64"),
        ("role.json", '{"tr": [0]}', "role.json is truncated, damaged"),
        ("role.json", "{", "role.json is truncated, damaged"),
        ("feats.npy", "x", "feats.npy is truncated, damaged"),
    ],
)
def test_malformed_graphsaint_is_refused(
    saint: Path, tmp_path: Path, file: str, text: str, message: str
) -> None:
    (saint / file).write_text(text)
    with pytest.raises(DataError, match=message):
        load(import_graphsaint, saint, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.zeros(0, int), "shape": np.array([-1, 4])}, "has no nodes"),
        ({"indptr": np.zeros(1, int), "indices": np.zeros(0, int), "shape": [0, 0]}, "no nodes"),
        ({"indptr": np.array([0, 2, 2, 2, 2])}, "indptr ends with 2, but there are 3 indices"),
        ({"indptr": np.array([1, 2, 2, 3, 3])}, "indptr starts with 1"),
    ],
)
def test_malformed_graphsaint_adjacency_is_refused(
    saint: Path, tmp_path: Path, change, message
) -> None:
    path = saint / "adj_full.npz"
    np.savez(path, **{**dict(np.load(path)), **change})
    with pytest.raises(DataError, match=message):
        load(import_graphsaint, saint, tmp_path)


def test_merged_edges_of_reddit_are_reported(reddit: Path, tmp_path: Path) -> None:
    notes = load(import_reddit, reddit, tmp_path).meta["notes"]
    assert notes == ["edges listed: 6; stored: 5", "edges that repeat another: 1, merged"]
