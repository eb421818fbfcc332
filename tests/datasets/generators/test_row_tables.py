"""Row tables without a graph: names, values and storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.datasets.catalog import info, list_datasets, verify
from gnnbench.datasets.generators import rows
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import generate_arrays
from gnnbench.datasets.names import check_new_name, resolve
from gnnbench.datasets.prepare import load_dataset, prepare


@pytest.mark.parametrize(
    ("typed", "name", "shape"),
    [
        ("rows@2Mx128", "rows@2Mx128", (2_000_000, 128)),
        ("rows@2000kx128", "rows@2Mx128", (2_000_000, 128)),
        ("rows@2000000x0128", "rows@2Mx128", (2_000_000, 128)),
        ("Rows@1500x257", "rows@1500x257", (1500, 257)),
        ("rows@4000x1", "rows@4kx1", (4000, 1)),
        ("rows@2147483647x65536", "rows@2147483647x65536", (2**31 - 1, 65536)),
        ("rows", "rows@2Mx128", (2_000_000, 128)),
    ],
)
def test_names_are_normalized(root: Path, typed: str, name: str, shape: tuple[int, int]) -> None:
    ref = resolve(typed)
    assert (ref.name, ref.kind, ref.shape) == (name, "rows", shape)
    assert ref.folder_name(1) == f"{name}-seed1"
    assert resolve(ref.name) == ref


@pytest.mark.parametrize(
    "typed",
    [
        "rows@", "rows@2M", "rows@x128", "rows@0x128", "rows@10x0", "rows@10x65537", "rows@2Gx8",
        "rows@2148Mx1", "rows@-1x8", "rows@1.5Mx8", "rows@2mx8",
    ],
)  # fmt: skip
def test_invalid_names_of_tables_are_refused(root: Path, typed: str) -> None:
    with pytest.raises(UsageError, match=r"as in rows@2Mx128$"):
        resolve(typed)


def test_tables_have_no_symmetric_version_and_a_reserved_name(root: Path) -> None:
    with pytest.raises(UsageError, match=r"no edges to reverse; leave \+sym out"):
        resolve("rows@10x4+sym")
    with pytest.raises(UsageError, match="unknown dataset"):
        resolve("rows~twin")
    with pytest.raises(UsageError, match="the name of another dataset"):
        check_new_name("rows")


def test_table_has_no_edges_and_distinct_rows(root: Path) -> None:
    graph = load_dataset("rows@1500x37")
    assert (graph.num_nodes, graph.num_edges, graph.feature_dim) == (1500, 0, 37)
    assert torch.equal(graph.train_idx, torch.arange(1500))
    assert graph.indptr.unique().tolist() == [0] and graph.indices.dtype == torch.int32
    assert graph.val_idx.numel() == graph.test_idx.numel() == 0
    assert graph.num_classes == 1 and graph.labels.unique().tolist() == [0]
    assert len(graph.features.unique(dim=0)) == 1500  # all rows differ
    assert verify("rows@1500x37").ok


def test_rows_equal_those_of_a_twin_and_depend_on_the_seed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows do not depend on the chunk size."""
    monkeypatch.setattr("gnnbench.datasets.generators.twin._FEATURE_BYTES", 4 * 37 * 7)
    rows_of_table = load_dataset("rows@100x37").features.numpy()
    recipe = TwinRecipe(
        num_nodes=100, num_edges=0, feature_dim=37, num_classes=1, train=100, symmetric=False
    )
    assert np.array_equal(rows_of_table, generate_arrays(recipe)["features"])
    other = load_dataset("rows@100x37", seed=1)
    assert not np.array_equal(rows_of_table, other.features.numpy())


def test_consecutive_ids_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_CHUNK", 4)
    pieces = list(rows._consecutive(10))
    assert [p.tolist() for p in pieces] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_summary_of_a_table_before_and_after_preparation(root: Path) -> None:
    summary = info("rows@3kx16").summary
    assert (summary.state, summary.num_nodes, summary.feature_dim) == ("generated", 3000, 16)
    assert summary.train_size == 3000 and summary.num_edges == 0
    assert "rows@2Mx128" in [d.name for d in list_datasets()]
    prepare("rows@3kx16")
    assert info("rows@3kx16").summary.state == "prepared"
