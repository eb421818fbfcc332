"""Numbers as people read them."""

import pytest

from gnnbench.results.units import count, half_width, times


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ((None, None, None), ""),
        ((1.319, None, None), "1.32x"),
        ((1.319, 1.29, 1.36), "1.32x [1.29, 1.36]"),
        ((0.96, 0.0, 2898700.24), "0.96x [0.00, ...]"),  # two pairs may tell nothing
        ((0.5, 0.3, 5.0), "0.50x [0.30, 5.00]"),
    ],
)
def test_ratios(found, shown):
    assert times(*found) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(None, None, ""), (0.9, 1.1, "10.0%"), (-17.0, 19.0, ">1000%")],
)
def test_half_widths(low, high, shown):
    assert half_width({"judged_s": 1.0, "ci_low_s": low, "ci_high_s": high}) == shown


def test_counts_are_told_in_few_signs():
    read = {None: "", 0: "0", 999: "999", 1000: "1.0 k", 196_615: "197 k", 2_449_029: "2.4 M",
            99_950_000: "100.0 M", 1_615_685_872: "1.6 G"}  # fmt: skip
    assert {n: count(n) for n in read} == read
