"""Each verdict by rows written out, and what may not lead to one."""

import math
from itertools import permutations

import pytest
from written_runs import cached, cell, claim, epochs, metric, timed, verdict_of, write_run

from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.combine import simultaneous
from gnnbench.reproduction.findings import pooled
from gnnbench.statistics.estimates import Estimate

HALF = [{"cache": 50, "host": 50}, {"cache": 51, "host": 49}, {"cache": 49, "host": 51}]


def test_a_number_whose_interval_lies_within_holds(one):
    found = verdict_of(claim(), one(HALF))
    assert (found.verdict, found.reason) == ("holds", "")
    (finding,) = found.findings
    estimate = finding.estimate
    # 4.303 is Student's t of two degrees of freedom; the standard deviation is 0.01.
    assert estimate.value == pytest.approx(0.5) and estimate.n == 3
    assert estimate.high - estimate.value == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=1e-3)
    assert finding.expected == pytest.approx((0.45, 0.55))


def test_one_whose_interval_lies_outside_is_refuted(one):
    assert verdict_of(claim(number=0.3), one(HALF)).verdict == "refuted"


def test_one_whose_interval_reaches_across_a_bound_is_unclear(one):
    wide = [{"cache": 40, "host": 60}, {"cache": 60, "host": 40}]
    found = verdict_of(claim(), one(wide))
    assert found.verdict == "unclear" and "contains a bound" in found.reason


def test_a_single_epoch_has_no_interval(one):
    found = verdict_of(claim(), one(HALF[:1]))
    assert found.verdict == "unclear" and "no interval" in found.reason


def test_an_epoch_that_was_run_twice_counts_once(tmp_path):
    again = [*epochs("a", HALF[0]), *epochs("a", HALF[0], life=1)]
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], again)
    assert verdict_of(claim(), folder).findings[0].estimate.n == 1


@pytest.mark.parametrize("mark", [{"warmup": True}, {"void": True}, {"ok": False}])
def test_epochs_that_do_not_count_are_left_out(tmp_path, mark):
    (bad,) = epochs("a", {"cache": 1, "host": 999}, life=7, **{"epoch": 7, **mark})
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], [*epochs("a", *HALF), bad])
    assert verdict_of(claim(), folder).verdict == "holds"


@pytest.mark.parametrize(
    "row",
    [
        {"doubtful": "other programs used 1.0 cores meanwhile"},
        {"status": "unstable", "reason": "the interval is still +-60%"},
    ],
)
def test_a_time_of_a_doubtful_row_is_unclear_and_a_count_is_not(tmp_path, row):
    times = {"sample_time_s": 0.6, "memory_io_time_s": 0.3}
    samples = [s for life in (0, 1) for s in epochs("a", *HALF, life=life, **times)]
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1, **row)], samples)
    found = verdict_of(claim(measure="sample_share", number=0.6, tolerance=0.1), folder)
    assert found.verdict == "unclear" and (row.get("doubtful") or row["reason"]) in found.reason
    assert verdict_of(claim(), folder).verdict == "holds"


def test_a_twin_cannot_tell_of_the_graph(one):
    good, bad = claim(of_graph=True), claim(of_graph=True, number=0.3)
    twin = one(HALF)
    assert verdict_of(good, twin).verdict == "holds in shape"
    assert "fitted" not in verdict_of(good, twin).reason
    fitted = claim(of_graph=True, fitted=["papers100m"])
    assert "fitted to this number" in verdict_of(fitted, twin).reason
    assert verdict_of(bad, twin).verdict == "unclear"
    real = one(HALF, name="real", dataset="papers100m")
    assert verdict_of(good, real).verdict == "holds"
    assert verdict_of(bad, real).verdict == "refuted"


def test_without_a_result_the_command_is_told(one):
    found = verdict_of(claim(rows={"dataset": "twitter"}), one(HALF))
    assert found.verdict == "not measured"
    assert "'gnnbench run cache-ratio --profile laptop'" in found.reason
    assert verdict_of(claim(nodes=1001), one(HALF, name="small")).verdict == "not measured"
    other = one(HALF, name="other", experiment="breakdown")
    assert verdict_of(claim(), other).verdict == "not measured"
    assert "on a GPU" in verdict_of(claim(device="cuda"), one(HALF, name="cpu")).reason


def test_a_cell_that_failed_tells_why(one):
    found = verdict_of(claim(), one([], status="oom_host", reason="the host's memory is short"))
    assert found.verdict == "not measured" and "the host's memory is short" in found.reason


def test_what_is_not_judged_says_why(one):
    no_measure = {"measure": None, "of": None, "number": None, "tolerance": None, "runs": None}
    folder = one(HALF)
    for verdict in ("not checkable here", "ill-posed"):
        found = verdict_of(claim(**no_measure, verdict=verdict, because="so"), folder)
        assert (found.verdict, found.reason) == (verdict, "so")
    found = verdict_of(claim(**no_measure, lacks="not built"), folder)
    assert (found.verdict, found.reason) == ("not measured", "not built")


def test_a_ratio_of_times_within_holds_and_of_right_order_holds_in_shape(two):
    assert verdict_of(timed(), two(2.5, 2.2, 2.8)).verdict == "holds"
    assert verdict_of(timed(), two(1.4, 1.3, 1.5, name="small")).verdict == "holds in shape"
    assert verdict_of(timed(), two(5.0, 4.5, 5.5, name="large")).verdict == "holds in shape"
    assert verdict_of(timed(), two(0.8, 0.7, 0.9, name="slower")).verdict == "refuted"
    assert verdict_of(timed(), two(1.0, 0.99, 1.01, name="same")).verdict == "unclear"
    assert verdict_of(timed(port="P"), two(1.4, 1.3, 1.5, name="p")).verdict == "refuted"


def test_an_order_needs_the_margin_of_the_suite(two):
    order = timed(kind="order", number=None, least=1.0)
    assert verdict_of(order, two(1.2, 1.011, 1.4)).verdict == "holds"
    assert verdict_of(order, two(1.2, 1.005, 1.4, name="near")).verdict == "unclear"
    assert verdict_of(order, two(0.998, 0.992, 0.995, name="hardly")).verdict == "unclear"
    assert verdict_of(order, two(0.9, 0.8, 0.98, name="slower")).verdict == "refuted"


def test_the_other_way_round_the_ratio_is_turned(two):
    turned = timed(
        of="tsota features.policy=presc#1", versus="tsota features.policy=degree",
        number=0.4, tolerance=0.1, kind="value",
    )  # fmt: skip
    found = verdict_of(turned, two(2.5, 2.0, 3.2))
    estimate = found.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.4, 1 / 3.2, 0.5))
    assert found.verdict == "holds"


@pytest.mark.parametrize("turned", [False, True])
def test_a_ratio_of_one_pair_has_no_interval(two, turned):
    couple = ["tsota features.policy=degree", "tsota features.policy=presc#1"]
    of, beside = couple[::-1] if turned else couple
    folder = two(2.5, None, None, pairs=1)
    for asked in (
        timed(of=of, versus=beside),
        timed(of=of, versus=beside, kind="order", number=None, least=1.0),
    ):
        found = verdict_of(asked, folder)
        assert found.verdict == "unclear" and "fewer than 3 pairs" in found.reason


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"pairs": 2}, "fewer than 3 pairs"),
        ({"doubtful": "the GPU was throttled"}, "throttled"),
        ({"work_class": "different"}, "work of the two differs"),
        ({"ratio": None, "reason": "the interval is wide", "status": "unstable"}, "is wide"),
    ],
)
def test_a_ratio_that_the_suite_would_not_call_is_unclear(two, row, why):
    values = {"ratio": 2.5, "low": 2.2, "high": 2.8}
    if "ratio" in row:
        values = dict.fromkeys(values)
    found = verdict_of(timed(), two(**values, **{k: v for k, v in row.items() if k != "ratio"}))
    assert found.verdict == "unclear" and why in found.reason


def test_runs_of_a_machine_are_pooled(two):
    """Repeating a run until a claim holds does not help; other versions are not pooled."""
    far = two(1.0, 0.9, 1.1, pairs=10, name="far")
    near = two(2.5, 2.4, 2.6, pairs=5, name="near")
    assert verdict_of(timed(), near).verdict == "holds"
    both = verdict_of(timed(), far, near)
    (finding,) = both.findings
    assert both.verdict == "unclear" and finding.estimate.n == 15
    # The weighted mean of the logarithms; both values are in the interval, because they disagree.
    assert finding.estimate.value == pytest.approx(2.5 ** (1 / 3))
    assert finding.estimate.low <= 1.0 and finding.estimate.high >= 2.5
    newer = two(2.5, 2.4, 2.6, pairs=5, name="y", versions="dgl 9.9")
    older = two(1.0, 0.9, 1.1, pairs=10, name="x", versions="dgl 1.1")
    assert verdict_of(timed(), older, newer).findings[0].estimate.n == 5


def test_pooled_interval_is_that_of_an_average_run_and_has_every_value():
    """Two runs do not show how much runs differ, so that pooling does not narrow an interval."""
    one, other = Estimate(2.0, 1.9, 2.0**2 / 1.9, 5), Estimate(2.0, 1.8, 2.0**2 / 1.8, 15)
    both = pooled([one, other])
    assert (both.value, both.n) == (pytest.approx(2.0), 20)
    half = math.sqrt(math.log(2 / 1.9) ** 2 / 4 + math.log(2 / 1.8) ** 2 * 3 / 4)
    assert both.high == pytest.approx(2 * math.exp(half))
    third = Estimate(4.0, 3.9, 4.0**2 / 3.9, 5)
    orders = {pooled(order) for order in permutations([one, other, third])}
    assert {(round(e.low, 9), round(e.high, 9)) for e in orders} == {
        (round(min(e.low for e in orders), 9), round(max(e.high for e in orders), 9))
    }
    assert all(e.low < 2 and e.high > 4 - 1e-9 for e in orders)


def test_unreliable_or_newer_repeat_does_not_replace_reliable_runs(two):
    runs = [two(2.5, 2.4, 2.6, pairs=5, name=name) for name in "ac"]
    doubtful = two(9.0, 8.0, 10.0, pairs=5, name="b", doubtful="the machine was busy")
    first, second = runs
    for order in ([first, doubtful], [doubtful, first]):
        (finding,) = verdict_of(timed(), *order).findings
        assert finding.estimate.value == 2.5 and not finding.doubt
    (finding,) = verdict_of(timed(), first, doubtful, second).findings
    assert finding.estimate.n == 10  # the runs before and after the doubtful one
    (finding,) = verdict_of(timed(), doubtful).findings
    assert finding.doubt


def test_one_number_of_many_must_stand_alone():
    """t of 4 degrees at 95 % is 2.776, and 5.261 for eight numbers together."""
    wide = simultaneous(Estimate(2.0, 1.8, 2.0**2 / 1.8, 5), 8)
    factor = 5.2611 / 2.7764
    assert wide.low == pytest.approx(2 * (1.8 / 2) ** factor, rel=1e-3)
    assert simultaneous(Estimate(-1.0, -2.0, 0.0, 5), 1).low == pytest.approx(-2.0)


def test_times_that_did_not_run_beside_one_another_have_no_ratio(two):
    assert verdict_of(timed(), two(2.5, 2.2, 2.8, reference_id="c")).verdict == "not measured"


def test_a_couple_is_judged_by_its_own_ratio(tmp_path):
    couple = {
        "pair": "d-p", "first": "x", "second": "y", "work_class": "identical", "pairs": 5,
        "judged": "memory_io_time_s", "ratio": 2.5, "ratio_ci_low": 2.2, "ratio_ci_high": 2.8,
    }  # fmt: skip
    cells = [cached("d", "degree", 0.1), cached("p", "presc#1", 0.1)]
    assert verdict_of(timed(), write_run(tmp_path / "run", cells, ratios=[couple])).verdict == (
        "holds"
    )


def test_the_time_of_a_phase_is_the_metric_s(tmp_path):
    cells = [
        cached("ref", "degree", 0.1, judged="epoch_wall_s", until="compute"),
        cached("b", "presc#1", 0.1, judged="epoch_wall_s", until="compute", ratio=9.0, pairs=5),
    ]
    told = [metric("b", "sample", "speedup", 2.5, 2.2, 2.8, n=5)]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    assert verdict_of(timed(measure="sample_time"), folder).verdict == "holds"
    assert verdict_of(timed(measure="memory_io_time"), folder).verdict == "not measured"


def test_a_refuted_ratio_is_told_beside_the_machine_s_rates(two, tmp_path):
    slow = timed(id="zero-copy/fig0.a1", cause="rates")
    link = papers()["zero-copy"].rates.link
    found = verdict_of(slow, two(0.8, 0.7, 0.9))
    assert found.verdict == "refuted"
    assert "this link was not measured" in found.reason
    copies = write_run(
        tmp_path / "copies", [cell("g", "baseline", device="cuda")],
        metrics=[metric("g", "features", "copy_rate", 2 * link, where="zero_copy")],
    )  # fmt: skip
    found = verdict_of(slow, tmp_path / "run", copies)
    assert found.reason.endswith(
        "this link is 2.0 times as fast as the paper's (RTX 3090: 25.8 GB/s)"
    )


def test_memory_is_the_ceiling_of_a_roofline(two, tmp_path):
    ceiling = {
        "kind": "ceiling", "device": "cuda", "name": "read", "level": "memory", "value": 938e9 * 4,
        "unit": "B/s", "n": 5,
    }  # fmt: skip
    folder = write_run(tmp_path / "roof", [cell("g", "baseline")], roofline=[ceiling])
    found = verdict_of(timed(id="fastgl/fig0.a1", cause="rates"), two(0.8, 0.7, 0.9), folder)
    assert "this memory is 4.0 times as fast as the paper's" in found.reason


def test_of_up_to_the_best_counts_and_of_a_range_the_worst(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="twitter~twin")]
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", *low)])
    assert verdict_of(claim(kind="upto", tolerance=0.1), folder).verdict == "holds"
    assert verdict_of(claim(kind="upto", number=0.9), folder).verdict == "refuted"
    assert verdict_of(claim(kind="range"), folder).verdict == "refuted"
    # The mean of both is 35 %: neither number lies near it.
    assert verdict_of(claim(kind="mean", number=0.35), folder).verdict == "holds"
    assert verdict_of(claim(kind="mean", number=0.5), folder).verdict == "refuted"


@pytest.mark.parametrize(
    ("machines", "versions", "verdict"),
    [
        (("m1", "m1"), ("torch 2.1, python 3.11", "torch 2.1, python 3.12"), "holds"),
        (("m1", "m2"), ("torch 2.1", "torch 2.1"), "holds in shape"),
        (("m1", "m1"), ("torch 2.1", "torch 2.2"), "holds in shape"),
        (("m1", "m1"), ("dgl 1.1", "pyg 2.2"), "holds"),
    ],
)
def test_a_mean_of_times_pools_one_machine_and_equal_versions(
    machines, versions, verdict, tmp_path
):
    folders = []
    # 1.6 and 2.4 have the mean 2.0, which neither is near.
    for name, ratio, machine, one in zip("ab", (1.6, 2.4), machines, versions, strict=True):
        first = cached(f"ref-{name}", "degree", 0.1, dataset=name, work_class="")
        told = {"ratio": ratio, "ratio_ci_low": ratio - 0.01, "ratio_ci_high": ratio + 0.01}
        told |= {"pairs": 5, "versions": one, "dataset": name, "reference_id": f"ref-{name}"}
        cells = [first | {"reference_id": f"ref-{name}"}, cached(name, "presc#1", 0.1, **told)]
        folders.append(write_run(tmp_path / name, cells, machine=machine))
    found = verdict_of(timed(kind="mean", number=2.0, tolerance=0.1), *folders)
    assert (found.verdict, len(found.findings)) == (verdict, 2)


def test_a_point_that_is_unclear_may_be_the_one_that_reaches_up_to_a_number(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="x")]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", HALF[0])])
    assert verdict_of(claim(kind="upto", number=0.9), folder).verdict == "unclear"


def test_a_point_that_was_not_measured_may_be_the_one_that_reaches_up_to_a_number(tmp_path):
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    there = {"of": "tsota features.policy=degree features.ratio=0.1"}
    both = [there, {"of": "tsota features.policy=optimal"}]
    assert verdict_of(claim(kind="upto", number=0.9, points=[there]), folder).verdict == "refuted"
    found = verdict_of(claim(kind="upto", number=0.9, points=both), folder)
    assert found.verdict == "unclear" and found.reason.startswith("1 of 2 points measured")
    assert verdict_of(claim(kind="upto", tolerance=0.1, points=both), folder).verdict == "holds"
    # Of a value one point is enough.
    assert verdict_of(claim(number=0.9, points=both), folder).verdict == "refuted"


def test_a_size_of_the_papers_machine_is_not_refuted_on_another(tmp_path):
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    found = verdict_of(claim(number=0.9, port="S"), folder)
    assert (
        found.verdict == "unclear"
        and "absolute sizes depend on the paper's hardware" in found.reason
    )


def test_cells_are_held_against_those_alike_in_all_that_is_not_named(tmp_path):
    policies = [
        ("degree", 0.1, 50),
        ("degree", 0.2, 60),
        ("optimal", 0.1, 70),
        ("optimal", 0.2, 80),
    ]
    cells, samples = [], []
    for n, (policy, ratio, hits) in enumerate(policies):
        cells.append(cached(str(n), policy, ratio))
        served = [{"cache": hits + d, "host": 100 - hits - d} for d in (0, 1, -1)]
        samples += epochs(str(n), *served)
    folder = write_run(tmp_path / "run", cells, samples)
    less = claim(
        of="tsota features.policy=optimal", versus="tsota features.policy=degree", by="difference",
        number=0.2, tolerance=0.06, kind="value",
    )  # fmt: skip
    found = verdict_of(less, folder)
    assert [f.estimate.value for f in found.findings] == pytest.approx([0.2, 0.2])
    # End against end: twice the half width of one.
    assert found.findings[0].estimate.high == pytest.approx(
        0.2 + 2 * 4.303 * 0.01 / 3**0.5, rel=1e-3
    )
    assert found.verdict == "holds"
    rises = claim(
        of="tsota features.policy=degree", along="tsota.features.ratio", by="difference",
        kind="order", number=None, least=0.0,
    )  # fmt: skip
    (step,) = verdict_of(rises, folder).findings
    assert step.estimate.value == pytest.approx(0.1) and step.verdict == "holds"
    falls = rises.model_copy(update={"least": None, "most": 0.0})
    assert verdict_of(falls, folder).verdict == "refuted"
