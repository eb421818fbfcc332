"""Custom graphs: keys of their files, direction of edges, and notes on ignored arrays."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from own_graph import (
    DST,
    MASKS,
    OUT,
    SRC,
    WEIGHTS,
    X,
    Y,
    assert_edges,
    assert_node_data,
    dgl_or_skip,
    import_graph,
)

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.catalog import info
from gnnbench.datasets.describe import describe
from gnnbench.datasets.importers import formats
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.prepare import load_dataset
from gnnbench.datasets.store.reader import open_graph


@pytest.mark.parametrize("rows", ["sources", "targets"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_directed_scipy_matrix_needs_rows(root: Path, tmp_path: Path, form: str, rows: str) -> None:
    matrix = (OUT if rows == "sources" else OUT.T).asformat(form)
    sp.save_npz(tmp_path / "adj.npz", matrix)
    with pytest.raises(
        UsageError, match=r"adj.npz is a directed graph .* --rows targets"
    ) as caught:
        import_graph(tmp_path / "adj.npz")
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=r"gnnbench data import"):
        load_dataset(str(tmp_path / "adj.npz"))
    graph = import_graph(tmp_path / "adj.npz", rows=rows)
    assert_edges(graph)
    assert graph.meta["notes"] == []


def test_symmetric_scipy_matrix_needs_no_rows(root: Path, tmp_path: Path) -> None:
    both = (OUT + OUT.T).tocsr()
    sp.save_npz(tmp_path / "both.npz", both)
    graph = load_dataset(str(tmp_path / "both.npz"))
    assert graph.indptr.tolist() == both.indptr.tolist()
    assert graph.weights is not None and graph.weights.tolist() == both.data.tolist()
    uneven = both.copy()
    uneven.data[0] += 1  # one direction only, so the weights are directed
    sp.save_npz(tmp_path / "uneven.npz", uneven)
    with pytest.raises(UsageError, match=r"directed graph"):
        import_graph(tmp_path / "uneven.npz")
    symmetric = import_graph(tmp_path / "uneven.npz", symmetric=True)
    assert symmetric.indptr.tolist() == both.indptr.tolist()
    assert symmetric.meta["notes"] == [
        "edge weights not kept: merged edges have none of their own",
        "edges that repeat another or its reverse: 4, merged",
    ]


def test_matrix_of_ones_has_no_weights(root: Path, tmp_path: Path) -> None:
    ones = OUT.copy()
    ones.data[:] = 1
    sp.save_npz(tmp_path / "ones.npz", ones)
    graph = import_graph(tmp_path / "ones.npz", rows="sources")
    assert_edges(graph, weights=False)
    assert graph.meta["notes"] == ["the matrix holds ones alone: edges have no weights"]


def test_invalid_matrices_are_refused(root: Path, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "wide.npz", sp.csr_matrix(np.ones((2, 3))))
    with pytest.raises(DataError, match=r"2 x 3, a graph's is square"):
        import_graph(tmp_path / "wide.npz")
    sp.save_npz(tmp_path / "dia.npz", sp.dia_matrix(np.eye(3)))
    with pytest.raises(DataError, match=r"format dia; save its .tocsr\(\)"):
        import_graph(tmp_path / "dia.npz")
    parts = {"indptr": np.array([0, 2, 1, 3, 4]), "indices": DST}
    np.savez(tmp_path / "falls.npz", **parts)
    with pytest.raises(DataError, match=r"indptr decreases at position 2"):
        import_graph(tmp_path / "falls.npz")
    np.savez(tmp_path / "far.npz", indptr=np.array([0, 2, 3, 3, 4]), indices=DST + 2)
    for rows in ("", "sources"):
        with pytest.raises(DataError, match=r"has an edge with node 4"):
            import_graph(tmp_path / "far.npz", rows=rows)


def test_rows_option_is_required_for_indptr(root: Path, tmp_path: Path) -> None:
    matrix = OUT.tocsr()
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "weights": matrix.data}
    np.savez(tmp_path / "without_rows.npz", **parts)
    with pytest.raises(UsageError, match=r"--rows sources"):
        load_dataset(tmp_path / "without_rows.npz")
    assert_edges(import_graph(tmp_path / "without_rows.npz", rows="sources"))
    np.savez(tmp_path / "with_rows.npz", **parts, rows="sources")
    assert_edges(load_dataset(tmp_path / "with_rows.npz"))
    with pytest.raises(UsageError, match=r"says itself that the rows are sources"):
        import_source(tmp_path / "with_rows.npz", "other", rows="targets")
    with pytest.raises(UsageError, match=r"give targets or sources"):
        import_source(tmp_path / "with_rows.npz", "other", rows="columns")
    np.savez(tmp_path / "invalid_rows.npz", **parts, rows="columns")
    with pytest.raises(DataError, match=r"'rows' in .* is 'columns'"):
        import_source(tmp_path / "invalid_rows.npz", "other")


ENDS = [
    {"edge_index": np.stack([SRC, DST]), "edge_weight": WEIGHTS},
    {"src": SRC, "dst": DST, "weight": WEIGHTS},
    {"source": SRC, "target": DST, "weights": WEIGHTS},
    {"row": DST, "col": SRC, "weights": WEIGHTS, "rows": np.array("targets")},
]


@pytest.mark.parametrize("ends", ENDS, ids=lambda ends: next(iter(ends)))
@pytest.mark.parametrize("kind", ["npz", "pt"])
def test_edges_and_nodes_by_array_names(root: Path, tmp_path: Path, ends, kind: str) -> None:
    arrays = {**ends, "x": X, "y": Y, **MASKS, "year": np.arange(4), "title": np.array("odd")}
    path = tmp_path / f"graph.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    else:
        tensors = {
            k: torch.tensor(v) if v.dtype.kind != "U" else v.item() for k, v in arrays.items()
        }
        torch.save(tensors, path)
    graph = load_dataset(path)
    assert_edges(graph)
    assert_node_data(graph)
    assert graph.meta["notes"] == ["not kept: year"]


def test_number_of_nodes_includes_isolated_nodes(root: Path, tmp_path: Path) -> None:
    edges = np.stack([SRC, DST])[:, :2]
    np.savez(tmp_path / "bare.npz", edge_index=edges)
    assert load_dataset(tmp_path / "bare.npz").num_nodes == 3
    np.savez(tmp_path / "x.npz", edge_index=edges, x=X)
    assert load_dataset(tmp_path / "x.npz").num_nodes == 4
    np.savez(tmp_path / "n.npz", edge_index=edges, num_nodes=9)
    assert load_dataset(tmp_path / "n.npz").num_nodes == 9
    np.save(tmp_path / "bare.npy", edges)
    assert load_dataset(tmp_path / "bare.npy").num_nodes == 3


def test_first_of_several_splits_is_used(root: Path, tmp_path: Path) -> None:
    masks = {k: np.stack([v, ~v], 1) for k, v in MASKS.items()}
    np.savez(tmp_path / "graph.npz", edge_index=np.stack([SRC, DST]), x=X, y=Y, **masks)
    graph = load_dataset(tmp_path / "graph.npz")
    assert_node_data(graph)
    assert graph.meta["notes"] == ["the first of several splits"]


def test_file_without_edges_is_refused(root: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X, y=Y)
    with pytest.raises(DataError, match=r"x.npz has no edges, but x, y: a graph has edge_index"):
        import_graph(tmp_path / "x.npz")


def test_pyg_files_are_imported_or_refused(root: Path, tmp_path: Path) -> None:
    data = pytest.importorskip("torch_geometric.data")
    tensors = {k: torch.tensor(v) for k, v in {"x": X, "y": Y, **MASKS}.items()}
    tensors |= {"edge_index": torch.tensor(np.stack([SRC, DST]))}
    one = data.Data(**tensors, edge_weight=torch.tensor(WEIGHTS))
    torch.save(one, tmp_path / "data.pt")
    torch.save((one.to_dict(), None, data.Data), tmp_path / "dataset.pt")
    for name in ("data.pt", "dataset.pt"):
        graph = load_dataset(tmp_path / name)
        assert_edges(graph)
        assert_node_data(graph)
    torch.save((one.to_dict(), {"x": torch.tensor([0, 2, 4])}, data.Data), tmp_path / "two.pt")
    with pytest.raises(DataError, match=r"several graphs"):
        load_dataset(tmp_path / "two.pt")


def test_torch_files_are_imported_or_refused(root: Path, tmp_path: Path) -> None:
    torch.save(torch.tensor(np.stack([SRC, DST])), tmp_path / "edges.pt")
    assert_edges(load_dataset(tmp_path / "edges.pt"), weights=False)
    values = torch.tensor(WEIGHTS)
    matrix = torch.sparse_coo_tensor(
        np.stack([SRC, DST]), values, (4, 4), check_invariants=True
    ).coalesce()
    torch.save(matrix, tmp_path / "adj.pt")
    with pytest.raises(UsageError, match=r"directed graph"):
        load_dataset(tmp_path / "adj.pt")
    assert_edges(import_graph(tmp_path / "adj.pt", rows="sources"))
    torch.save({"adj_t": matrix.t().coalesce()}, tmp_path / "adj_t.pt")  # as in PyG
    assert_edges(load_dataset(tmp_path / "adj_t.pt"))
    torch.save({"model": torch.nn.Linear(1, 1)}, tmp_path / "model.pt")
    with pytest.raises(UsageError, match=r"pickled objects .* never loads"):
        load_dataset(tmp_path / "model.pt")
    torch.save(3, tmp_path / "three.pt")
    with pytest.raises(DataError, match=r"holds a int"):
        load_dataset(tmp_path / "three.pt")


def test_dgl_files_are_imported_or_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dgl = dgl_or_skip()
    g = dgl.graph((torch.tensor(SRC), torch.tensor(DST)), num_nodes=4)
    g.ndata.update({"feat": torch.tensor(X), "label": torch.tensor(Y), "age": torch.arange(4)})
    g.ndata.update({k: torch.tensor(v) for k, v in MASKS.items()})
    g.edata.update({"weight": torch.tensor(WEIGHTS), "age": torch.arange(4)})
    path = tmp_path / "graph.bin"
    dgl.save_graphs(str(path), [g])
    graph = load_dataset(path)
    assert_edges(graph)
    assert_node_data(graph)
    assert graph.meta["notes"] == ["not kept: edata age, ndata age"]
    dgl.save_graphs(str(path), [g, g])
    two_graphs = path.read_bytes()
    # A shape that DGL allocates without a check: its reader aborts.
    shape = np.array([4, 2], np.int64).tobytes()
    path.write_bytes(two_graphs.replace(shape, np.array([2**60, 2], np.int64).tobytes(), 1))
    with pytest.raises(DataError, match=r"truncated or damaged \(DGL ends with SIG"):
        load_dataset(path)
    # The reader survives the other files, so they need no separate process that imports DGL.
    monkeypatch.setattr(formats, "_check_dgl_reader_survives", lambda path: None)
    path.write_bytes(two_graphs)
    with pytest.raises(DataError, match=r"holds 2 graphs"):
        load_dataset(path)
    path.write_bytes(two_graphs[:64])
    with pytest.raises(DataError, match=r"truncated, damaged"):
        load_dataset(path)
    other = dgl.heterograph({("a", "to", "b"): ([0], [0])})
    dgl.save_graphs(str(path), [other])
    with pytest.raises(UsageError, match=r"not a homogeneous DGL graph"):
        load_dataset(path)


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n0 2\n1 2\n")  # node 3 has no edge
    return path


def write_node_files(folder: Path, kind: str) -> dict[str, Path]:
    """Write features, labels and split in files of a kind."""
    names = ("features", "labels", "split")
    words = np.array(["train", "val", "test", "train"])
    files = {name: folder / f"{name}.{kind}" for name in names}
    if kind == "npy":
        for file, value in zip(files.values(), (X, Y, words), strict=True):
            np.save(file, value)
    elif kind == "npz":
        np.savez(files["features"], x=X)
        np.savez(files["labels"], anything=Y)
        np.savez(files["split"], train_idx=[0, 3], valid_idx=[1], test_idx=[2])
    elif kind == "pt":
        torch.save(torch.tensor(X), files["features"])
        torch.save({"y": torch.tensor(Y)[:, None]}, files["labels"])
        split = {"train": [0, 3], "valid": [1], "test": [2]}  # as OGB's get_idx_split
        torch.save({k: torch.tensor(v) for k, v in split.items()}, files["split"])
    else:
        files["features"].write_text("# two columns\n0 1\n2, 3\n4 5\n6 7\n")
        files["labels"].write_text("0\n1\n1\n0\n")
        files["split"].write_text("train\nval\nTEST\ntrain\n")
    return files


@pytest.mark.parametrize("kind", ["npy", "npz", "pt", "txt"])
def test_features_labels_and_split_of_an_edge_list(
    root: Path, tmp_path: Path, edges: Path, kind: str
) -> None:
    graph = import_graph(edges, **write_node_files(tmp_path, kind))
    assert_node_data(graph)
    assert graph.num_nodes == 4
    assert graph.indices.tolist() == [0, 0, 1]
    assert "node_ids" not in graph.meta["arrays"]


def test_sparse_scipy_features_are_imported(root: Path, tmp_path: Path, edges: Path) -> None:
    sp.save_npz(tmp_path / "f.npz", sp.csr_matrix(X))
    assert np.array_equal(import_graph(edges, features=tmp_path / "f.npz").features, X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_features_are_summed(root: Path, tmp_path: Path, edges: Path, form: str) -> None:
    row, col, data = [0, 0, 2, 3, 3], [1, 1, 0, 1, 0], [1.0, 2, 5, 0, 4]
    if form == "coo":
        parts = {"row": row, "col": col, "data": data}
    elif form == "csr":
        parts = {"indptr": [0, 2, 2, 3, 5], "indices": col, "data": data}
    else:
        parts = {"indptr": [0, 2, 5], "indices": [2, 3, 0, 0, 3], "data": [5.0, 4, 1, 2, 0]}
    np.savez(tmp_path / "f.npz", **parts, shape=np.array([4, 2]), format=np.asarray(form))
    graph = import_graph(edges, features=tmp_path / "f.npz")
    assert graph.features.tolist() == [[0, 3], [0, 0], [5, 0], [4, 0]]
    assert any("duplicate entries of the matrix summed, as scipy does: 1" in note
               for note in graph.meta["notes"])  # fmt: skip
    values = {"feat_data": data, "feat_indices": col, "feat_indptr": [0, 2, 2, 3, 5]}
    np.savez(tmp_path / "g.npz", edge_index=np.stack([SRC, DST]), **values, feat_dim=2)
    graph = open_graph(import_source(tmp_path / "g.npz", "direct"))
    assert graph.features.tolist() == [[0, 3], [0, 0], [5, 0], [4, 0]]


def test_given_files_override_arrays_of_the_graph(root: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.stack([SRC, DST]), x=X + 1, y=Y, **MASKS)
    np.save(tmp_path / "x.npy", X)
    graph = import_graph(tmp_path / "g.npz", features=tmp_path / "x.npy")
    assert_node_data(graph)
    assert graph.meta["notes"] == ["not kept: x"]


def test_inconsistent_files_are_refused(root: Path, tmp_path: Path, edges: Path) -> None:
    np.save(tmp_path / "short.npy", X[:2])
    with pytest.raises(DataError, match=r"line 2 of .*edges.txt .* outside 0\.\.1: '.*short.npy'"):
        import_graph(edges, features=tmp_path / "short.npy")
    np.save(tmp_path / "turned.npy", np.zeros((2, 4)))
    with pytest.raises(DataError, match=r"it looks transposed \(2 x 4\)"):
        import_graph(edges, features=tmp_path / "turned.npy")
    np.save(tmp_path / "five.npy", np.zeros(5, int))
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match=r"five.npy has 5 entries, 4 are expected"):
        import_graph(edges, features=tmp_path / "x.npy", labels=tmp_path / "five.npy")
    with pytest.raises(UsageError, match=r"no file .*gone.npy; give a file with split"):
        import_graph(edges, split=tmp_path / "gone.npy")
    (tmp_path / "split.txt").write_text("train\ndev\n")
    with pytest.raises(DataError, match=r"line 2 of .*split.txt has 'dev'"):
        import_graph(edges, split=tmp_path / "split.txt")
    (tmp_path / "f.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"line 1 of .*f.csv has 'a' in column 1; features"):
        import_graph(edges, features=tmp_path / "f.csv")
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(DataError, match=r"has no array 'features', but a, b"):
        import_graph(edges, features=tmp_path / "two.npz")
    with pytest.raises(UsageError, match=r"leave --rows out"):
        import_graph(edges, rows="sources")


def test_node_ids_are_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "gaps.txt").write_text("10 30\n30 20\n")
    import_source(tmp_path / "gaps.txt", "gaps")
    for name in ("gaps", "gaps+sym"):
        graph = load_dataset(name)
        assert graph.node_ids is not None and graph.node_ids.dtype == torch.int64
        assert graph.node_ids.tolist() == [10, 20, 30]
        assert pickle.loads(pickle.dumps(graph)).node_ids.tolist() == [10, 20, 30]
    (tmp_path / "whole.txt").write_text("0 2\n2 1\n")
    assert load_dataset(tmp_path / "whole.txt").node_ids is None
    lines = "\n".join(describe(info("gaps")))
    assert "node ids" in lines and "node_ids" in lines


def test_changed_file_under_the_same_name_is_refused(
    root: Path, tmp_path: Path, edges: Path
) -> None:
    np.save(tmp_path / "x.npy", X)
    first = import_source(edges, "mine", features=tmp_path / "x.npy")
    assert import_source(edges, "mine", features=tmp_path / "x.npy") == first
    np.save(tmp_path / "x.npy", np.zeros((9, 3)))
    with pytest.raises(UsageError, match=r"already another graph"):
        import_source(edges, "mine", features=tmp_path / "x.npy")


def save(path: Path, value: object) -> Path:
    torch.save(value, path)
    return path


def test_node_data_from_a_pyg_file(root: Path, tmp_path: Path, edges: Path) -> None:
    Data = pytest.importorskip("torch_geometric.data").Data
    data = Data(x=torch.tensor(X), y=torch.tensor(Y))
    file = save(tmp_path / "NODES.PT", data)
    graph = open_graph(import_source(edges, "mine", features=file, labels=file))
    assert graph.labels.tolist() == torch.tensor(Y).tolist()
    assert torch.equal(graph.features, torch.tensor(X).float())


def test_single_collated_pyg_graph(root: Path, tmp_path: Path) -> None:
    Data = pytest.importorskip("torch_geometric.data").Data
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), x=torch.ones(3, 2))
    one = {"x": torch.tensor([0, 3]), "edge_index": torch.tensor([0, 2])}
    graph = open_graph(import_source(save(tmp_path / "one.pt", (data, one)), "mine"))
    assert graph.num_nodes == 3 and graph.num_edges == 2
    two = {"x": torch.tensor([0, 1, 3]), "edge_index": torch.tensor([0, 1, 2])}
    for slices in (two, torch.tensor([0, 1, 3]), [data]):
        with pytest.raises(DataError, match="holds several graphs"):
            import_source(save(tmp_path / "two.pt", (data, slices)), "other")


def test_torchscript_model_is_refused(root: Path, tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "m.pt"))
    with pytest.raises(DataError, match="is a model of TorchScript"):
        import_source(tmp_path / "m.pt", "mine")
