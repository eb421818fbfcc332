"""Which store `best` takes, by the sizes of a table, of a graph and of a GPU's memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.features.fit import Sizes, table_or_cached_windows

GIB = 2**30


@pytest.mark.parametrize(
    ("table", "topology", "gpu", "settings"),
    [
        (1, 1, 80, {"features": "gpu"}),
        (53, 7, 80, {"features": "gpu"}),  # Papers100M
        (64, 7, 80, {"features.table": "cache", "features.table.ratio": 0.49}),  # 134 M nodes
        (64, 7, 140, {"features": "gpu"}),
        (63, 7, 80, {"features": "gpu"}),  # 70 GiB are just left
        (2000, 10, 80, {"features.table": "cache", "features.table.ratio": 0.01}),
        (4000, 10, 80, {}),
        (10, 75, 80, {}),  # the topology takes all
    ],
)
def test_the_table_is_on_the_gpu_if_it_fits(table, topology, gpu, settings):
    sizes = Sizes(table * GIB, topology * GIB, gpu * GIB)
    assert table_or_cached_windows(sizes) == settings


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(1, 10**12))
def test_what_is_on_the_gpu_leaves_the_reserve(table, topology, gpu):
    settings = table_or_cached_windows(Sizes(table, topology, gpu))
    share = 1.0 if settings == {"features": "gpu"} else settings.get("features.table.ratio", 0.0)
    assert share == 0 or share * table + topology <= gpu * 7 / 8 * (1 + 1e-9)
