"""Verdicts from rows written by hand, and evidence that must not lead to a verdict."""

import math
from itertools import permutations

import pytest
from written_runs import cached, claim, epochs, metric, timed, verdict_of, write_run

from gnnbench.reproduction.combine import simultaneous
from gnnbench.reproduction.findings import pooled
from gnnbench.statistics.estimates import Estimate

HALF = [{"cache": 50, "host": 50}, {"cache": 51, "host": 49}, {"cache": 49, "host": 51}]


def test_interval_within_the_bounds_holds(one):
    judged = verdict_of(claim(), one(HALF))
    assert (judged.verdict, judged.reason) == ("holds", "")
    (finding,) = judged.findings
    estimate = finding.estimate
    # 4.303 is Student's t of two degrees of freedom; the standard deviation is 0.01.
    assert estimate.value == pytest.approx(0.5) and estimate.n == 3
    assert estimate.high - estimate.value == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=1e-3)
    assert finding.expected == pytest.approx((0.45, 0.55))


def test_interval_outside_the_bounds_is_refuted(one):
    assert verdict_of(claim(number=0.3), one(HALF)).verdict == "refuted"


def test_interval_across_a_bound_is_unclear(one):
    wide = [{"cache": 40, "host": 60}, {"cache": 60, "host": 40}]
    judged = verdict_of(claim(), one(wide))
    assert judged.verdict == "unclear" and "contains the bounds 45 % and 55 %" in judged.reason


def test_single_epoch_has_no_interval(one):
    judged = verdict_of(claim(), one(HALF[:1]))
    assert judged.verdict == "unclear" and "no interval" in judged.reason


def test_repeated_epoch_counts_once(tmp_path):
    again = [*epochs("a", HALF[0]), *epochs("a", HALF[0], life=1)]
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], again)
    assert verdict_of(claim(), folder).findings[0].estimate.n == 1


@pytest.mark.parametrize("mark", [{"warmup": True}, {"void": True}, {"ok": False}])
def test_warm_up_void_and_incorrect_epochs_are_ignored(tmp_path, mark):
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
def test_doubtful_row_makes_times_unclear_but_not_counts(tmp_path, row):
    times = {"sample_time_s": 0.6, "memory_io_time_s": 0.3}
    samples = [s for trial in (0, 1) for s in epochs("a", *HALF, life=trial, **times)]
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1, **row)], samples)
    judged = verdict_of(claim(measure="sample_share", number=0.6, tolerance=0.1), folder)
    assert judged.verdict == "unclear" and (row.get("doubtful") or row["reason"]) in judged.reason
    assert verdict_of(claim(), folder).verdict == "holds"


def test_twin_does_not_decide_claims_about_the_graph(one):
    good, bad = claim(of_graph=True), claim(of_graph=True, number=0.3)
    twin = one(HALF)
    judged = verdict_of(good, twin)
    assert (judged.verdict, judged.reason) == ("holds on a twin", "twin of papers100m")
    fitted = claim(of_graph=True, fitted=["papers100m"])
    assert verdict_of(fitted, twin).reason == "twin of papers100m; it was fitted to this number"
    assert verdict_of(bad, twin).verdict == "not reproduced"
    real = one(HALF, name="real", dataset="papers100m")
    assert verdict_of(good, real).verdict == "holds"
    assert verdict_of(bad, real).verdict == "refuted"


def test_missing_result_names_the_command(one):
    judged = verdict_of(claim(rows={"dataset": "twitter"}), one(HALF))
    assert judged.verdict == "not measured"
    assert "'gnnbench run cache-ratio --profile laptop'" in judged.reason
    assert verdict_of(claim(nodes=1001), one(HALF, name="small")).verdict == "not measured"
    other = one(HALF, name="other", experiment="breakdown")
    assert verdict_of(claim(), other).verdict == "not measured"
    assert "on a GPU" in verdict_of(claim(device="cuda"), one(HALF, name="cpu")).reason


def test_failed_cell_gives_its_reason(one):
    judged = verdict_of(claim(), one([], status="oom_host", reason="the host's memory is short"))
    assert judged.verdict == "not measured" and "the host's memory is short" in judged.reason


def test_claim_without_a_measure_gives_its_reason(one):
    no_measure = {"measure": None, "of": None, "number": None, "tolerance": None, "runs": None}
    folder = one(HALF)
    for verdict in ("not checkable here", "ill-posed"):
        judged = verdict_of(claim(**no_measure, verdict=verdict, because="so"), folder)
        assert (judged.verdict, judged.reason) == (verdict, "so")
    judged = verdict_of(claim(**no_measure, lacks="not built"), folder)
    assert (judged.verdict, judged.reason) == ("not measured", "not built")


def test_ratio_of_times_within_holds_and_same_order_holds_in_shape(two):
    assert verdict_of(timed(), two(2.5, 2.2, 2.8)).verdict == "holds"
    assert verdict_of(timed(), two(1.4, 1.3, 1.5, name="small")).verdict == "holds in shape"
    assert verdict_of(timed(), two(5.0, 4.5, 5.5, name="large")).verdict == "holds in shape"
    assert verdict_of(timed(), two(0.8, 0.7, 0.9, name="slower")).verdict == "refuted"
    assert verdict_of(timed(), two(1.0, 0.99, 1.01, name="same")).verdict == "unclear"
    assert verdict_of(timed(port="P"), two(1.4, 1.3, 1.5, name="p")).verdict == "refuted"


def test_order_needs_the_practical_margin(two):
    order = timed(kind="order", number=None, least=1.0)
    assert verdict_of(order, two(1.2, 1.011, 1.4)).verdict == "holds"
    assert verdict_of(order, two(1.2, 1.005, 1.4, name="near")).verdict == "unclear"
    assert verdict_of(order, two(0.998, 0.992, 0.995, name="hardly")).verdict == "unclear"
    assert verdict_of(order, two(0.9, 0.8, 0.98, name="slower")).verdict == "refuted"


def test_inverse_ratio_is_inverted(two):
    inverted = timed(
        of="tsota features.policy=presc#1", versus="tsota features.policy=degree",
        number=0.4, tolerance=0.1, kind="value",
    )  # fmt: skip
    judged = verdict_of(inverted, two(2.5, 2.0, 3.2))
    estimate = judged.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.4, 1 / 3.2, 0.5))
    assert judged.verdict == "holds"


@pytest.mark.parametrize("inverted", [False, True])
def test_ratio_of_one_pair_has_no_interval(two, inverted):
    policies = ["tsota features.policy=degree", "tsota features.policy=presc#1"]
    of, versus = policies[::-1] if inverted else policies
    folder = two(2.5, None, None, pairs=1)
    for statement in (
        timed(of=of, versus=versus),
        timed(of=of, versus=versus, kind="order", number=None, least=1.0),
    ):
        judged = verdict_of(statement, folder)
        assert judged.verdict == "unclear" and "fewer than 3 pairs" in judged.reason


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"pairs": 2}, "fewer than 3 pairs"),
        ({"doubtful": "the GPU was throttled"}, "throttled"),
        ({"work_class": "different"}, "work of the two differs"),
        ({"ratio": None, "reason": "the interval is wide", "status": "unstable"}, "is wide"),
    ],
)
def test_unreliable_ratio_is_unclear(two, row, why):
    values = {"ratio": 2.5, "low": 2.2, "high": 2.8}
    if "ratio" in row:
        values = dict.fromkeys(values)
    judged = verdict_of(timed(), two(**values, **{k: v for k, v in row.items() if k != "ratio"}))
    assert judged.verdict == "unclear" and why in judged.reason


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


def test_simultaneous_intervals_are_wider():
    """Student's t with 4 degrees of freedom is 2.776 at 95 %, and 5.261 for eight intervals."""
    wide = simultaneous(Estimate(2.0, 1.8, 2.0**2 / 1.8, 5), 8)
    factor = 5.2611 / 2.7764
    assert wide.low == pytest.approx(2 * (1.8 / 2) ** factor, rel=1e-3)
    assert simultaneous(Estimate(-1.0, -2.0, 0.0, 5), 1).low == pytest.approx(-2.0)


def test_times_of_different_references_have_no_ratio(two):
    assert verdict_of(timed(), two(2.5, 2.2, 2.8, reference_id="c")).verdict == "not measured"


def test_direct_pair_is_judged_by_its_own_ratio(tmp_path):
    policies = {
        "pair": "d-p", "first": "x", "second": "y", "work_class": "identical", "pairs": 5,
        "judged": "memory_io_time_s", "ratio": 2.5, "ratio_ci_low": 2.2, "ratio_ci_high": 2.8,
    }  # fmt: skip
    cells = [cached("d", "degree", 0.1), cached("p", "presc#1", 0.1)]
    assert verdict_of(timed(), write_run(tmp_path / "run", cells, ratios=[policies])).verdict == (
        "holds"
    )


def test_phase_time_ratio_is_a_metric(tmp_path):
    cells = [
        cached("ref", "degree", 0.1, judged="epoch_wall_s", until="compute"),
        cached("b", "presc#1", 0.1, judged="epoch_wall_s", until="compute", ratio=9.0, pairs=5),
    ]
    metric_rows = [metric("b", "sample", "speedup", 2.5, 2.2, 2.8, n=5)]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    assert verdict_of(timed(measure="sample_time"), folder).verdict == "holds"
    assert verdict_of(timed(measure="memory_io_time"), folder).verdict == "not measured"


def test_upto_uses_the_best_point_and_range_the_worst(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="twitter~twin")]
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", *low)])
    assert verdict_of(claim(kind="upto", tolerance=0.1), folder).verdict == "holds"
    assert verdict_of(claim(kind="upto", number=0.9), folder).verdict == "refuted"
    assert verdict_of(claim(kind="range"), folder).verdict == "refuted"
    # The mean is 35 %, and neither point is near it.
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
def test_mean_of_times_pools_one_machine_and_equal_versions(machines, versions, verdict, tmp_path):
    folders = []
    # The mean of 1.6 and 2.4 is 2.0, and neither is near it.
    for name, ratio, machine, one in zip("ab", (1.6, 2.4), machines, versions, strict=True):
        first = cached(f"ref-{name}", "degree", 0.1, dataset=name, work_class="")
        result = {"ratio": ratio, "ratio_ci_low": ratio - 0.01, "ratio_ci_high": ratio + 0.01}
        result |= {"pairs": 5, "versions": one, "dataset": name, "reference_id": f"ref-{name}"}
        cells = [first | {"reference_id": f"ref-{name}"}, cached(name, "presc#1", 0.1, **result)]
        folders.append(write_run(tmp_path / name, cells, machine=machine))
    judged = verdict_of(timed(kind="mean", number=2.0, tolerance=0.1), *folders)
    assert (judged.verdict, len(judged.findings)) == (verdict, 2)


def test_unclear_point_may_reach_an_upto_number(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="x")]
    folder = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", HALF[0])])
    assert verdict_of(claim(kind="upto", number=0.9), folder).verdict == "unclear"


def test_unmeasured_point_may_reach_an_upto_number(tmp_path):
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    measured = {"of": "tsota features.policy=degree features.ratio=0.1"}
    both = [measured, {"of": "tsota features.policy=optimal"}]
    assert (
        verdict_of(claim(kind="upto", number=0.9, points=[measured]), folder).verdict == "refuted"
    )
    judged = verdict_of(claim(kind="upto", number=0.9, points=both), folder)
    assert judged.verdict == "unclear" and judged.reason.startswith("1 of 2 points measured")
    assert verdict_of(claim(kind="upto", tolerance=0.1, points=both), folder).verdict == "holds"
    # One point refutes a value.
    assert verdict_of(claim(number=0.9, points=both), folder).verdict == "refuted"


def test_absolute_size_is_not_refuted_on_another_machine(tmp_path):
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    judged = verdict_of(claim(number=0.9, port="S"), folder)
    assert judged.verdict == "not reproduced"
    assert judged.reason == (
        "`tsota`: the number is outside the claimed range. It depends on the hardware, which is not"
        " the paper's, so it does not refute the claim"
    )


def test_faster_rival_confirms_but_does_not_refute(two):
    order = timed(kind="order", number=None, least=1.0, faster_rival=True)
    assert verdict_of(order, two(1.2, 1.1, 1.3)).verdict == "holds"
    judged = verdict_of(order, two(0.8, 0.7, 0.9, name="slower"))
    assert judged.verdict == "not reproduced"
    assert judged.reason.endswith(
        "The rival here is faster than the paper's, so it does not refute the claim"
    )


def test_ratio_is_compared_with_that_of_another_pair(tmp_path):
    cells = [cached("ref", "degree", 0.1, reference_id="ref", work_class="")]
    for name, ratio in (("presc#1", 3.0), ("optimal", 1.5)):
        result = {"ratio": ratio, "ratio_ci_low": ratio - 0.01, "ratio_ci_high": ratio + 0.01}
        cells.append(cached(name, name, 0.1, **result, pairs=5))
    than = {"of": "tsota features.policy=degree", "versus": "tsota features.policy=optimal"}
    larger = timed(kind="order", number=None, least=1.0, than=than)
    judged = verdict_of(larger, write_run(tmp_path / "run", cells))
    (finding,) = judged.findings
    assert judged.verdict == "holds" and finding.estimate.value == pytest.approx(2.0)
    assert finding.estimate.low == pytest.approx(2.99 / 1.51)
    smaller = larger.model_copy(update={"least": None, "most": 1.0})
    assert verdict_of(smaller, tmp_path / "run").verdict == "refuted"


def test_ratio_is_compared_with_that_of_other_rows(tmp_path):
    cells = []
    for batch, ratio in ((64, 3.0), (128, 1.5), (256, 2.0)):
        cells.append(
            cached(f"ref{batch}", "degree", 0.1, reference_id=f"ref{batch}", work_class="")
            | {"batch_size": batch}
        )
        result = {"ratio": ratio, "ratio_ci_low": ratio - 0.01, "ratio_ci_high": ratio + 0.01}
        measured = cached(f"m{batch}", "presc#1", 0.1, **result, pairs=5)
        cells.append(measured | {"reference_id": f"ref{batch}", "batch_size": batch})
    write_run(tmp_path / "run", cells)
    most = timed(
        kind="order", number=None, least=1.0, rows={"batch_size": 64},
        than_rows={"batch_size": [64, 128, 256]},
    )  # fmt: skip
    judged = verdict_of(most, tmp_path / "run")
    # Not with itself.
    assert sorted(f.estimate.value for f in judged.findings) == pytest.approx([1.5, 2.0])
    assert judged.verdict == "holds"
    second = most.model_copy(update={"rows": {"batch_size": 256}})
    assert verdict_of(second, tmp_path / "run").verdict != "holds"


def test_cells_are_compared_with_otherwise_equal_cells(tmp_path):
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
    judged = verdict_of(less, folder)
    assert [f.estimate.value for f in judged.findings] == pytest.approx([0.2, 0.2])
    # The half widths of both are added.
    assert judged.findings[0].estimate.high == pytest.approx(
        0.2 + 2 * 4.303 * 0.01 / 3**0.5, rel=1e-3
    )
    assert judged.verdict == "holds"
    rises = claim(
        of="tsota features.policy=degree", along="tsota.features.ratio", by="difference",
        kind="order", number=None, least=0.0,
    )  # fmt: skip
    (step,) = verdict_of(rises, folder).findings
    assert step.estimate.value == pytest.approx(0.1) and step.verdict == "holds"
    falls = rises.model_copy(update={"least": None, "most": 0.0})
    assert verdict_of(falls, folder).verdict == "refuted"
