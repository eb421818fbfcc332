"""The number of rows that fit into the memory left for a cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.features.policies import size
from gnnbench.features.policies.size import MARGIN_BYTES, fitting_rows

GIB = 1 << 30


def test_fitting_rows_are_memory_minus_peak_and_margin():
    # 16 GiB minus a peak of 4, minus 0.5 for larger batches and a margin of 0.5: 11.
    assert fitting_rows(10**9, 512, 16 * GIB, 4 * GIB) == 11 * GIB // 512
    assert fitting_rows(10**9, 512, 16 * GIB, 4 * GIB, limit=3 * GIB) == 3 * GIB // 512
    assert fitting_rows(10**9, 512, 16 * GIB, 4 * GIB, limit=12 * GIB) == 11 * GIB // 512
    assert fitting_rows(1000, 512, 16 * GIB, 4 * GIB) == 1000  # the whole table
    assert fitting_rows(1000, 512, limit=1023) == 1  # whole rows
    assert fitting_rows(1000, 0, limit=1) == 1  # rows without columns


def test_no_rows_fit_without_free_memory():
    assert fitting_rows(1000, 512, 4 * GIB, 4 * GIB) == 0
    assert fitting_rows(1000, 512, MARGIN_BYTES - 1) == 0
    assert fitting_rows(1000, 512, MARGIN_BYTES + 512) == 1
    assert fitting_rows(1000, 512, limit=511) == 0


@given(
    nodes=st.integers(0, 10**10), row=st.integers(1, 10**5), room=st.integers(0, 2**40),
    peak=st.integers(0, 2**40), limit=st.none() | st.integers(0, 2**40),
)  # fmt: skip
def test_fitting_rows_are_the_largest_number_that_fits(nodes, row, room, peak, limit):
    rows = fitting_rows(nodes, row, room, peak, limit)
    margin = int(peak * size.MARGIN_SHARE) + MARGIN_BYTES

    def fits(count):
        within = limit is None or count * row <= limit
        return peak + margin + count * row <= room and within

    assert 0 <= rows <= nodes
    assert rows == 0 or fits(rows)
    assert rows == nodes or not fits(rows + 1)


def test_fitting_rows_needs_memory_or_a_limit():
    with pytest.raises(ValueError, match="room or a limit"):
        fitting_rows(10, 4)
