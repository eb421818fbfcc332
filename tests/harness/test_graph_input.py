"""Datasets in runs: opened by workers, or reported in one sentence."""

import os
from pathlib import Path

import numpy as np
import pytest
from fakes import by_system

from gnnbench.core.errors import UsageError


@pytest.fixture
def npz(tmp_path, monkeypatch):
    """Eight nodes in a ring, one of them isolated, with a self-loop and a parallel edge."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    path = tmp_path / "ring.npz"
    np.savez(
        path,
        num_nodes=8,
        rows="targets",
        indptr=np.array([0, 1, 2, 3, 4, 5, 6, 9, 9]),
        indices=np.array([1, 2, 3, 4, 5, 6, 6, 0, 0], dtype=np.int32),
        features=np.ones((8, 3), dtype=np.float16),
        labels=np.array([0, 1, 0, 1, 0, 1, 0, -1], dtype=np.int16),
        train_idx=np.arange(5),
        val_idx=np.array([5]),
        test_idx=np.array([6, 7]),
    )
    return path


def test_row_has_the_graph_sizes_and_threads_are_set(launch, npz):
    outcome = launch("graphed", datasets=(str(npz),), options=("threads=1", "batch_size=2"))
    row = by_system(outcome)["graphed"]
    assert (row["status"], row["reason"]) == ("ok", "")
    assert (row["nodes"], row["edges"], row["train_nodes"], row["feature_dim"]) == (8, 9, 5, 3)
    assert (row["epoch_batches"], row["threads"]) == (3, 1)


def test_broken_file_is_a_row_with_exit_code_6(launch, npz, observer):
    npz.write_bytes(npz.read_bytes()[:-200])
    outcome = launch("graphed", datasets=(str(npz),))
    row = by_system(outcome)["graphed"]
    assert (row["status"], outcome.exit_code) == ("missing_data", 6)
    assert "ring.npz" in row["reason"]
    assert observer.notes


def test_flipped_bit_in_the_store_is_a_row_with_exit_code_6(launch, npz):
    launch("graphed", datasets=(str(npz),))
    features = next(Path(os.environ["GNNBENCH_DATA"]).rglob("features.bin"))
    damaged = bytearray(features.read_bytes())
    damaged[5] ^= 1
    features.write_bytes(damaged)
    outcome = launch("graphed", datasets=(str(npz),))
    row = by_system(outcome)["graphed"]
    assert (row["status"], outcome.exit_code) == ("missing_data", 6)
    assert "features.bin changed" in row["reason"]


def test_unwritable_store_is_a_usage_error(launch, npz, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "file" / "store"))
    with pytest.raises(UsageError) as caught:
        launch("graphed", datasets=(str(npz),))
    assert "\n" not in str(caught.value)
