"""The verdict of several numbers, made by hand."""

from dataclasses import replace

from written_runs import claim, timed, verdict_of

from gnnbench.reproduction.combine import combined_verdict
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.interval import judge_interval
from gnnbench.reproduction.text import remarks, to_json
from gnnbench.reproduction.verdict import REFUTED
from gnnbench.statistics.estimates import Estimate

HALF = [{"cache": 50, "host": 50}, {"cache": 51, "host": 49}, {"cache": 49, "host": 51}]


def finding(statement, value, low, high, point=0):
    """A number of ``statement`` with the verdict that it gives alone."""
    estimate = Estimate(value, low, high, 5)
    expected = statement.claim_points()[point].expected(statement.kind)
    verdict, reason = judge_interval(estimate, expected, statement.shape_bounds)
    return Finding(f"{value}", estimate, expected, verdict, reason, point_index=point)


def rivals(**more):
    """Up to 4.2 times as fast as two rivals, a size that need not carry over."""
    points = [{}, {"versus": "tsota features.policy=random"}]
    return timed(kind="upto", number=4.2, tolerance=None, port="S", points=points, **more)


def test_order_of_upto_fails_if_one_rival_is_always_faster():
    both = rivals()
    ahead, behind = finding(both, 1.4, 1.3, 1.5, 1), finding(both, 0.75, 0.7, 0.8, 0)
    assert combined_verdict(both, [ahead])[0] == "holds in shape"
    verdict, reason = combined_verdict(both, [ahead, behind])
    assert verdict == REFUTED and "0.75x" in reason
    mixed = finding(both, 1.2, 1.1, 1.3, 0)
    assert combined_verdict(both, [ahead, behind, mixed])[0] == "holds in shape"


def test_plainest_contradiction_is_named():
    order = timed(kind="order", number=None, least=1.0)
    near, far = finding(order, 0.95, 0.94, 0.96), finding(order, 0.4, 0.3, 0.5)
    for findings in ([near, far], [far, near]):
        assert combined_verdict(order, findings)[1].startswith("0.4")


def test_faster_rival_is_the_doubt_of_an_absolute_size(one):
    """Where a size depends on hardware, too."""
    size = claim(number=0.9, port="S", faster_rival=True)
    assert size.is_absolute_size
    judged = verdict_of(size, one(HALF))
    assert judged.verdict == "not reproduced" and "The rival here is faster" in judged.reason


def test_mean_counts_a_cell_once(one):
    """Exact numbers of two machines are the same number."""
    mean = claim(kind="mean", number=0.5, tolerance=0.05)
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    before, after = one(low, name="a"), one(HALF, name="b", machine="there")
    judged = verdict_of(mean, before, after)
    assert judged.verdict == "holds" and judged.reason.startswith("mean of 1 number")


def test_numbers_outside_are_not_called_refuted(two):
    judged = verdict_of(timed(), two(0.5, 0.4, 0.6))
    assert judged.verdict == "refuted"
    (number,) = to_json([judged])[0]["numbers"]
    assert number["finding"] == "outside"
    explained = remarks([replace(judged, verdict="not reproduced")])
    assert any(line.startswith("not reproduced: the whole interval") for line in explained)
    assert not any(line.startswith("not reproduced") for line in remarks([judged]))
