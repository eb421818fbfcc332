"""Hostile ``.npz`` and ``.pt`` files are refused with one sentence, before memory is allocated."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnnbench.core.errors import DataError, GnnbenchError, HostMemoryError, UsageError
from gnnbench.datasets.importers import room
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.objects import from_pyg
from gnnbench.datasets.prepare import load_dataset
from gnnbench.datasets.store.reader import open_graph

ENDS = torch.tensor([[0, 0, 1, 3], [1, 2, 2, 0]])


def sparse(layout: str, ids: list[int], indptr: list[int] | None = None, size: int = 4) -> Any:
    """A sparse tensor that torch has not checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if layout == "coo":
            parts = torch.tensor([[0] * len(ids), ids]), torch.ones(len(ids))
            return torch.sparse_coo_tensor(*parts, (size, size), check_invariants=False)
        make = torch.sparse_csr_tensor if layout == "csr" else torch.sparse_csc_tensor
        whole = torch.tensor(indptr), torch.tensor(ids), torch.ones(len(ids))
        return make(*whole, size=(size, size), check_invariants=False)


def quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(4, 2), 0.5, 0, torch.qint8)


def nested() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2)])


SPARSE = [
    (sparse("coo", [1, 9]), "edge with node 9"),
    (sparse("coo", [1, 2**62]), f"edge with node {2**62}"),
    (sparse("coo", [1, -1]), "edge with node -1"),
    (sparse("csr", [1, 9], [0, 1, 2, 2, 2]), "edge with node 9"),
    (sparse("csr", [1, 2], [0, 2, 1, 2, 2]), "indptr decreases at position 2"),
    (sparse("csr", [1, 2], [0, 2**40, 2, 2, 2]), "indptr decreases at position 2"),
    (sparse("csr", [1, 2], [0, 0, 0, 0, 2**40]), f"indptr ends with {2**40}"),
    (sparse("csr", [1, 2], [0, 1, 2]), r"indptr of shape \(3,\)"),
    (sparse("csc", [1, -5], [0, 1, 2, 2, 2]), "edge with node -5"),
    (torch.ones(4, 4, 2).to_sparse(2), r"shape \[4, 4, 2\]"),
    (torch.ones(4, 4, 2).to_sparse(), r"shape \[4, 4, 2\]"),
    (torch.ones(4, 4).to_sparse_bsr((2, 2)), "layout torch.sparse_bsr"),
    (torch.ones(4, 3).to_sparse(), r"shape \[4, 3\], a graph's is square"),
    ((torch.ones(4, 4) * 1j).to_sparse(), "type complex64"),
]


@pytest.mark.parametrize(("tensor", "message"), SPARSE, ids=range(len(SPARSE)))
def test_invalid_sparse_tensors_are_refused(
    root: Path, tmp_path: Path, tensor: Any, message: str
) -> None:
    path = tmp_path / "adj.pt"
    for value in (tensor, {"adj_t": tensor}):
        torch.save(value, path)
        with pytest.raises(DataError, match=message) as caught:
            import_source(path, "g", rows="sources" if value is tensor else "")
        assert "adj.pt" in str(caught.value)
    if "square" in message or "[4, 4" in message:
        return
    torch.save({"edge_index": ENDS, "x": tensor}, path)
    with pytest.raises(DataError, match=message):
        import_source(path, "g")


def test_sparse_tensor_of_too_many_rows_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_memory_bytes", lambda: 1 << 30)
    torch.save(sparse("coo", [1, 2], size=2**31), tmp_path / "adj.pt")
    with pytest.raises(HostMemoryError, match=r"adj.* takes about 16.0 GiB of memory"):
        import_source(tmp_path / "adj.pt", "g", rows="sources")


TENSORS = [
    ("x", torch.ones(1).expand(4, 2**44), r"'x' in .* elements and stores 1; save its .contig"),
    ("y", torch.zeros(1, dtype=torch.long).expand(2**44), "elements and stores 1"),
    ("edge_index", torch.zeros(1, dtype=torch.long).expand(2, 2**44), "elements and stores 1"),
    ("x", torch.ones(4, 2, device="meta"), "a meta tensor, which has no values"),
    ("edge_index", torch.ones(2, 2, device="meta"), "a meta tensor"),
    ("x", quantized(), "quantized; save its .dequantize()"),
    ("x", nested(), "a nested tensor"),
    ("x", torch.ones(4, 2).mul(1j).conj(), "type complex64"),
    ("edge_index", ENDS.mul(1j).conj(), "type complex"),
    ("y", torch.tensor([0, 1, 2**63 + 5, 1], dtype=torch.uint64), f"has {2**63 + 5} for node 2"),
    ("y", torch.tensor([0.0, float("inf"), 1, 1]).bfloat16(), "has inf for node 1"),
    ("num_nodes", float("nan"), "'num_nodes' in .* is nan"),
    ("num_nodes", 10**40, "'num_nodes' in .* is 1000"),
    ("num_nodes", 1j, "is 1j"),
    ("num_nodes", "4", "is '4'"),
    ("num_nodes", True, "is True"),
    ("num_classes", torch.tensor([1, 2]), "must be a single value"),
    ("num_classes", -3, "is -3"),
]


@pytest.mark.parametrize(("key", "value", "message"), TENSORS, ids=range(len(TENSORS)))
def test_invalid_tensors_and_counts_are_refused(
    root: Path, tmp_path: Path, key: str, value: Any, message: str
) -> None:
    values = {"edge_index": ENDS, key: value}
    torch.save(values, tmp_path / "g.pt")
    with pytest.raises(DataError, match=message):
        import_source(tmp_path / "g.pt", "g")
    if key != "num_nodes":
        data = type("Data", (), {"num_nodes": 4, **values})()
        data.__dict__.update({"num_nodes": 4, **values})
        with pytest.raises(DataError, match=message):
            from_pyg(data, "g")


def test_ignored_values_are_reported(root: Path, tmp_path: Path) -> None:
    values = {
        "edge_index": ENDS, 3: torch.ones(4), ("a", 1): 1, None: 2, "list": [1, 2], "nothing": None,
        "bytes": b"x", "inner": {"x": torch.ones(4)}, "size": torch.Size([2]),
    }  # fmt: skip
    torch.save(values, tmp_path / "g.pt")
    graph = open_graph(import_source(tmp_path / "g.pt", "g"))
    assert graph.meta["notes"] == ["not kept: ('a', 1), 3, None, bytes, inner, list, size"]
    assert graph.num_edges == 4


def test_small_expanded_tensors_are_read(root: Path, tmp_path: Path) -> None:
    values = {
        "edge_index": ENDS, "y": torch.zeros(1, dtype=torch.long).expand(4),
        "x": torch.ones(4, 1).expand(4, 3), "train_mask": torch.ones(1).bool().expand(4),
    }  # fmt: skip
    torch.save(values, tmp_path / "g.pt")
    graph = open_graph(import_source(tmp_path / "g.pt", "g"))
    assert graph.features.tolist() == [[1, 1, 1]] * 4
    assert graph.labels.tolist() == [0] * 4
    assert graph.train_idx.tolist() == [0, 1, 2, 3]


def test_masked_entries_are_refused(root: Path) -> None:
    data = type("Data", (), {})()
    data.edge_index, data.num_nodes = ENDS, 4
    data.y = np.ma.masked_array([0, 1, 0, 1], [False, True, False, False])
    with pytest.raises(DataError, match=r"'y' in .* has masked entries"):
        from_pyg(data, "g")
    data.y = np.ma.masked_array([0, 1, 0, 1], False)
    assert open_graph(from_pyg(data, "g")).labels.tolist() == [0, 1, 0, 1]


def test_compressed_torch_file_is_read(root: Path, tmp_path: Path) -> None:
    torch.save({"edge_index": ENDS}, tmp_path / "g.pt")
    target = zipfile.ZipFile(tmp_path / "z.pt", "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(tmp_path / "g.pt") as plain, target as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    graph = open_graph(import_source(tmp_path / "z.pt", "g"))
    assert graph.indices.tolist() == [3, 0, 0, 1]


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x80\x02.", b"\x80\x05]q\x00.", b"x" * 99]
)
@pytest.mark.parametrize("name", ["g.pt", "g.npz", "y.pt"])
def test_invalid_file_contents_are_refused(
    root: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "valid.npz", edge_index=ENDS)
    with pytest.raises(GnnbenchError) as caught:
        if name == "y.pt":
            import_source(tmp_path / "valid.npz", "g", labels=tmp_path / name)
        else:
            import_source(tmp_path / name, "g")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def npz_with_header(path: Path, key: str, header: str, content: bytes, **arrays: Any) -> None:
    """Write an ``.npz`` with an array of the given header."""
    np.savez(path, **arrays)
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<i8", "fortran_order": False,
                                               "shape": (0,)})  # fmt: skip
    plain = out.getvalue()
    old = b"{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }"
    assert old in plain
    raw = plain.replace(old, header.encode().ljust(len(old)))
    raw = raw if len(raw) == len(plain) else b"\x93NUMPY\x01\x00" + len(raw[10:]).to_bytes(
        2, "little") + raw[10:]  # fmt: skip
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"{key}.npy", raw + content)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1000000000000), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1099511627776, 8388608), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-2, -2), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, True), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': 'x8', 'fortran_order': False, 'shape': (2, 2), }",
        "[" * 3000,
        "(" * 90 + "1" + ")" * 90,
        "__import__('os')",
    ],
)
def test_false_npz_headers_are_refused(root: Path, tmp_path: Path, header: str) -> None:
    npz_with_header(tmp_path / "g.npz", "edge_index", header, bytes(32))
    with pytest.raises(DataError, match=r"g.npz is truncated, damaged or not what"):
        import_source(tmp_path / "g.npz", "g")
    npz_with_header(tmp_path / "h.npz", "x", header, bytes(32), edge_index=ENDS)
    with pytest.raises(DataError, match=r"h.npz is truncated, damaged or not what"):
        load_dataset(str(tmp_path / "h.npz"))


@pytest.mark.parametrize(
    "change",
    [
        (b"(2, 4)", b"(2, 4["), (b"(2, 4)", b"(9, 9)"), (b"(2, 4)", b"(-2,4)"), (b"<i8", b"|O8"),
        (b"<i8", b"x(8"), (b"False", b"Fal(e"), (b"NUMPY", b"NUMPI"), (b"{'d", b"((("),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_npy_files_are_refused(root: Path, tmp_path: Path, change: Any) -> None:
    np.save(tmp_path / "valid.npy", ENDS.numpy())
    raw = (tmp_path / "valid.npy").read_bytes()
    (tmp_path / "g.npy").write_bytes(raw.replace(*change))
    assert (tmp_path / "g.npy").read_bytes() != raw
    for options in ({}, {"features": tmp_path / "g.npy"}, {"labels": tmp_path / "g.npy"}):
        source = tmp_path / ("valid.npy" if options else "g.npy")
        with pytest.raises(DataError, match=r"g.npy is truncated, damaged or not what") as caught:
            import_source(source, "g", **options)
        assert "\n" not in str(caught.value)
    np.savez(tmp_path / "several.npz", a=1)
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    with pytest.raises(DataError, match=r"name it .npz"):
        import_source(tmp_path / "several.npy", "g")
    np.save(tmp_path / "empty.npy", np.empty((2, 0), int))
    with pytest.raises(DataError, match=r"no edges"):
        import_source(tmp_path / "empty.npy", "g")


def test_array_larger_than_memory_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_memory_bytes", lambda: 1 << 23)
    np.savez_compressed(tmp_path / "g.npz", edge_index=np.zeros((2, 1 << 19), np.int64))
    assert (tmp_path / "g.npz").stat().st_size < 20_000
    with pytest.raises(HostMemoryError, match=r"'edge_index' in .* takes about 16.0 MiB of mem"):
        import_source(tmp_path / "g.npz", "g")


@pytest.mark.parametrize("end", ["npz", "pt"])
def test_counts_that_need_terabytes_are_refused(root: Path, tmp_path: Path, end: str) -> None:
    for number, values in enumerate(
        ({"num_nodes": 10**14}, {"edge_index": ENDS * 10**14}, {"feat_dim": 2**52, "feat_data": 1})
    ):
        whole = {"edge_index": ENDS, **values}
        if "feat_dim" in whole:
            whole |= {
                "feat_data": torch.ones(1), "feat_indices": torch.tensor([5]),
                "feat_indptr": torch.tensor([0, 1, 1, 1, 1]),
            }  # fmt: skip
        path = tmp_path / f"g{number}.{end}"
        if end == "pt":
            torch.save(whole, path)
        else:
            np.savez(path, **{k: np.asarray(v) for k, v in whole.items()})
        with pytest.raises((HostMemoryError, UsageError), match=r"nodes, 4 edges\) takes about"):
            import_source(path, "g")
    assert not list((root / "imported").glob("[!.]*"))


def test_other_objects_are_not_loaded(root: Path, tmp_path: Path) -> None:
    data = pytest.importorskip("torch_geometric.data")
    hetero = data.HeteroData()
    hetero["a"].x = torch.ones(4, 2)
    hetero["a", "to", "a"].edge_index = ENDS
    torch.save(hetero, tmp_path / "hetero.pt")
    with pytest.raises(UsageError, match=r"PyG's HeteroData, .* \.to_homogeneous"):
        import_source(tmp_path / "hetero.pt", "g")
    torch.save({"edge_index": ENDS.numpy()}, tmp_path / "numpy.pt")
    with pytest.raises(UsageError, match=r"pickled objects \(.*never loads"):
        import_source(tmp_path / "numpy.pt", "g")
    torch.save(data.Data(edge_index=ENDS.mul(99), x=torch.ones(4, 2)), tmp_path / "far.pt")
    with pytest.raises(DataError, match=r"edge with node 297, outside 0..3"):
        import_source(tmp_path / "far.pt", "g")
