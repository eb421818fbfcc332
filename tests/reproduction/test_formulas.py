"""Formulas compared with numbers computed by hand."""

import math

import pytest

from gnnbench.reproduction.formulas import FORMULAS, access_ratio


@pytest.mark.parametrize(
    ("neighbours", "degree", "ratio"),
    [
        (5, 64, 2.42),
        (5, 256, 2.45),
        (10, 64, 2.49),
        (10, 512, 2.52),
        (15, 64, 2.52),
        (15, 512, 2.54),
    ],
)
def test_access_ratio_with_fastgls_bandwidths(neighbours, degree, ratio):
    assert access_ratio(neighbours, degree, 12e12, 938e9) == pytest.approx(ratio, abs=0.005)


def test_access_ratio_is_below_three():
    ratios = [
        access_ratio(n, d, shared, 938e9)
        for n in (1, 2, 10, 1000) for d in (1, 8, 512) for shared in (938e9, 12e12, math.inf)
    ]  # fmt: skip
    assert max(ratios) < 3


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("requests", (1, 120, 0), 8), ("requests", (1, 120, 1), 5), ("requests", (7, 128, 0), 4),
        ("updates", (106, 151, 6), 2756), ("updates", (131, 151, 8), 2489),
        ("passes", (1,), 3), ("passes", (0,), 1), ("processors", (768, 1536, 32), 16),
        ("table_mib", (2**18, 4), 4), ("host_rate", (10, 1), 30), ("product", (1.5, 2, 3), 9),
        ("amdahl", (0.5, 2), 4 / 3), ("sampling_part", (1.25, 2), 0.4),
        ("sum_gap", (7, 1, 2, 3), 1), ("sum_gap", (5, 6), 1),
        ("updates_ratio", (10, 2, 5, 4, 8), 4), ("samplers", (8, 1.0, 3.0), 2),
        ("standby_wakes", (3, 0, 2.0), 1), ("standby_wakes", (3, 2, 2.0), 1),
        ("standby_wakes", (3, 3, 2.0), 0), ("standby_wakes", (3, 4, 2.0), 0),
    ],
)  # fmt: skip
def test_formulas(name, arguments, value):
    assert FORMULAS[name](*arguments) == pytest.approx(value)
