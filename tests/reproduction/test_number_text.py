"""Numbers of claims as text, with expected texts written by hand."""

import pytest
from written_runs import cached, cell, claim, epochs, metric, timed, verdict_of, write_run

from gnnbench.reproduction.number_text import expected, measured, number, printed

HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.714, "%", "71.4 %"),
        (0.0198, "points", "1.98 points"),
        (0.01, "points", "1 point"),
        (2.034, "x", "2.03x"),
        (1.4e9, "B", "1.4 GB"),
        (209715200, "iB", "200 MiB"),  # 200 * 2^20
        (1503238554, "iB", "1.4 GiB"),  # 1.4 * 2^30
        (8.0, "requests", "8 requests"),
        (1.0, "requests", "1 request"),
        (1.0, "passes", "1 pass"),
        (1.0, "launches", "1 launch"),
        (1.0, "s", "1 s"),
        (1.0, "MiB", "1 MiB"),
        (0.0, "cannot|trains", "cannot"),
        (1.0, "cannot|trains", "trains"),
        (1711048.3, "", "1,711,048"),
        (float("nan"), "%", "?"),
    ],
)
def test_number_has_its_unit(value, unit, shown):
    assert number(value, unit) == shown


@pytest.mark.parametrize(
    ("bounds", "unit", "shown"),
    [
        ({"least": 1.0}, "x", "at least 1x"),
        ({"least": 1.001}, "x", "above 1x"),
        ({"most": 0.999}, "x", "at most 0.999x"),
        ({"most": 0.9999}, "x", "below 1x"),
        ({"least": 1.05}, "x", "at least 1.05x"),
        ({"least": 0.12341}, "%", "above 12.34 %"),
        ({"least": -0.02, "most": 0.02}, "%", "at least -2 %, at most 2 %"),
        ({"least": 524288.0}, "rows", "at least 524288 rows"),
    ],
)
def test_bound_that_is_printed_as_another_number_is_above_or_below_it(bounds, unit, shown):
    statement = claim(number=None, tolerance=None, kind="bound", unit=unit, **bounds)
    assert expected(statement, statement.claim_points()[0]) == shown == printed(statement)


def test_difference_of_shares_is_in_points(tmp_path):
    """Hits of 50 and 20 % differ by 30 points; the sizes of both intervals of 2.48 are added."""
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    cells = [cached("a", "degree", 0.1), cached("b", "random", 0.1)]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", *low)])
    difference = claim(
        versus="tsota features.policy=random", by="difference", number=None, tolerance=None,
        kind="bound", least=-0.01,
    )  # fmt: skip
    judged = verdict_of(difference, folder)
    assert (printed(difference), measured(judged)) == (
        "at least -1 points", "30 [25.03, 34.97] points"
    )  # fmt: skip
    ratio = difference.model_copy(update={"by": "ratio"})
    assert printed(ratio) == "at least -1 %"


def several(tmp_path, *hits, **more):
    """The verdict on a range by a cell for each of the numbers of hits, in three equal epochs."""
    cells = [cached(f"c{n}", "degree", 0.1, dataset=f"g{n}") for n, _ in enumerate(hits)]
    served = [
        e for n, h in enumerate(hits) for e in epochs(f"c{n}", *[{"cache": h, "host": 100 - h}] * 3)
    ]
    return verdict_of(claim(**more), write_run(tmp_path / "run", cells, served))


def test_range_of_numbers_has_one_unit(tmp_path):
    assert measured(several(tmp_path, 48, 50, 52)) == "48 to 52 % (3 numbers)"


def test_equal_numbers_are_printed_once(tmp_path):
    assert measured(several(tmp_path, 50, 50)) == "50 % (2 numbers)"


def test_range_keeps_units_that_differ(tmp_path):
    sizes = claim(number=(209715200, 1503238554), kind="range", unit="iB")
    assert printed(sizes) == "200 MiB to 1.4 GiB"
    assert printed(claim(number=(0.9, 0.99), kind="range")) == "90 to 99 %"
    assert printed(timed()) == "2x to 3x"


def test_two_numbers_have_their_intervals_and_machines_are_counted(one):
    """Student's interval of 49, 50 and 51 % is 2.484 wide on each side."""
    runs = [one(HALF, name="a"), one(HALF[:2] * 2, name="b", machine="there")]
    second = [{"cache": n, "host": 100 - n} for n in (52, 52, 52)]
    third = one(second, name="c", machine="elsewhere")
    assert measured(verdict_of(claim(), runs[0], third)) == "50 [47.52, 52.48] %, 52 %"
    assert measured(verdict_of(claim(), *runs, third)).endswith("(3 numbers on 3 machines)")


def test_words_are_listed(tmp_path):
    cells = [
        cell("ref", "baseline", {"sampler": {"name": "hop-by-hop"}}, reference_id="ref"),
        cell("a", "baseline", {"sampler": {"name": "x"}}),
        cell("b", "baseline", {"sampler": {"name": "x"}}, work_class="equivalent", seed=1),
    ]
    folder = write_run(tmp_path / "run", cells, metrics=[metric("a", "order", "x", 1.0)])
    same = claim(
        measure="same_edges", of="baseline sampler=x", number=1.0, tolerance=0.0,
        unit="others|the same",
    )  # fmt: skip
    judged = verdict_of(same, folder)
    assert (printed(same), measured(judged)) == ("the same", "others, the same (2 numbers)")
    assert (judged.verdict, judged.reason) == ("refuted", "")
