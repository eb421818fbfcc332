"""Small graphs in the raw and in the stored form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_server import server  # noqa: F401


def tiny_arrays() -> dict[str, Any]:
    """Five nodes: node 1 has a self-loop and a parallel edge, node 3 no in-neighbour.

    0 <- 1, 2    1 <- 1, 4, 4    2 <- 0    3 <-    4 <- 3
    """
    return {
        "indptr": np.array([0, 2, 5, 6, 6, 7], np.int64),
        "indices": np.array([1, 2, 1, 4, 4, 0, 3], np.int32),
        "features": (np.arange(15, dtype=np.float32).reshape(5, 3) - 7) / 4,
        "labels": np.array([0, 1, 2, -1, 1], np.int64),
        "train_idx": np.array([0, 2, 4], np.int64),
        "val_idx": np.array([1], np.int64),
        "test_idx": np.array([3], np.int64),
    }


@pytest.fixture
def arrays() -> dict[str, Any]:
    return tiny_arrays()


@pytest.fixture
def make_npz(tmp_path: Path) -> Callable[..., Path]:
    """Write an ``.npz`` of the tiny graph with some keys changed (None: left out)."""

    def make(name: str = "tiny.npz", *, compressed: bool = True, **changes: Any) -> Path:
        values: dict[str, Any] = {
            **tiny_arrays(),
            "num_nodes": np.int64(5),
            "num_classes": np.int64(3),
            "feat_kind": np.array("dense"),
            "rows": np.array("targets"),
            "license": np.array("CC0"),
            "source": np.array("made by hand"),
        }
        values["features"] = values["features"].astype(np.float16)
        values["labels"] = values["labels"].astype(np.int16)
        values = {k: v for k, v in {**values, **changes}.items() if v is not None}
        path = tmp_path / "raw" / name
        path.parent.mkdir(exist_ok=True)
        (np.savez_compressed if compressed else np.savez)(path, **values)
        return path

    return make


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store; ``raw`` next to it is the only folder of raw files."""
    folder = tmp_path / "root"
    (tmp_path / "raw").mkdir()
    monkeypatch.setenv("GNNBENCH_DATA", str(folder))
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path / "raw"))
    monkeypatch.chdir(tmp_path)
    return folder
