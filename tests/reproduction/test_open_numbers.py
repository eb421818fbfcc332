"""What an unclear claim says that it needs: a bound, pairs, a run to repeat, or processes."""

import math

import pytest
from written_runs import cached, claim, epochs, timed, verdict_of, write_run

from gnnbench.reproduction.old_words import in_current_terms
from gnnbench.reproduction.open_numbers import bounds_in
from gnnbench.statistics.estimates import Estimate

COMMAND = "gnnbench run cache-ratio --profile laptop"


@pytest.mark.parametrize(
    ("ends", "expected", "shape", "says"),
    [
        ((1.9, 2.1), (2, 3), None, "contains the bound 2x"),
        ((1.9, 3.1), (2, 3), None, "contains the bounds 2x and 3x"),
        ((0.9, 3.1), (2, 3), (1, math.inf), "contains the bounds 1x, 2x and 3x"),
        ((0.9, 1.1), (2, math.inf), (1, math.inf), "contains the bound 1x"),
        ((1.005, 1.1), (1, math.inf), None, "reaches into the margin of 1 % around the bound 1x"),
        ((0.99, 0.995), (1, math.inf), None, "reaches into the margin of 1 % around the bound 1x"),
    ],
)
def test_bounds_in_an_interval_are_named(ends, expected, shape, says):
    low, high = ends
    number = Estimate((low + high) / 2, low, high, 3)
    assert bounds_in(number, expected, shape, "x", is_time=True) == f"the interval {says}"


def test_reason_has_the_interval_and_its_bound(two):
    judged = verdict_of(timed(), two(2.2, 1.9, 2.4))
    assert judged.verdict == "unclear"
    assert judged.reason.endswith(" (2.2x [1.9x, 2.4x]): the interval contains the bound 2x")


def test_mean_has_its_interval_where_it_contains_a_bound(tmp_path):
    cells = [cached(i, "degree", 0.1, dataset=f"{i}~twin") for i in "ab"]
    wide = [{"cache": n, "host": 100 - n} for n in (40, 42, 38)]
    half = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *half), *epochs("b", *wide)])
    judged = verdict_of(claim(kind="mean", number=0.5, tolerance=0.05), folder)
    assert judged.reason == (
        "mean of 2 numbers, 45 [41.27, 48.73] %: the interval contains the bound 45 %"
    )


def test_few_pairs_say_how_many_are_needed_and_the_command(two):
    judged = verdict_of(timed(), two(2.5, 2.4, 2.6, pairs=2))
    assert judged.reason.endswith(
        f"fewer than 3 pairs of fresh processes; repeat '{COMMAND}' with -o pairs=[3] and a larger"
        " -o time_budget_s"
    )


def test_unreliable_time_has_the_command_that_repeats_it(two):
    judged = verdict_of(timed(), two(2.5, 2.4, 2.6, doubtful="a time is not steady"))
    assert judged.reason.endswith(f"a time is not steady; repeat '{COMMAND}'")


def test_setting_that_is_not_the_papers_is_not_repeated(two):
    judged = verdict_of(timed(as_printed={"batch_size": 1024}), two(2.5, 2.4, 2.6))
    assert judged.reason.endswith("batch_size is 8000, the paper has 1024")


def test_free_text_of_older_versions_has_todays_terms(two):
    old = "the interval of its wall time is still +-101% after 2 lives; quieten the machine"
    new = "the interval of its wall time is still +-101% after 2 processes; make the machine idle"
    assert in_current_terms(old) == new
    assert in_current_terms("after 1 life") == "after 1 process"
    assert in_current_terms(new) == new
    judged = verdict_of(timed(), two(2.5, 2.4, 2.6, status="unstable", reason=old))
    assert new in judged.reason and "lives" not in judged.reason
