"""The benchmark of dataset preparation, on tiny twins."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from gnnbench.analysis.native_benchmarks import bench_table
from gnnbench.core.errors import UsageError

FILE = Path(__file__).parents[2] / "native/bench/prepare.py"


@pytest.fixture(autouse=True)
def _restored_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the variable that the benchmark sets."""
    monkeypatch.setenv("GNNBENCH_FEATURES", "disk")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_prepare", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_benchmark_reports_sizes_and_leaves_no_files(
    root: Path, tmp_path: Path, bench: ModuleType
) -> None:
    out = tmp_path / "prepare.json"
    sizes = ["--dataset", "products", "--scales", "0.001", "0.004"]
    bench.main([*sizes, "--rounds", "1", "--out", str(out)])
    report = json.loads(out.read_text())
    small, large = report["results"]
    assert (small["edges"], large["edges"]) == (123_718, 494_872)
    for row in (small, large):
        assert row["whole_s"] == pytest.approx(row["topology_s"] + row["features_s"])
        assert row["topology_s"] > 0 and row["features_s"] > 0
        assert row["features_bytes"] == row["nodes"] * 100 * 4
        assert 4 * row["edges"] < row["stored_bytes"] < 5 * row["edges"] + (1 << 14)
        assert row["topology_rss_bytes"] > 1 << 26  # a Python with torch
    assert report["lines"]["features_bytes"]["worst_off_percent"] == pytest.approx(0, abs=0.1)
    assert not root.exists()
    about, part = bench_table(out) or ("", None)
    assert "prepare.py" in about and part is not None
    assert [line["scale"] for line in part.lines] == [
        "0.001", "0.004", "ns or B an edge", "% off that line",
    ]  # fmt: skip


def test_line_through_gives_slope_and_fixed_cost(bench: ModuleType) -> None:
    line = bench.line_through([1.0, 2.0, 4.0], [3.0, 5.0, 9.0])
    assert (line["per_edge"], line["fixed"]) == (pytest.approx(2), pytest.approx(1))
    assert line["worst_off_percent"] == pytest.approx(0)
    bent = bench.line_through([1.0, 2.0, 4.0], [1.0, 4.0, 16.0])
    assert bent["worst_off_percent"] > 20


def test_failed_preparation_ends_the_benchmark(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: ModuleType
) -> None:
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "tape")
    with pytest.raises(UsageError, match="GNNBENCH_TWIN_DEVICE"):
        bench.main(["--dataset", "products", "--scales", "0.001", "--out", str(tmp_path / "x")])
    assert not root.exists() and not (tmp_path / "x").exists()
