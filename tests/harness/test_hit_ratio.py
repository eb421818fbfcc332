"""What an epoch's hit ratio is made of."""

import pytest

from gnnbench.harness.reduce.cell_metrics import hit_ratio


@pytest.mark.parametrize(
    ("rows", "ratio"),
    [
        ({"host": 4}, None),
        ({"cache": 0}, None),
        ({"cache": 1, "host": 3}, 0.25),
        ({"cache": 1, "peer": 2, "zero_copy": 1}, 0.75),  # another rank's shard is a cache's, too
    ],
)
def test_rows_of_any_ranks_cache_are_hits(rows, ratio):
    epoch = {("features", "feature_bytes", where): n for where, n in rows.items()}
    assert hit_ratio(epoch) == ratio
