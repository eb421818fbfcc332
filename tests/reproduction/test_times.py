"""Ratios of what a run does not judge, made of a pair's own epochs; gains over a reference."""

import pytest
from written_runs import cell, claim, epochs, metric, timed, verdict_of, write_run


def wholly(ident, system="fastgl", recipe=None, **more):
    """A row of whole epochs."""
    common = {"until": "compute", "judged": "epoch_wall_s", "reference_id": "ref"}
    return cell(ident, system, recipe, **{**common, **more})


def times(ident, pair, *each, lives=5):
    """Epochs of some lives of a pair: each of ``each`` has a round's seconds of computing."""
    found = []
    for life in range(lives):
        rounds = epochs(ident, *({} for _ in each), life=life, pair=pair, sample_time_s=0.1,
                        memory_io_time_s=0.2)  # fmt: skip
        found += [{**e, "compute_time_s": s} for e, s in zip(rounds, each, strict=True)]
    return found


def couple(**more):
    return {
        "pair": "a-b", "first": "x", "second": "y", "work_class": "identical", "pairs": 5,
        "judged": "epoch_wall_s", "ratio": 1.2, "ratio_ci_low": 1.1, "ratio_ci_high": 1.3, **more,
    }  # fmt: skip


ASKED = {"of": "gnnadvisor", "versus": "dgl", "measure": "compute_time", "number": (2.5, 3.5)}


@pytest.mark.parametrize("turned", [False, True])
def test_a_phase_of_a_couple_is_of_its_own_epochs(tmp_path, turned):
    cells = [wholly("a", "gnnadvisor"), wholly("b", "dgl")]
    samples = [
        *times("a", "a-b", 3.0, 9.0, 3.0), *times("b", "a-b", 1.0, 3.0, 1.0),
        *times("a", "ref-a", 50.0, 50.0, 50.0),  # beside another: of no account
    ]  # fmt: skip
    told = couple(pair="b-a") if turned else couple()
    folder = write_run(tmp_path / "run", cells, samples, ratios=[told])
    found = verdict_of(timed(**ASKED), folder)
    assert found.verdict == "holds"
    assert found.findings[0].estimate.value == pytest.approx(3.0)
    assert found.findings[0].estimate.n == 5


def test_a_couple_of_few_pairs_or_in_doubt_tells_no_phase(tmp_path):
    cells = [wholly("a", "gnnadvisor"), wholly("b", "dgl")]
    samples = [*times("a", "a-b", 3.0, lives=2), *times("b", "a-b", 1.0, lives=2)]
    few = write_run(tmp_path / "few", cells, samples, ratios=[couple()])
    assert "fewer than 3 pairs" in verdict_of(timed(**ASKED), few).reason
    other = write_run(tmp_path / "other", cells, samples, ratios=[couple(work_class="different")])
    assert "work of the two differs" in verdict_of(timed(**ASKED), other).reason
    apart = write_run(tmp_path / "apart", cells, samples)
    assert verdict_of(timed(**ASKED), apart).verdict == "not measured"


def test_gains_over_one_reference_are_held_against_one_another(tmp_path):
    cells = [wholly(i, "tsota", {"schedule": {"name": n}}, pairs=5)
             for i, n in (("ref", "none"), ("a", "serial"), ("b", "prefetch"))]  # fmt: skip
    told = [metric("a", "memory_io", "speedup", 3.0, 2.9, 3.1, n=5),
            metric("b", "memory_io", "speedup", 1.5, 1.4, 1.6, n=5)]  # fmt: skip
    asked = claim(
        measure="memory_io_gain", of="tsota schedule=serial", versus="tsota schedule=prefetch",
        by="ratio", number=2.0, tolerance=0.3,
    )  # fmt: skip
    found = verdict_of(asked, write_run(tmp_path / "run", cells, metrics=told))
    (finding,) = found.findings
    assert (finding.estimate.value, finding.estimate.low) == pytest.approx((2.0, 2.9 / 1.6))
    assert found.verdict == "holds"
    few = [{**c, "pairs": 2} for c in cells]
    found = verdict_of(asked, write_run(tmp_path / "few", few, metrics=told))
    assert found.verdict == "unclear" and "fewer than 3 pairs" in found.reason
    alone = claim(measure="memory_io_gain", of="tsota schedule=none", number=1.0)
    assert verdict_of(alone, tmp_path / "run").verdict == "not measured"


def test_an_epoch_s_gain_over_that_of_its_sampling(tmp_path):
    row = wholly("a", "dgl", ratio=1.2, ratio_ci_low=1.1, ratio_ci_high=1.3, pairs=5)
    told = [metric("a", "sample", "speedup", 6.0, 5.5, 6.5, n=5)]
    folder = write_run(tmp_path / "run", [row], metrics=told)
    asked = claim(measure="gain_over_sampling", of="dgl", number=None, tolerance=None, most=1.0)
    found = verdict_of(asked, folder)
    estimate = found.findings[0].estimate
    assert (estimate.value, estimate.high) == pytest.approx((0.2, 1.3 / 5.5))
    assert found.verdict == "holds"
