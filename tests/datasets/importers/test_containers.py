"""Graphs in ``.npz``, ``.pt``, SciPy, PyG and DGL containers, compared with SciPy."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from own_graph import dgl_or_skip, weighted_edges

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.objects import from_dgl, from_pyg
from gnnbench.datasets.store.reader import open_graph

settings.register_profile("containers", max_examples=12, deadline=None)
few_examples = settings(settings.get_profile("containers"))


@st.composite
def matrices(draw: Any) -> sp.coo_matrix:
    """Square matrices with duplicate entries, zeros and sums that are zero."""
    n = draw(st.integers(1, 6))
    entry = st.tuples(
        st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from([0, 1, 1, 2, 3, 100])
    )
    entries = draw(st.lists(entry, max_size=14))
    row, col, data = (np.array(part) for part in zip(*entries, strict=True)) if entries else (
        np.empty(0, int), np.empty(0, int), np.empty(0, int)
    )  # fmt: skip
    return sp.coo_matrix((data, (row.astype(np.int64), col.astype(np.int64))), shape=(n, n))


def unsummed(matrix: sp.coo_matrix, form: str) -> dict[str, np.ndarray]:
    """A compressed form that keeps the order and the duplicates that scipy would sum."""
    major, minor = (matrix.row, matrix.col) if form == "csr" else (matrix.col, matrix.row)
    order = np.argsort(major, kind="stable")
    counts = np.bincount(major, minlength=matrix.shape[0])
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]),
        "indices": minor[order], "data": matrix.data[order],
    }  # fmt: skip


def expected_edges(
    matrix: sp.coo_matrix, transposed: bool = False
) -> Counter[tuple[int, int, float]]:
    """(source, target, weight); rows are sources, or targets if ``transposed``."""
    summed = matrix.astype(np.float64).tocsr()
    summed.eliminate_zeros()
    entries = (summed.T if transposed else summed).tocoo()
    return Counter(
        zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
    )


def expected_notes(matrix: sp.coo_matrix) -> list[str]:
    summed = matrix.astype(np.float64).tocsr()
    zeros = int((summed.data == 0).sum())
    notes = []
    if merged := matrix.nnz - summed.nnz:
        notes.append(f"duplicate entries of the matrix summed, as scipy does: {merged}")
    if zeros:
        notes.append(f"zero entries of the matrix dropped, since they are no edges: {zeros}")
    if (summed.data[summed.data != 0] == 1).all():
        notes.append("the matrix holds ones alone: edges have no weights")
    return notes


@few_examples
@given(
    matrix=matrices(),
    form=st.sampled_from(["csr", "csc", "coo"]),
    dtype=st.sampled_from(["i1", "u1", ">i2", "<u4", ">i8", "<u8", "<f2", "<f4", ">f8"]),
    ids=st.sampled_from(["<i4", ">i4", "<i8", ">u8", "<u2"]),
)
def test_scipy_matrix_equals_scipy(matrix: sp.coo_matrix, form: str, dtype: str, ids: str) -> None:
    parts = {"row": matrix.row, "col": matrix.col, "data": matrix.data}
    parts = parts if form == "coo" else unsummed(matrix, form)
    values = {k: v.astype(dtype if k == "data" else ids) for k, v in parts.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adj.npz"
        np.savez(path, **values, format=np.asarray(form.encode()), shape=np.array(matrix.shape))
        graph = open_graph(import_source(path, "g", rows="sources", root=folder))
        assert weighted_edges(graph) == expected_edges(matrix)
        assert graph.num_nodes == matrix.shape[0]
        assert graph.meta["notes"] == expected_notes(matrix)


@few_examples
@given(matrix=matrices(), form=st.sampled_from(["csr", "csc", "coo"]), key=st.sampled_from(
    ["adj", "adj_t", "alone"]))  # fmt: skip
def test_sparse_tensor_equals_scipy(matrix: sp.coo_matrix, form: str, key: str) -> None:
    data = torch.tensor(matrix.data, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "coo":
            ends = torch.tensor(np.stack([matrix.row, matrix.col]))
            tensor = torch.sparse_coo_tensor(ends, data, matrix.shape, check_invariants=True)
        else:
            make = torch.sparse_csr_tensor if form == "csr" else torch.sparse_csc_tensor
            parts = {k: torch.tensor(v) for k, v in unsummed(matrix, form).items()}
            whole = parts["indptr"], parts["indices"], parts["data"].float()
            tensor = make(*whole, size=matrix.shape, check_invariants=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adj.pt"
        torch.save(tensor if key == "alone" else {key: tensor}, path)
        rows = "" if key == "adj_t" else "sources"
        graph = open_graph(import_source(path, "g", rows=rows, root=folder))
        assert weighted_edges(graph) == expected_edges(matrix, transposed=key == "adj_t")
        assert graph.meta["notes"] == expected_notes(matrix)


@few_examples
@given(matrix=matrices(), container=st.sampled_from(["object", "file", "dict", "npz", "dgl"]))
def test_parallel_edges_of_an_edge_list_are_kept(matrix: sp.coo_matrix, container: str) -> None:
    data = pytest.importorskip("torch_geometric.data")
    ends = torch.tensor(np.stack([matrix.row, matrix.col]))
    weights = torch.tensor(matrix.data).float()
    nodes = matrix.shape[0]
    whole = data.Data(edge_index=ends, edge_weight=weights, num_nodes=nodes)
    listed = zip(matrix.row.tolist(), matrix.col.tolist(), weights.tolist(), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("g.npz" if container == "npz" else "g.pt")
        if container == "object":
            stored = from_pyg(whole, "g", root=folder)
        elif container == "dgl":
            dgl = dgl_or_skip()
            g = dgl.graph((ends[0], ends[1]), num_nodes=nodes)
            g.edata["weight"] = weights
            stored = from_dgl(g, "g", root=folder)
        else:
            values = {"edge_index": ends, "edge_weight": weights, "num_nodes": nodes}
            if container == "npz":
                np.savez(path, **{k: np.asarray(v) for k, v in values.items()})
            else:
                torch.save(whole if container == "file" else values, path)
            stored = import_source(path, "g", root=folder)
        assert weighted_edges(open_graph(stored)) == Counter(listed)


def test_merged_edges_are_reported(root: Path, tmp_path: Path) -> None:
    ends = np.array([[0, 0, 1, 2, 2], [1, 1, 0, 2, 0]])  # 0 - 1 three times, a loop, 2 - 0
    np.savez(tmp_path / "g.npz", edge_index=ends)
    graph = open_graph(import_source(tmp_path / "g.npz", "g", symmetric=True))
    assert graph.num_edges == 5
    assert graph.meta["notes"] == ["edges that repeat another or its reverse: 2, merged"]


def _import_weights(root: Path, tmp_path: Path, container: str, weights: np.ndarray) -> Any:
    ends = np.array([[0, 1], [1, 2]])
    values = {"edge_index": ends, "edge_weight": weights, "num_nodes": np.asarray(3)}
    tensors = {k: torch.tensor(v) for k, v in values.items()}
    if container == "npz":
        np.savez(tmp_path / "g.npz", **values)
        return open_graph(import_source(tmp_path / "g.npz", "g"))
    if container == "pt":
        torch.save(tensors, tmp_path / "g.pt")
        return open_graph(import_source(tmp_path / "g.pt", "g"))
    if container == "object":
        return open_graph(from_pyg(Data(**tensors), "g"))
    sp.save_npz(tmp_path / "g.npz", sp.coo_matrix((weights, (ends[0], ends[1])), (3, 3)))
    return open_graph(import_source(tmp_path / "g.npz", "g", rows="sources"))


CONTAINERS = pytest.mark.parametrize("container", ["npz", "pt", "object", "scipy"])


@CONTAINERS
@pytest.mark.parametrize("scale", [1e-60, 1e60, 1e300, 1e-44])
def test_weights_beyond_float32_keep_their_ratios(
    root: Path, tmp_path: Path, container: str, scale: float
) -> None:
    graph = _import_weights(root, tmp_path, container, np.array([1.0, 3.0]) * scale)
    small, large = graph.weights.tolist()
    assert large / small == pytest.approx(3, rel=1e-6) and 0.5 <= large < 2
    assert any("multiplied by 2^" in note for note in graph.meta["notes"])


@CONTAINERS
def test_weights_of_too_wide_a_range_are_refused(
    root: Path, tmp_path: Path, container: str
) -> None:
    with pytest.raises(DataError, match="ratios that float32 has not"):
        _import_weights(root, tmp_path, container, np.array([1e-60, 1.0]))


class SparseTensor:
    """The parts of PyG's ``SparseTensor`` that the importer reads."""

    def __init__(self, row: list[int], col: list[int], values: Any, size: int) -> None:
        self._parts = torch.tensor(row), torch.tensor(col), values
        self._size = size

    def coo(self) -> Any:
        return self._parts

    def sparse_sizes(self) -> tuple[int, int]:
        return self._size, self._size


class Data:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def test_pyg_objects_are_imported_or_refused(root: Path) -> None:
    adj_t = SparseTensor([1, 1, 2], [0, 0, 1], torch.tensor([1.0, 2.0, 5.0]), 3)
    graph = open_graph(from_pyg(Data(adj_t=adj_t), "sparse"))
    assert weighted_edges(graph) == Counter({(0, 1, 3.0): 1, (1, 2, 5.0): 1})
    graph = open_graph(from_pyg(Data(adj_t=SparseTensor([1, 2], [0, 1], None, 3)), "plain"))
    assert graph.weights is None and graph.num_edges == 2
    geometric = pytest.importorskip("torch_geometric")
    index = geometric.EdgeIndex(torch.tensor([[0, 1, 1], [1, 2, 2]]), sparse_size=(4, 4))
    graph = open_graph(from_pyg(geometric.data.Data(edge_index=index, num_nodes=4), "index"))
    assert weighted_edges(graph) == Counter({(0, 1, 1.0): 1, (1, 2, 1.0): 2})
    assert graph.num_nodes == 4
    for wrong in (None, 3, "graph", {"edge_index": [[0], [1]]}, geometric.data.HeteroData()):
        with pytest.raises(UsageError, match=r"without one edge_index"):
            from_pyg(wrong, "wrong")


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">u2", ">i4", "<u4", ">i8", "<u8", ">u8"])
@pytest.mark.parametrize("form", ["edge_index", "src", "row", "indptr"])
def test_ids_may_have_any_integer_dtype(root: Path, tmp_path: Path, dtype: str, form: str) -> None:
    row, col = np.array([0, 0, 1, 3]).astype(dtype), np.array([1, 2, 2, 0]).astype(dtype)
    indptr = np.array([0, 2, 3, 3, 4]).astype(dtype)
    values = {
        "edge_index": {"edge_index": np.asfortranarray(np.stack([row, col]))},
        "src": {"src": row, "dst": col},
        "row": {"row": row, "col": col},
        "indptr": {"indptr": indptr, "indices": col},
    }[form]
    np.savez(tmp_path / "g.npz", **values, train_idx=np.array([1, 3]).astype(dtype),
             val_idx=np.array([0]).astype(dtype), test_idx=np.array([], dtype))  # fmt: skip
    rows = "sources" if form in ("row", "indptr") else ""
    graph = open_graph(import_source(tmp_path / "g.npz", "g", rows=rows))
    assert graph.indptr.tolist() == [0, 1, 2, 4, 4]
    assert graph.indices.tolist() == [3, 0, 0, 1]
    assert graph.train_idx.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([[0, 1], [1, 2]], float), "type float64, integers are expected"),
        (np.array([[0, 1], [1, 2]], np.float16), "type float16, integers are expected"),
        (np.array([[0, 1], [1, 0]], bool), "type bool"),
        (np.array([[0, 1], [1, 0]], complex), "type complex128"),
        (np.array([[0, 1], [1, 0]], "M8[s]"), r"type datetime64\[s\]"),
        (np.array([[0, 1], [1, 0]], "U3"), "type <U3"),
        (np.zeros((2, 2), [("a", int)]), "integers are expected"),
        (np.array([[0, 1], [1, 2**63 + 5]], np.uint64), f"value {2**63 + 5}, beyond int64"),
        (np.array([[0, 1], [1, -1]]), r"edge with node -1"),
        (np.array([[0, 1], [1, 9]]), r"edge with node 9"),
        (np.array([0, 1]), r"shape \(2,\)"),
        (np.array(3), r"shape \(\)"),
        (np.zeros((3, 2), int), r"shape \(3, 2\)"),
        (np.zeros((2, 2, 1), int), r"shape \(2, 2, 1\)"),
    ],
)
def test_invalid_ids_are_refused(root: Path, tmp_path: Path, ids: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "g.npz", edge_index=ids, num_nodes=4)
    with pytest.raises(DataError, match=message):
        import_source(tmp_path / "g.npz", "g")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, -100], "has -100 for node 2, .* set it to -1 where"),
        ([0, -5, 1], "has -5 for node 1"),
        ([0.0, np.inf, 1], "has inf for node 1"),
        ([0, 1, -np.inf], "has -inf for node 2"),
        ([1e300, 0, 1], "has 1e\\+300 for node 0"),
        ([0, 1.5, 1], r"not class numbers \(1.5 of node 1\)"),
        ([0, 10**9, 1], "has 1000000000 for node 1"),
        (np.array([0, 1, 2**63 + 5], np.uint64), f"has {2**63 + 5} for node 2"),
        (np.array([0, 2**64 - 1, 1], np.uint64), f"has {2**64 - 1} for node 1"),
        ([0, 1, 100_000], "has 100000 for node 2"),
        (np.array([0, 1j, 1]), "type complex128"),
        (np.array([0, 1, 1], "M8[s]"), "type datetime64"),
        (np.array(0), r"shape \(\)"),
    ],
)
def test_invalid_labels_are_refused(root: Path, tmp_path: Path, labels: Any, message: str) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), num_nodes=3, y=labels)
    with pytest.raises(DataError, match=message):
        import_source(tmp_path / "g.npz", "g")
    np.save(tmp_path / "y.npy", labels)
    with pytest.raises(DataError, match=message):
        import_source(tmp_path / "g.npz", "g", labels=tmp_path / "y.npy")


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, -1, 2], ">i2"), np.array([0.0, np.nan, 2.0], ">f4"),
        np.array([0, -1, 2], np.float16), np.array([[0], [-1], [2]], "i1"),
    ],
    ids=["big-endian", "nan", "half", "column"],
)  # fmt: skip
def test_labels_may_have_other_dtypes(root: Path, tmp_path: Path, labels: np.ndarray) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), y=labels)
    graph = open_graph(import_source(tmp_path / "g.npz", "g"))
    assert graph.labels.tolist() == [0, -1, 2]
    assert graph.num_classes == 3


@pytest.mark.parametrize(
    "count",
    [np.nan, np.inf, -1, 2.5, "7", True, 1 + 2j, np.datetime64("2020-01-01"), 1e300, [1, 2],
     np.timedelta64(5, "ns"), np.uint64(2**63)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("key", ["num_nodes", "num_classes"])
def test_invalid_counts_are_refused(root: Path, tmp_path: Path, key: str, count: Any) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), **{key: count})
    with pytest.raises(DataError, match=rf"'{key}' in .*g.npz (is|must be) "):
        import_source(tmp_path / "g.npz", "g")


def test_too_large_counts_are_refused(root: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), num_classes=100_001)
    with pytest.raises(DataError, match=r"'num_classes' in .* is 100001, 100000 at most"):
        import_source(tmp_path / "g.npz", "g")
    with pytest.raises(UsageError, match=r"100001 classes are too many"):
        import_source(tmp_path / "g.npz", "g", num_classes=100_001)


def test_masks_may_be_integers_0_and_1(root: Path, tmp_path: Path) -> None:
    ends = np.array([[0, 1, 2], [1, 2, 3]])
    masks = {"train_mask": np.array([1, 0, 0, 1], "u1"), "test_mask": np.array([0, 1, 0, 0], ">i4")}
    np.savez(tmp_path / "g.npz", edge_index=ends, **masks)
    graph = open_graph(import_source(tmp_path / "g.npz", "g"))
    assert (graph.train_idx.tolist(), graph.test_idx.tolist()) == ([0, 3], [1])
    np.savez(tmp_path / "s.npz", train=masks["train_mask"], val=np.array([2], "u1"))
    graph = open_graph(import_source(tmp_path / "g.npz", "s", split=tmp_path / "s.npz"))
    assert (graph.train_idx.tolist(), graph.val_idx.tolist()) == ([0, 3], [2])
    for bad, message in (
        (np.array([1, 0, 2, 1], "u1"), "has 2 for node 2, where 0 or 1"),
        (np.array([1, 0, 0, -1]), "has -1 for node 3"),
        (np.array([1.0, 0, 0, 1]), "type float64"),
        (np.array([255, 0, 0, 0], "u1"), "has 255 for node 0"),
        (np.zeros((4, 0), bool), r"shape \(4, 0\)"),
        (np.array(True), r"shape \(\)"),
    ):
        np.savez(tmp_path / "bad.npz", edge_index=ends, train_mask=bad)
        with pytest.raises(DataError, match=message):
            import_source(tmp_path / "bad.npz", "bad")
