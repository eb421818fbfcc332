"""Edge weights beyond float32: scaled by a power of two, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.edge_arrays import fitted
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.store.reader import open_graph


@pytest.mark.parametrize(
    "weights", [[1e-60, 2e-60, 3e-60], [1e300, 2e300, 3e300], [1e-40, 2e-40, 3e-40]]
)
def test_ratios_are_kept(tmp_path: Path, weights: list[float]) -> None:
    np.savez(tmp_path / "g.npz", src=[0, 1, 2], dst=[0, 0, 0], weights=np.array(weights))
    graph = open_graph(import_source(tmp_path / "g.npz", "g", root=tmp_path))
    stored = np.asarray(graph.weights, np.float64)
    assert np.allclose(stored / stored[0], [1, 2, 3], rtol=1e-6)
    assert any("multiplied by 2^" in note for note in graph.meta["notes"])


def test_what_float32_has_is_not_changed() -> None:
    weights = np.array([1e-30, 0.0, 1e30, -1.0])
    same, power = fitted(weights)
    assert same is weights and power == 0


@pytest.mark.parametrize("weights", [[1e-60, 1.0, 2.0], [1.0, 1e300, 2.0], [0.0, 1e-60, 2.0]])
def test_a_range_beyond_float32_is_refused(tmp_path: Path, weights: list[float]) -> None:
    np.savez(tmp_path / "g.npz", src=[0, 1, 2], dst=[1, 2, 0], weights=np.array(weights))
    with pytest.raises(DataError, match=r"g\.npz.* edge weights from 1e-60 to 2|from 1 to 1e\+300"):
        import_source(tmp_path / "g.npz", "g", root=tmp_path)
