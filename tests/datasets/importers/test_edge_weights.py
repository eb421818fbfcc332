"""Range of edge weights in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.edge_arrays import fitted
from gnnbench.datasets.importers.imported import import_source


def test_weights_within_float32_are_not_changed() -> None:
    weights = np.array([1e-30, 0.0, 1e30, -1.0])
    same, power = fitted(weights)
    assert same is weights and power == 0


@pytest.mark.parametrize("weights", [[1e-60, 1.0, 2.0], [1.0, 1e300, 2.0], [0.0, 1e-60, 2.0]])
def test_range_beyond_float32_is_refused(tmp_path: Path, weights: list[float]) -> None:
    np.savez(tmp_path / "g.npz", src=[0, 1, 2], dst=[1, 2, 0], weights=np.array(weights))
    with pytest.raises(DataError, match=r"g\.npz.* edge weights from 1e-60 to 2|from 1 to 1e\+300"):
        import_source(tmp_path / "g.npz", "g", root=tmp_path)
