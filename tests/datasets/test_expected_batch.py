"""Sizes of batches of prepared graphs, drawn with numpy."""

import numpy as np
import pytest

from gnnbench.core.errors import DataError
from gnnbench.core.fanouts import ALL
from gnnbench.datasets import expected_batch as module
from gnnbench.datasets.expected_batch import expected_batch
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.arrays import write_graph
from gnnbench.harness.estimate import DatasetSize


@pytest.fixture
def store(tmp_path):
    def store_graph(degrees, indices, train):
        indptr, nodes = np.cumsum([0, *degrees]), len(degrees)
        nothing = np.empty(0, np.int64)
        return write_graph(
            tmp_path / "graph", name="graph", indptr=indptr, indices=np.asarray(indices, np.int32),
            features=np.zeros((nodes, 1), np.float32), labels=np.zeros(nodes, np.int64),
            train_idx=np.asarray(train), val_idx=nothing, test_idx=nothing, num_classes=1,
        )  # fmt: skip

    return store_graph


@pytest.fixture
def stored(store):
    """Five nodes: 0 has the neighbours 1 to 4, 1 has 2 and 3, the others none; 0 and 1 train."""
    return store([4, 2, 0, 0, 0], [1, 2, 3, 4, 2, 3], train=[0, 1])


@pytest.mark.parametrize(
    ("fanouts", "seeds", "edges", "nodes"),
    [
        ((ALL,), 2, 6, 5),
        ((4,), 2, 6, 5),
        ((4, 4), 2, 12, 5),
        ((ALL,), 9, 6, 5),  # more seeds than training nodes
        ((1,), 2, 2, None),
        ((), 2, 0, 2),
    ],
)
def test_rows_up_to_the_fanout_are_taken_whole(stored, fanouts, seeds, edges, nodes):
    size = expected_batch(stored, fanouts, seeds)
    assert size.edges == edges
    if nodes is None:
        assert 2 <= size.nodes <= 4
    else:
        assert size.nodes == nodes


@pytest.mark.parametrize(
    ("array", "place", "bad"),
    [("indices", 0, 5), ("indices", 0, -1), ("train_idx", 0, 5), ("indptr", 1, 7),
     ("indptr", 1, -1), ("indptr", 2, 3)],
)  # fmt: skip
def test_damaged_graph_is_refused(stored, array, place, bad):
    meta = layout.read_meta(stored)["arrays"][array]
    values = layout.stored_array(stored, array, meta).copy()
    values[place] = bad
    values.tofile(layout.file_of(stored, array))
    with pytest.raises(DataError, match="is damaged"):
        expected_batch(stored, (ALL, ALL), 2)
    size = DatasetSize(nodes=5, edges=6, width=1, train=2, path=stored)
    assert size.batch((ALL, ALL), 2) == size._replace(path=None).batch(
        (ALL, ALL), 2
    )  # an upper bound


def test_a_part_of_a_large_hop_is_scaled_up(store, monkeypatch):
    degree, targets = 8, 64
    indices = np.arange(degree * targets) % targets
    folder = store([degree] * targets, indices, train=range(targets))
    monkeypatch.setattr(module, "MOST_EDGES", 64)
    assert expected_batch(folder, (4,), targets) == (4 * targets, targets)
    assert expected_batch(folder, (4, 4), targets).edges == pytest.approx(8 * targets, rel=0.1)
