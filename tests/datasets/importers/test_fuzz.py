"""Random ``.npz`` and ``.pt`` files give the oracle's graph or an error of gnnbench.

``GNNBENCH_FUZZ_FILES`` sets the number of files per container, ``GNNBENCH_FUZZ_SEED`` the first
seed.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from own_graph import weighted_edges

from gnnbench.core.errors import GnnbenchError
from gnnbench.datasets.importers import room
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.store.reader import open_graph

FILES = int(os.environ.get("GNNBENCH_FUZZ_FILES", "40"))
SEED = int(os.environ.get("GNNBENCH_FUZZ_SEED", "0"))

NUMBERS = ["i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8"]
ODD = ["?", "<f2", "<f4", ">f8", "<c8", "<M8[s]", "<m8[ns]", "<U3", "S3", "V4"]
TENSORS = [
    torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
    torch.uint64, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64,
]  # fmt: skip
FAR = [-1, -100, -(2**63), 2**31, 2**53 + 1, 2**63 - 1]
COUNTS = [
    0, -1, 1, 5, 12, 10**14, 2.0, 2.5, float("nan"), float("inf"), 1e300, "7", True, 2 + 1j,
    np.datetime64("2020-01-01"), 2**70,
]  # fmt: skip
FORMS = ["edge_index", "src", "source", "row", "indptr", "csr", "csc", "coo", "adj", "adj_t"]
ROWS = "sources"  # for matrices without a direction

Edges = Counter[tuple[int, int, float]]


class Case:
    """The values of one random file, and the expected graph."""

    def __init__(self, rng: np.random.Generator, tensors: bool) -> None:
        self.rng, self.values = rng, {}  # type: tuple[np.random.Generator, dict[str, Any]]
        self.nodes, self.count = int(rng.integers(1, 8)), int(rng.integers(0, 12))
        forms = FORMS[:5] + FORMS[8:] if tensors else FORMS[:8]
        self.form = str(rng.choice(forms))
        ids = rng.integers(0, self.nodes, (2, self.count))
        self.weights = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], self.count)
        if rng.random() < 0.3:
            self.weights[:] = 1
        self.edges(ids[0], ids[1])
        self.node_data()

    def edges(self, row: np.ndarray, col: np.ndarray) -> None:
        values, n, form = self.values, self.nodes, self.form
        if form in ("csr", "csc", "coo", "adj", "adj_t"):
            matrix = sp.coo_matrix((self.weights, (row, col)), shape=(n, n))
            layout = str(self.rng.choice(["csr", "csc", "coo"])) if form[0] == "a" else form
            self.matrix(matrix, layout)
        elif form == "indptr":
            order = np.argsort(row, kind="stable")
            values["indptr"] = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
            values["indices"], self.weights = col[order], self.weights[order]
        elif form == "edge_index":
            values["edge_index"] = np.stack([row, col])
        else:
            keys = {"src": ("src", "dst"), "source": ("source", "target"), "row": ("row", "col")}
            values[keys[form][0]], values[keys[form][1]] = row, col
        if form in FORMS[:5]:
            values["num_nodes"] = np.asarray(n)
            if self.rng.random() < 0.5:
                values["weights"] = self.weights

    def matrix(self, matrix: sp.coo_matrix, layout: str) -> None:
        """Store a matrix without scipy's conversions, which would sum duplicates."""
        row, col, data, n = matrix.row, matrix.col, matrix.data, self.nodes
        main, minor = (row, col) if layout == "csr" else (col, row)
        order = np.argsort(main, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(main, minlength=n))])
        if self.form[0] != "a":
            self.values |= {"format": np.asarray(layout), "shape": np.array([n, n])}
            if layout == "coo":
                self.values |= {"row": row, "col": col, "data": data}
            else:
                self.values |= {"indptr": indptr, "indices": minor[order], "data": data[order]}
            return
        make = {"csr": torch.sparse_csr_tensor, "csc": torch.sparse_csc_tensor}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if layout == "coo":
                ends = np.stack([row, col]).astype(np.int64)
                if len(row) and self.rng.random() < 0.2:
                    ends[self.rng.integers(2), self.rng.integers(len(row))] = self.rng.choice(FAR)
                tensor = torch.sparse_coo_tensor(ends, data, (n, n), check_invariants=False)
            else:
                parts = [indptr.astype(np.int64), minor[order].astype(np.int64)]
                if self.rng.random() < 0.2:
                    broken = parts[self.rng.integers(2)]
                    if len(broken):
                        broken[self.rng.integers(len(broken))] = self.rng.choice(FAR)
                whole = *map(torch.tensor, parts), torch.tensor(data[order])
                tensor = make[layout](*whole, size=(n, n), check_invariants=False)
        self.values[self.form] = tensor

    def node_data(self) -> None:
        rng, n, values = self.rng, self.nodes, self.values
        if rng.random() < 0.6:
            values["y"] = rng.integers(-1, 3, n)
        if rng.random() < 0.4:
            values["x"] = rng.integers(-4, 4, (n, int(rng.integers(1, 4)))).astype(np.float32)
        if rng.random() < 0.4:
            kind = rng.integers(0, 3, n)
            for part, key in enumerate(("train_mask", "val_mask", "test_mask")):
                values[key] = kind == part
        if rng.random() < 0.2:
            values["num_classes"] = np.asarray(3)

    def spoil(self, tensors: bool) -> None:
        """Change some arrays: types, shapes, values, memory layouts, counts."""
        rng = self.rng
        for _ in range(int(rng.integers(0, 3))):
            keys = [k for k, v in self.values.items() if isinstance(v, np.ndarray) and v.ndim]
            kind = rng.integers(7)
            if kind == 0 or not keys:
                count = COUNTS[rng.integers(len(COUNTS))]
                self.values[str(rng.choice(["num_nodes", "num_classes"]))] = np.asarray(count)
                continue
            key = str(rng.choice(keys))
            value = self.values[key]
            if kind in (1, 2):
                self.values[key] = self.cast(value, NUMBERS if rng.random() < 0.7 else ODD)
            elif kind == 3 and value.size and value.dtype.kind in "iuf":
                value = value.astype("f8" if value.dtype.kind == "f" else "i8")
                far = [np.nan, np.inf, -1.0, 1e300, 1e-60, -0.0, 2.5]
                flat = value.reshape(-1)
                flat[rng.integers(len(flat))] = rng.choice(far if value.dtype == "f8" else FAR)
                self.values[key] = flat.reshape(value.shape)
            elif kind == 4:
                shapes = [value[None], value[..., None], value[:-1], value[:0], value.T]
                self.values[key] = shapes[rng.integers(len(shapes))]
            elif kind == 5:
                self.values[key] = np.asfortranarray(value)[..., ::-1][..., ::-1]
            else:
                del self.values[key]

    def cast(self, value: np.ndarray, kinds: list[str]) -> np.ndarray:
        kind = str(self.rng.choice(kinds))
        if kind == "V4":
            return np.zeros(value.shape, [("a", "i4")])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return value.astype(kind)
            except (TypeError, ValueError, OverflowError):
                return value

    def save(self, path: Path, tensors: bool) -> None:
        if not tensors:
            save = np.savez_compressed if self.rng.random() < 0.5 else np.savez
            save(path, **{k: v for k, v in self.values.items() if np.asarray(v).dtype != object})
            return
        torch.save({k: self.tensor(v) for k, v in self.values.items()}, path)

    def tensor(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if value.ndim == 0 or value.dtype.kind not in "biufc":
            item = value.item() if value.ndim == 0 else list(map(str, value.reshape(-1)))
            return item if isinstance(item, int | float | complex | str | list) else str(item)
        result = torch.from_numpy(np.array(value, value.dtype.newbyteorder("=")))
        choice = self.rng.integers(50)
        if choice == 0:
            return result.to(TENSORS[self.rng.integers(len(TENSORS))])
        if choice == 1:
            return result.to("meta")
        if choice == 2 and result.numel():
            return result.reshape(-1)[:1].expand(result.shape)
        if choice == 3 and result.numel():
            return result.reshape(-1)[:1].expand(2, 2**40)
        if choice == 4 and result.dtype.is_complex:
            return result.conj()
        if choice == 5 and result.dtype == torch.float32:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.quantize_per_tensor(result, 0.5, 0, torch.qint8)
        if choice == 6:
            return result.t().contiguous().t() if result.ndim == 2 else result[::2]
        return result


def expected(values: dict[str, Any]) -> Edges | None:
    """Edges (source, target, weight or 1) by plain Python and scipy; None if there is no graph."""
    for key in ("adj", "adj_t"):
        if key in values and "edge_index" not in values:
            row, col, data = dense(values[key])
            return summed(row, col, data, transposed=key == "adj_t")
    if "format" in values:
        row, col = ends(values, str(values["format"]))
        return summed(row, col, numbers(values["data"]), transposed=False)
    if "edge_index" in values:
        src, dst = (list(map(int, end)) for end in values["edge_index"].tolist())
    elif "indptr" in values:
        src, dst = ends(values, "csr")
    else:
        pairs = (("src", "dst"), ("source", "target"), ("row", "col"))
        first, second = next(pair for pair in pairs if set(pair) <= set(values))
        src, dst = (list(map(int, values[key].tolist())) for key in (first, second))
    weights = numbers(values["weights"]) if "weights" in values else [1.0] * len(src)
    return Counter(zip(src, dst, map(float, np.float32(weights)), strict=True))


def numbers(values: Any) -> list[float]:
    if str(values.dtype) in ("bool", "torch.bool"):
        return values.tolist()
    doubles = values.double() if torch.is_tensor(values) else values
    return [float(v) for v in doubles.tolist()]


def ends(values: dict[str, Any], kind: str) -> tuple[list[int], list[int]]:
    if kind == "coo":
        return tuple(list(map(int, values[key].tolist())) for key in ("row", "col"))  # type: ignore
    starts = list(map(int, values["indptr"].tolist()))
    main = [v for v, (a, b) in enumerate(itertools.pairwise(starts)) for _ in range(b - a)]
    minor = list(map(int, values["indices"].tolist()))
    return (main, minor) if kind == "csr" else (minor, main)


def dense(matrix: torch.Tensor) -> tuple[list[int], list[int], list[float]]:
    if matrix.layout == torch.sparse_coo:
        row, col = matrix._indices().tolist()
        return row, col, numbers(matrix._values())
    csr = matrix.layout == torch.sparse_csr
    indptr = matrix.crow_indices() if csr else matrix.ccol_indices()
    indices = matrix.col_indices() if csr else matrix.row_indices()
    row, col = ends({"indptr": indptr, "indices": indices}, "csr" if csr else "csc")
    return row, col, numbers(matrix.values())


def summed(row: list[int], col: list[int], data: list[float], transposed: bool) -> Edges:
    n = max([0, *row, *col]) + 1
    kind = bool if data and isinstance(data[0], bool) else float
    matrix = sp.coo_matrix((np.array(data, kind), (row, col)), shape=(n, n)).tocsr()
    matrix.eliminate_zeros()
    coo = matrix.tocoo()
    first, second = (coo.col, coo.row) if transposed else (coo.row, coo.col)
    weights = map(float, coo.data.astype(np.float32))
    return Counter(zip(first.tolist(), second.tolist(), weights, strict=True))


def check(path: Path, folder: Path, values: dict[str, Any], form: str) -> bool:
    """Import the file; return whether it was accepted. The graph must equal the oracle's."""
    needs = form in ("row", "indptr", "csr", "csc", "coo", "adj")
    try:
        graph = open_graph(import_source(path, "g", rows=ROWS if needs else "", root=folder))
    except GnnbenchError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 900
        return False
    assert weighted_edges(graph) == expected(values)
    if graph.meta["labels"] == "source":
        y = torch.as_tensor(np.asarray(values["y"].double() if torch.is_tensor(values["y"])
                                       else values["y"]).astype(float)).reshape(-1)  # fmt: skip
        assert torch.equal(graph.labels.double(), torch.nan_to_num(y, nan=-1.0))
    if graph.meta["features"] == "source":
        x = torch.as_tensor(np.asarray(values["x"].float() if torch.is_tensor(values["x"])
                                       else values["x"], np.float32))  # fmt: skip
        assert torch.equal(graph.features, x)
    return True


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory_bytes", lambda: 1 << 28)
    monkeypatch.setattr(room, "free_disk_bytes", lambda _: 1 << 28)


@pytest.mark.parametrize("container", ["npz", "pt"])
def test_random_arrays_are_imported_correctly_or_refused(tmp_path: Path, container: str) -> None:
    tensors, imported = container == "pt", 0
    for number in range(FILES):
        case = Case(np.random.default_rng([SEED, number, tensors]), tensors)
        case.spoil(tensors)
        path = tmp_path / f"g{number}.{container}"
        case.save(path, tensors)
        values = case.values
        if tensors:
            values = torch.load(path, weights_only=True)
        try:
            imported += check(path, tmp_path / f"root{number}", values, case.form)
        except BaseException as error:
            error.add_note(f"file {number} from seed {SEED}: {case.form}, {values}")
            raise
    assert FILES / 5 < imported < FILES


@pytest.mark.parametrize("container", ["npz", "pt"])
def test_damaged_files_are_imported_or_refused(tmp_path: Path, container: str) -> None:
    tensors, refused = container == "pt", 0
    for number in range(FILES):
        rng = np.random.default_rng([SEED, number, 2 + tensors])
        case = Case(rng, tensors)
        path = tmp_path / f"g{number}.{container}"
        case.save(path, tensors)
        raw = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 4))):
            position = int(rng.integers(len(raw)))
            if rng.random() < 0.1:
                raw = raw[:position] + raw[position + int(rng.integers(1, 9)) :]
            elif rng.random() < 0.1:
                raw = raw[:position]
            else:
                raw[position % len(raw)] ^= 1 << int(rng.integers(8))
            if not raw:
                break
        path.write_bytes(raw)
        try:
            import_source(path, "g", rows=ROWS, root=tmp_path / f"root{number}")
        except GnnbenchError as error:
            assert "\n" not in str(error)
            refused += 1
        except BaseException as error:
            error.add_note(f"file {number} from seed {SEED}")
            raise
    assert refused > FILES / 5
