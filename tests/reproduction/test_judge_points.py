"""Claims of several points, missing points and ignored rows."""

import pytest
from written_runs import cached, cell, claim, epochs, metric, timed, verdict_of, write_run

from gnnbench.core.errors import UsageError
from gnnbench.reproduction.verdict import VERDICTS

HALF = [{"cache": 50, "host": 50}, {"cache": 51, "host": 49}, {"cache": 49, "host": 51}]


def test_missing_points_leave_a_claim_unclear(one):
    both = claim(points=[{}, {"of": "tsota features.policy=random", "number": 0.1}])
    judged = verdict_of(both, one(HALF))
    assert judged.verdict == "unclear" and "1 of 2 points measured" in judged.reason


def test_last_measurement_on_a_machine_counts(one):
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    before = one(low, name="before", started="20260101T000000Z")
    after = one(HALF, name="after", started="20260102T000000Z")
    assert verdict_of(claim(), after, before).verdict == "holds"
    other_machine = one(low, name="elsewhere", machine="there")
    assert verdict_of(claim(), after, other_machine).verdict == "refuted"


def test_unreliable_number_counts_only_where_no_machine_has_a_reliable_one(two):
    busy = two(0.5, 0.4, 0.6, name="busy", doubtful="the machine was busy")
    holds = two(2.5, 2.2, 2.8, name="idle", machine="there")
    fails = two(0.5, 0.4, 0.6, name="slow", machine="there")
    assert verdict_of(timed(), busy).verdict == "unclear"
    for order in ([busy, holds], [holds, busy]):
        (finding,) = (judged := verdict_of(timed(), *order)).findings
        assert judged.verdict == "holds" and finding.estimate.value == 2.5
    assert verdict_of(timed(), busy, fails).verdict == "refuted"
    again = two(2.5, 2.2, 2.8, name="again", machine="there", doubtful="the GPU was throttled")
    assert len(verdict_of(timed(), busy, again).findings) == 2


def test_formula_needs_no_run(one):
    exact = claim(measure="updates", of=None, arguments=[106, 151, 6], number=2756.0, runs=None)
    judged = verdict_of(exact, one(HALF))
    assert judged.verdict == "holds" and judged.findings[0].label == "`updates(106, 151, 6)`"
    assert verdict_of(exact.model_copy(update={"number": 2757.5}), one([], name="x")).verdict == (
        "refuted"
    )


def test_requests_edges_and_match_degrees_are_read_from_tables(tmp_path):
    cells = [
        cell("ref", "baseline", {"sampler": {"name": "hop-by-hop"}}, reference_id="ref"),
        cell("a", "baseline", {"sampler": {"name": "fused-map"}}),
        cell("b", "baseline", {"sampler": {"name": "other"}}, work_class="equivalent"),
    ]
    metric_rows = [
        *(metric("a", "features", "requests_per_row", v, where=w)
          for w, v in (("naive", 8.0), ("aligned", 5.0), ("lines", 4.5))),
        *(metric("a", "order", f"match_degree{w}", v)
          for w, v in (("", 0.5), ("_least", 0.48), ("_most", 0.53))),
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    of = "baseline sampler=fused-map"
    for measure, number in (
        ("requests_naive", 8.0), ("requests_aligned", 5.0), ("requests_ratio", 1.6),
        ("requests_extra", 0.5), ("same_edges", 1.0),
    ):  # fmt: skip
        exact = claim(of=of, measure=measure, number=number, tolerance=1e-9)
        assert verdict_of(exact, folder).verdict == "holds", measure
    other = claim(of="baseline sampler=other", measure="same_edges", number=1.0)
    assert verdict_of(other, folder).verdict == "refuted"
    alone = claim(of="baseline sampler=hop-by-hop", measure="same_edges", number=1.0)
    assert verdict_of(alone, folder).verdict == "not measured"
    degree = claim(of=of, measure="match_degree", number=0.5, tolerance=0.02)
    assert verdict_of(degree, folder).verdict == "unclear"  # a pair is at 0.53
    assert verdict_of(degree.model_copy(update={"tolerance": 0.04}), folder).verdict == "holds"


def test_shares_of_time_have_an_interval_over_trials(tmp_path):
    times = {"sample_time_s": 0.6, "memory_io_time_s": 0.3, "counts": []}
    samples = [s for trial in (0, 1) for s in epochs("a", {}, {}, life=trial, **times)]
    samples[-1] |= {"sample_time_s": 0.62}
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], samples)
    judged = verdict_of(claim(measure="sample_share", number=0.6, tolerance=0.1), folder)
    assert judged.findings[0].estimate.n == 2
    assert judged.findings[0].estimate.value == pytest.approx((0.6 + 0.61) / 2)
    lead = claim(measure="memory_io_lead", number=None, most=0.9)
    assert verdict_of(lead, folder).findings[0].estimate.value == pytest.approx(0.4959, abs=1e-3)


@pytest.mark.parametrize(
    ("overlap", "verdict"), [(0.0, "holds"), (0.01, "holds"), (0.4, "not measured")]
)
def test_overlapping_phases_have_no_shares(tmp_path, overlap, verdict):
    """Concurrent phases slow each other; overlap_share measures their overlap."""
    times = {"sample_time_s": 0.8, "memory_io_time_s": 0.6, "overlap_s": overlap, "counts": []}
    samples = [s for trial in (0, 1) for s in epochs("a", {}, {}, life=trial, **times)]
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], samples)
    share = claim(measure="sample_share", number=0.8, tolerance=0.1)
    lead = claim(measure="memory_io_lead", number=0.75, tolerance=0.1)
    both = [verdict_of(c, folder) for c in (share, lead)]
    assert [j.verdict for j in both] == [verdict] * 2
    left_out = ["1 cell left out because phases overlap" in j.reason for j in both]
    assert left_out == [overlap > 0.02] * 2
    overlap_claim = claim(measure="overlap_share", number=overlap, tolerance=0.1)
    assert verdict_of(overlap_claim, folder).findings[0].estimate.value == pytest.approx(overlap)


def test_untimed_phase_has_no_share(tmp_path):
    times = {"sample_time_s": 0.8, "memory_io_time_s": 0.2, "overlap_s": 0.0, "counts": []}
    folder = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", {}, **times))
    for measure in ("compute_share", "compute_lead", "memory_io_over_compute"):
        judged = verdict_of(claim(measure=measure, number=0.5, tolerance=0.1), folder)
        assert judged.verdict == "not measured", measure


def test_list_of_verdicts():
    assert list(VERDICTS) == [
        "holds", "holds on a twin", "holds in shape", "holds only improved", "unclear",
        "not reproduced", "refuted", "not checkable here", "ill-posed", "not measured",
    ]  # fmt: skip


def test_unknown_column_is_an_error(one):
    with pytest.raises(UsageError, match="column 'widht', which no table"):
        verdict_of(claim(rows={"widht": 1}), one(HALF))


def test_rows_of_another_size_than_the_papers_are_unclear(tmp_path):
    cells = [cached("a", "degree", 0.1, hidden=64), cached("b", "degree", 0.1, hidden=256)]
    samples = [s for ident in "ab" for s in epochs(ident, *HALF)]
    statement = claim(as_printed={"hidden": 256})
    small = write_run(tmp_path / "small", cells[:1], samples)
    judged = verdict_of(statement, small)
    assert judged.verdict == "unclear" and "hidden is 64, the paper has 256" in judged.reason
    assert judged.findings[0].estimate.value == pytest.approx(0.5)
    both = verdict_of(statement, write_run(tmp_path / "both", cells, samples))
    assert both.verdict == "holds" and [f.rows[0]["hidden"] for f in both.findings] == [256]


def test_claim_on_more_gpus_than_available_is_not_checkable(one, tmp_path):
    four = claim(rows={"dataset": "twitter"}, device="cuda", gpus=4)
    judged = verdict_of(four, one(HALF))
    assert judged.verdict == "not checkable here"
    assert judged.reason.startswith("needs 4 GPUs; run 'gnnbench run cache-ratio --profile laptop'")
    many = {"machine": {"gpus": [{"name": "one", "memory_bytes": 1}] * 4}}
    four_gpus = write_run(tmp_path / "four", [cached("a", "degree", 0.1)], record=many)
    assert verdict_of(four, four_gpus).verdict == "not measured"
    on_cpu = claim(gpus=4)
    assert verdict_of(on_cpu, one(HALF, name="judged")).verdict == "holds"


def test_later_run_of_other_code_replaces_an_earlier_one(tmp_path):
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    old = write_run(tmp_path / "old", [cached("a", "degree", 0.1)], epochs("a", *low))
    new = write_run(
        tmp_path / "new", [cached("b", "degree", 0.1)], epochs("b", *HALF),
        started="20260102T000000Z",
    )  # fmt: skip
    judged = verdict_of(claim(), old, new)
    assert judged.verdict == "holds" and len(judged.findings) == 1
