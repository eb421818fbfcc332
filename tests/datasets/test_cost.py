"""Estimated cost of preparing a dataset, and refusal if it cannot fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gnnbench.core import host_memory
from gnnbench.core.errors import EXIT_CELLS_FAILED, EXIT_USAGE, HostMemoryError, UsageError
from gnnbench.datasets import prepare as prepare_module
from gnnbench.datasets.cost import Cost
from gnnbench.datasets.prepare import expected, load_dataset, preparation, prepare


def files(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.bin"))


@pytest.mark.parametrize(
    "name", ["products~twin@0.001", "igb_large~twin@0.00001", "rmat@8", "rmat@8x4x16", "rows@2kx8"]
)
def test_disk_size_of_a_generated_graph_is_estimated(root: Path, name: str) -> None:
    cost, counts = preparation(name), expected(name)
    assert cost is not None and counts is not None
    graph = load_dataset(name)
    assert (counts.nodes, counts.edges, counts.width) == (
        graph.num_nodes, graph.num_edges, graph.feature_dim,
    )  # fmt: skip
    assert counts.train >= len(graph.train_idx)
    # Splits and R-MAT's training nodes may be fewer than nodes, at 8 bytes each.
    assert 0 <= cost.disk_bytes - files(prepare(name)) <= 8 * counts.nodes
    assert preparation(name) is None


def test_features_without_a_file_take_no_disk(root: Path, monkeypatch) -> None:
    on_disk = preparation("rows@2kx8")
    monkeypatch.setenv("GNNBENCH_FEATURES", "memory")
    assert preparation("rows@2kx8").disk_bytes == on_disk.disk_bytes - 2000 * 8 * 4


def test_weights_take_four_bytes_an_edge(root: Path) -> None:
    with_weights = preparation("rmat@8+sym+weights")
    prepare("rmat@8+sym")
    weights = preparation("rmat@8+sym+weights")
    graph = load_dataset("rmat@8+sym+weights")
    assert weights.disk_bytes >= 4 * graph.num_edges
    assert with_weights.disk_bytes > weights.disk_bytes
    assert preparation("rmat@8+sym+weights") is None


def test_cost_of_a_file_is_known_without_reading_its_arrays(root: Path, make_npz) -> None:
    path = str(make_npz())
    cost, counts = preparation(path), expected(path)
    graph = load_dataset(path)
    assert (counts.nodes, counts.edges) == (graph.num_nodes, graph.num_edges)
    assert (counts.width, counts.train) == (graph.feature_dim, len(graph.train_idx))
    assert cost.disk_bytes >= files(prepare(path))


def test_cost_of_a_symmetric_graph_includes_its_base(root: Path) -> None:
    base, both = (preparation(f"mag240m~twin@0.00001{sym}") for sym in ("", "+sym"))
    counts = expected("mag240m~twin@0.00001+sym")
    assert counts.edges == 2 * expected("mag240m~twin@0.00001").edges
    assert both.disk_bytes == base.disk_bytes + counts.topology_bytes()
    prepare("mag240m~twin@0.00001")
    assert preparation("mag240m~twin@0.00001+sym").disk_bytes == counts.topology_bytes()


def test_cost_grows_with_the_scale(root: Path) -> None:
    """``igb_large~twin@4``: 4.9 G edges of 4 bytes, 400 M rows of 4 KiB."""
    big, small = (preparation(f"igb_large~twin@{scale}") for scale in (4, 0.04))
    assert big.memory_bytes > 19.6e9 and big.disk_bytes > 1.6e12
    assert 90 < big.disk_bytes / small.disk_bytes < 110 and big.seconds > 90 * small.seconds


def test_missing_real_dataset_has_no_estimate(root: Path) -> None:
    assert preparation("mag240m") is None and expected("mag240m") is None


def test_dataset_beyond_memory_is_refused_before_preparation(root: Path, monkeypatch) -> None:
    monkeypatch.setattr(prepare_module, "make_graph", None)  # preparation must not start
    monkeypatch.setattr(host_memory, "free_memory_bytes", lambda: 64 << 20)
    words = (
        r"^preparing 'products~twin' takes about 0\.9 GiB of memory where 64\.0 MiB are free; take"
    )
    with pytest.raises(HostMemoryError, match=words) as refused:
        prepare("products~twin")
    assert refused.value.exit_code == EXIT_CELLS_FAILED


def test_dataset_beyond_disk_is_refused_before_preparation(root: Path, monkeypatch) -> None:
    monkeypatch.setattr(prepare_module, "make_graph", None)
    usage = shutil.disk_usage(root.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 30))
    words = (
        "^preparing 'products~twin' takes about 1.4 GiB of disk where 1.0 GiB are free below .*;"
    )
    with pytest.raises(UsageError, match=words) as refused:
        prepare("products~twin")
    assert refused.value.exit_code == EXIT_USAGE


def test_costs_of_sequential_steps_are_added() -> None:
    assert Cost(1.0, 5, 7) + Cost(2.0, 3, 7) == Cost(3.0, 5, 14)
