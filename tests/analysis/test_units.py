"""Numbers as people read them."""

import pytest

from gnnbench.core.units import (
    Time,
    count,
    half_width,
    one_unit,
    plural,
    significant,
    times,
    words,
    wrapped,
)


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        ((None, None, None), ""),
        ((1.319, None, None), "1.32x"),
        ((1.319, 1.29, 1.36), "1.32x [1.29, 1.36]"),
        ((0.96, 0.0, 2898700.24), "unknown"),
        ((0.96, 0.0, 2898700.24, 2), "unknown (2 pairs)"),
        ((0.96, 0.0, 2898700.24, 1), "unknown (1 pair)"),
        ((0.5, 0.3, 0.89, 3), "0.50x [0.30, 0.89]"),
        ((0.5, 0.3, 0.91, 3), "<0.91x (3 pairs)"),
        ((10.5, 2.8, 39.0, 5), ">2.80x (5 pairs)"),
        ((10.5, 2.8, 39.0, 2), "unknown (2 pairs)"),
        ((0.5, 0.3, 1.01, 3), "unknown (3 pairs)"),
        ((0.0022, 0.00171, 0.0031), "0.0022x [0.0017, 0.0031]"),
        ((0.038, 0.03, 0.064), "0.038x [0.03, 0.06]"),
        ((0.0, 0.0, 0.0), "0.00x [0.00, 0.00]"),
    ],
)
def test_ratios(ratio, shown):
    assert times(*ratio) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(None, None, ""), (0.95, 1.05, "5.0%"), (0.0, 2.0, "100%"), (-0.9, 2.545, "-")],
)
def test_half_widths(low, high, shown):
    assert half_width({"judged_s": 1.0, "ci_low_s": low, "ci_high_s": high}) == shown


def test_counts_are_shown_with_a_suffix():
    read = {None: "", 0: "0", 999: "999", 1000: "1.0 k", 196_615: "197 k", 2_449_029: "2.4 M",
            99_950_000: "100.0 M", 1_615_685_872: "1.6 G"}  # fmt: skip
    assert {n: count(n) for n in read} == read


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.00701, 0.000546], ["7.01 ms", "0.546 ms"]),
        ([1.39, 0.467, 0.0], ["1.39 s", "0.467 s", "0 s"]),
        ([3.0, 4e-5, 5e-5, 6e-5], ["3000000 us", "40.0 us", "50.0 us", "60.0 us"]),
        ([], []),
    ],
)
def test_times_of_a_column_have_one_unit(values, expected):
    assert one_unit([Time(value) for value in values]) == expected


def test_time_has_significant_digits_and_a_note():
    texts = one_unit([Time(0.6672, digits=2), Time(1.409, note="(0.8)")])
    assert texts == ["0.67 s", "1.41 s (0.8)"]


def test_digits_that_count_without_an_exponent():
    read = {None: "", 0: "0", 3138.4: "3140", 57123.0: "57100", 31.44: "31.4", 9.999: "10.0",
            0.00314159: "0.00314", 1e-6: "0.00000100"}  # fmt: skip
    assert {n: significant(n) for n in read} == read


def test_one_is_singular():
    assert [plural(n, "pair") for n in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]
    assert [plural(n, "batch") for n in (1, 4)] == ["1 batch", "4 batches"]


def test_sentences_are_wrapped_between_words_and_never_within_an_interval():
    sentence = "fastest: b, 1.50x [1.40, 1.60] as fast as results/a-long/path/of/a/run"
    assert wrapped(sentence, 25) == (
        "fastest: b, 1.50x\n  [1.40, 1.60] as fast as\n  results/a-long/path/of/a/run"
    )
    assert wrapped("short", 25) == "short"
    assert words("a 72.25 % [71.2 %, 74.1 %]") == ["a", "72.25 %", "[71.2 %, 74.1 %]"]
