"""Every store and composition over hundreds of batches: bits in every step, rows by path."""

import pytest
from stores import STORES, shapes, stress


@pytest.mark.parametrize(("name", "dtype", "width"), shapes(STORES))
def test_rows_and_counts_are_right_for_hundreds_of_batches(name, dtype, width, one_thread):
    stress(STORES[name], dtype, width)
