"""The hit ratio of an epoch."""

import pytest

from gnnbench.harness.reduce.cell_metrics import hit_ratio


@pytest.mark.parametrize(
    ("rows", "ratio"),
    [
        ({"host": 4}, None),
        ({"cache": 0}, None),
        ({"cache": 1, "host": 3}, 0.25),
        ({"cache": 1, "peer": 2, "zero_copy": 1}, 0.75),  # rows of another rank's shard are hits
    ],
)
def test_hit_ratio_counts_rows_of_any_ranks_cache(rows, ratio):
    epoch = {("features", "feature_bytes", where): n for where, n in rows.items()}
    assert hit_ratio(epoch) == ratio
