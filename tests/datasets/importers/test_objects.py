"""Import of PyG ``Data`` objects and DGL graphs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from own_graph import dgl_or_skip

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.catalog import verify
from gnnbench.datasets.importers.objects import from_dgl, from_pyg
from gnnbench.datasets.prepare import load_dataset, prepare
from gnnbench.datasets.store.reader import open_graph

SRC, DST = torch.tensor([1, 2, 1, 4, 0, 3]), torch.tensor([0, 0, 1, 1, 2, 4])
WEIGHTS_IN_CSC = [0.5, 2, 0, 1, 7, 3]
W = torch.tensor(WEIGHTS_IN_CSC)
X = torch.arange(15.0).reshape(5, 3)
Y = torch.tensor([0, 1, 2, -1, 1])
MASKS = {
    "train_mask": torch.tensor([1, 0, 1, 0, 1]).bool(),
    "val_mask": torch.tensor([0, 1, 0, 0, 0]).bool(),
    "test_mask": torch.tensor([0, 0, 0, 1, 0]).bool(),
}


class Plain:
    """The attributes of PyG's ``Data`` that the importer reads."""

    def __init__(self, **values) -> None:
        values = {"edge_index": torch.stack([SRC, DST]), "num_nodes": 5, **values}
        self.__dict__.update(values)


def assert_imported(graph) -> None:
    assert graph.indptr.tolist() == [0, 2, 4, 5, 5, 6]
    assert graph.indices.tolist() == [1, 2, 1, 4, 0, 3]
    assert torch.equal(graph.features, X)
    assert torch.equal(graph.labels, Y)
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [p.tolist() for p in parts] == [[0, 2, 4], [1], [3]]
    assert graph.num_classes == 3
    assert (graph.meta["features"], graph.meta["labels"], graph.meta["split"]) == ("source",) * 3


def test_pyg_data_is_imported(root: Path) -> None:
    data = pytest.importorskip("torch_geometric.data")
    edge_index = torch.stack([SRC, DST])
    stored = from_pyg(data.Data(x=X, edge_index=edge_index, y=Y, **MASKS), "mine")
    assert stored == root / "imported" / "mine"
    assert_imported(load_dataset("mine"))
    assert verify("mine").ok
    bare = data.Data(edge_index=edge_index, num_nodes=5)
    graph = open_graph(from_pyg(bare, "bare", feature_dim=8, num_classes=4, train_fraction=0.4))
    assert (graph.feature_dim, graph.num_classes, len(graph.train_idx)) == (8, 4, 2)
    assert graph.meta["features"] == graph.meta["labels"] == "seeded"
    hetero = data.HeteroData()
    hetero["a"].x = X
    hetero["a", "to", "a"].edge_index = edge_index
    with pytest.raises(UsageError, match="HeteroData without one edge_index"):
        from_pyg(hetero, "other")


def test_dgl_graph_is_imported(root: Path, tmp_path: Path) -> None:
    dgl = dgl_or_skip()
    g = dgl.graph((SRC, DST), num_nodes=5)
    g.ndata.update({"feat": X, "label": Y, **MASKS})
    g.edata["w"] = W
    graph = open_graph(from_dgl(g, "mine", tmp_path / "folder"))
    assert_imported(graph)
    assert graph.meta["notes"] == ["not kept: edata w"]
    assert graph.weights is None
    assert_imported(load_dataset(str(tmp_path / "folder")))
    graph = open_graph(from_dgl(g, "weighted", weights="w"))
    assert graph.weights is not None and graph.weights.tolist() == WEIGHTS_IN_CSC
    with pytest.raises(UsageError, match=r"no edata\['v'\]; it has w"):
        from_dgl(g, "more", weights="v")
    g.ndata["other"] = X + 1
    graph = open_graph(from_dgl(g, "other", features="other", symmetric=True))
    assert torch.equal(graph.features, X + 1)
    assert graph.meta["symmetric"] is True
    assert graph.indptr.tolist() == [0, 2, 5, 6, 7, 9]
    with pytest.raises(UsageError, match=r"no ndata\['nowhere'\]"):
        from_dgl(g, "more", labels="nowhere")
    with pytest.raises(UsageError, match="not a homogeneous DGL graph"):
        from_dgl(dgl.heterograph({("a", "to", "b"): ([0], [0])}), "more")


def test_split_in_the_form_of_ogb(root: Path) -> None:
    split = {"train": torch.tensor([4, 0, 2]), "valid": np.array([1]), "test": [3]}
    assert_imported(open_graph(from_pyg(Plain(x=X, y=Y[:, None]), "mine", split=split)))
    with pytest.raises(UsageError, match="not 'dev'"):
        from_pyg(Plain(), "other", split={"train": [0], "dev": [1]})


def test_other_layouts_and_dtypes_are_converted(root: Path) -> None:
    y = Y.double()
    y[3] = float("nan")
    masks = {k: torch.stack([v, ~v], 1) for k, v in MASKS.items()}
    sparse = Plain(x=X.to_sparse(), y=y, edge_attr=torch.ones(6, 2), **masks)
    graph = open_graph(from_pyg(sparse, "mine"))
    assert_imported(graph)
    assert graph.meta["notes"] == [
        "the first of several splits",
        "not kept: edge_attr",
    ]
    assert_imported(open_graph(from_pyg(Plain(x=X.bfloat16(), y=Y.int(), **MASKS), "other")))


def test_weights_follow_the_order_of_the_edges(root: Path) -> None:
    shuffled = torch.tensor([5, 2, 0, 4, 1, 3])
    edges = torch.stack([SRC, DST])[:, shuffled]
    data = Plain(x=X, y=Y, edge_index=edges, edge_weight=W[shuffled].double(), **MASKS)
    graph = open_graph(from_pyg(data, "mine"))
    assert_imported(graph)
    assert graph.weights is not None and graph.weights.dtype == torch.float32
    assert graph.weights.tolist() == WEIGHTS_IN_CSC
    assert verify("mine").ok
    for stored in (from_pyg(data, "other", symmetric=True), prepare("mine+sym")):
        graph = open_graph(stored)
        assert graph.weights is None
        assert any("edge weights not kept" in note for note in graph.meta["notes"])


def test_random_split_has_labelled_nodes_only(root: Path) -> None:
    y = torch.full((5,), -1)
    y[1], y[4] = 0, 1
    graph = open_graph(from_pyg(Plain(y=y), "mine", train_fraction=1))
    assert graph.train_idx.tolist() == [1, 4]
    assert graph.meta["split"] == "random 100/0/0, seed 0, of the labelled nodes"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": SRC}, r"edge_index has shape \(6,\)"),
        ({"edge_index": torch.stack([SRC, DST + 1])}, "edge with node 5"),
        ({"edge_index": torch.stack([SRC, DST]).float()}, "type float32, integers are"),
        ({"num_nodes": 0}, "no nodes"),
        ({"x": X[:4]}, r"x in PyG Data has shape \(4, 3\)"),
        ({"x": X[0]}, r"shape \(3,\)"),
        ({"x": X / 0}, "'x' in .* has nan for node 0, in column 0"),
        ({"y": Y[:4]}, "'y' in PyG Data has 4 entries, 5 are expected"),
        ({"y": torch.ones(5, 3)}, "multi-label"),
        ({"y": Y / 2}, "not class numbers"),
        ({"train_mask": torch.ones(4).bool()}, r"mask' .* shape \(4,\)"),
        ({"train_mask": torch.zeros(5).bool()}, "training set is empty"),
        ({"y": Y, "train_mask": torch.arange(5) == 3}, "no node of the training set has a label"),
        ({"edge_weight": W[:5]}, r"edges' weights, has type float32 and shape \(5,\)"),
        ({"edge_weight": W - 0.5}, r"'edge_weight' in .* has -0\.5 for edge 2"),
        ({"edge_weight": W / 0}, "'edge_weight' in .* has inf for edge 0"),
        ({"edge_weight": W * float("nan")}, "'edge_weight' in .* has nan for edge 0"),
    ],
)
def test_malformed_data_is_refused(root: Path, change, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        from_pyg(Plain(**change), "mine")
    assert "'mine'" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (root / "imported" / "mine").exists()


def test_names_and_folders_are_checked(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name of another dataset"):
        from_pyg(Plain(), "reddit")
    with pytest.raises(UsageError, match="training fraction"):
        from_pyg(Plain(), "mine", train_fraction=2)
    stored = from_pyg(Plain(), "mine")
    with pytest.raises(UsageError, match="already another graph"):
        from_pyg(Plain(x=X), "mine")
    assert open_graph(from_pyg(Plain(x=X), "mine", replace=True)).feature_dim == 3
    assert stored == root / "imported" / "mine"
    (tmp_path / "home").mkdir()
    with pytest.raises(UsageError, match="is no stored graph"):
        from_pyg(Plain(), "mine", tmp_path / "home", replace=True)


def test_dgl_node_data_is_not_read_as_edges(root: Path) -> None:
    """The graph has as many nodes as edges, and its node data have names of edge arrays."""
    dgl = pytest.importorskip("dgl")
    g = dgl.graph(([0, 1], [1, 0]))
    g.ndata["weights"] = torch.tensor([5.0, 7.0])
    g.ndata["edge_index"] = torch.tensor([[0, 0], [1, 1]])
    g.ndata["num_classes"] = torch.tensor([3, 4])
    g.ndata["_ID"] = torch.tensor([8, 9])
    graph = open_graph(from_dgl(g, "mine"))
    assert graph.weights is None and graph.indices.tolist() == [1, 0]
    ignored = "ndata _ID, ndata edge_index, ndata num_classes, ndata weights"
    assert graph.meta["notes"] == [f"not kept: {ignored}"]


def test_dgl_graph_in_csc_format_is_imported(root: Path) -> None:
    dgl = pytest.importorskip("dgl")
    g = dgl.graph(([2, 0, 1], [0, 1, 0]))
    g.edata["weight"] = torch.tensor([1.0, 2.0, 3.0])
    graph = open_graph(from_dgl(g.formats("csc"), "mine"))
    assert graph.indptr.tolist() == [0, 2, 3, 3] and graph.indices.tolist() == [1, 2, 0]
    assert graph.weights.tolist() == [3, 1, 2]


def test_features_may_be_a_scipy_matrix(root: Path) -> None:
    dense = np.array([[0, 1.5], [0, 0], [2, 0]])
    data = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]), x=sp.csc_array(dense))
    assert open_graph(from_pyg(data, "mine")).features.tolist() == dense.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": [[0], [1], [2]]}, "a split is a dict of train, val .* not a list"),
        ({"name": 5}, "name is a text, not a int"),
        ({"name": "x" * 300}, "200 characters at most, not 300"),
    ],
)
def test_arguments_of_another_type_are_refused(root: Path, options, message: str) -> None:
    data = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(UsageError, match=message):
        from_pyg(data, **{"name": "mine", **options})
