"""Which settings count as dead, on rows and intervals made by hand."""

import json

import pytest

from gnnbench.measure.stats import Estimate
from gnnbench.results import metrics as m
from gnnbench.runner.dead import dead_settings

MB = 1 << 20


def row(cell, label, **changed):
    recipe = json.dumps({"label": label})
    common = {"status": "ok", "system": "s", "env": "here", "until": "compute", "digest": "d"}
    return {"id": cell, "recipe": recipe, **common, "sampled_edges": 100, "batches": 4, **changed}


def measured(cell, low, high, rss=300 * MB, stage=m.EPOCH):
    middle = (low + high) / 2
    return [
        m.metric(cell, stage, m.SPEEDUP, Estimate(middle, low, high, 3)),
        m.metric(cell, m.EPOCH, m.PEAK_RSS, float(rss)),
    ]


def dead(a, b, numbers):
    return list(dead_settings([a, b], numbers, {"a": "ref", "b": "ref"}))


def test_a_setting_that_moves_nothing_is_dead():
    a, b = row("a", 1), row("b", 2)
    found = dead(a, b, measured("a", 0.98, 1.03) + measured("b", 0.99, 1.04))
    assert [r["id"] for r, _ in found] == ["b"]
    assert found[0][1].startswith("setting label (1 or 2) changed nothing")


@pytest.mark.parametrize(
    ("one", "other", "is_dead"),
    [
        ((0.99, 1.01), (1.90, 2.10), False),  # twice as fast
        ((0.99, 1.01), (1.05, 1.07), True),  # within 5 %
        ((0.99, 1.00), (1.06, 1.08), False),  # beyond them
        ((0.60, 1.60), (0.80, 1.80), True),  # intervals that a busy machine widened
        ((0.60, 1.60), (1.50, 2.60), False),  # twice as fast on one
    ],
)
def test_times_are_compared_by_their_intervals(one, other, is_dead):
    found = dead(row("a", 1), row("b", 2), measured("a", *one) + measured("b", *other))
    assert bool(found) == is_dead


def test_the_noise_floor_counts_where_it_is_wider():
    a, b = row("a", 1, noise_floor=0.2), row("b", 2)
    assert dead(a, b, measured("a", 0.99, 1.00) + measured("b", 1.10, 1.15))


@pytest.mark.parametrize(
    "changed",
    [{"sampled_edges": 50}, {"batches": 5}, {"digest": "e"}, {"until": "sample"},
     {"system": "other"}, {"env": "there"}, {"status": "incorrect"}],
)  # fmt: skip
def test_other_work_is_not_compared(changed):
    numbers = measured("a", 0.98, 1.03) + measured("b", 0.99, 1.04)
    assert not dead(row("a", 1), row("b", 2, **changed), numbers)


@pytest.mark.parametrize(("rss", "is_dead"), [(310 * MB, True), (330 * MB, False)])
def test_memory_within_5_percent_is_the_same(rss, is_dead):
    numbers = measured("a", 0.98, 1.03) + measured("b", 0.99, 1.04, rss=rss)
    assert bool(dead(row("a", 1), row("b", 2), numbers)) == is_dead


def test_without_intervals_nothing_is_said():
    numbers = measured("a", float("nan"), float("nan")) + measured("b", 0.99, 1.04)
    assert not dead(row("a", 1), row("b", 2), numbers)
