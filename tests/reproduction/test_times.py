"""Ratios of phase times from epochs of a pair, and gains over a reference."""

import pytest
from written_runs import cell, claim, epochs, metric, timed, verdict_of, write_run


def whole_epoch_row(ident, system="fastgl", recipe=None, **more):
    """A row of cells.csv for complete epochs."""
    common = {"until": "compute", "judged": "epoch_wall_s", "reference_id": "ref"}
    return cell(ident, system, recipe, **{**common, **more})


def times(ident, pair, *each, trials=5):
    """Epochs of a pair's trials; ``each`` are the compute times of rounds in seconds."""
    samples = []
    for trial in range(trials):
        rounds = epochs(ident, *({} for _ in each), life=trial, pair=pair, sample_time_s=0.1,
                        memory_io_time_s=0.2)  # fmt: skip
        samples += [{**e, "compute_time_s": s} for e, s in zip(rounds, each, strict=True)]
    return samples


def pair_ratio(**more):
    return {
        "pair": "a-b", "first": "x", "second": "y", "work_class": "identical", "pairs": 5,
        "judged": "epoch_wall_s", "ratio": 1.2, "ratio_ci_low": 1.1, "ratio_ci_high": 1.3, **more,
    }  # fmt: skip


COMPUTE_CLAIM = {
    "of": "gnnadvisor",
    "versus": "dgl",
    "measure": "compute_time",
    "number": (2.5, 3.5),
}


@pytest.mark.parametrize("inverted", [False, True])
def test_phase_ratio_of_a_pair_uses_its_own_epochs(tmp_path, inverted):
    cells = [whole_epoch_row("a", "gnnadvisor"), whole_epoch_row("b", "dgl")]
    samples = [
        *times("a", "a-b", 3.0, 9.0, 3.0), *times("b", "a-b", 1.0, 3.0, 1.0),
        *times("a", "ref-a", 50.0, 50.0, 50.0),  # another pair: ignored
    ]  # fmt: skip
    row = pair_ratio(pair="b-a") if inverted else pair_ratio()
    folder = write_run(tmp_path / "run", cells, samples, ratios=[row])
    judged = verdict_of(timed(**COMPUTE_CLAIM), folder)
    assert judged.verdict == "holds"
    assert judged.findings[0].estimate.value == pytest.approx(3.0)
    assert judged.findings[0].estimate.n == 5


def test_phase_ratio_needs_enough_pairs_and_equal_work(tmp_path):
    cells = [whole_epoch_row("a", "gnnadvisor"), whole_epoch_row("b", "dgl")]
    samples = [*times("a", "a-b", 3.0, trials=2), *times("b", "a-b", 1.0, trials=2)]
    few = write_run(tmp_path / "few", cells, samples, ratios=[pair_ratio()])
    assert "fewer than 3 pairs" in verdict_of(timed(**COMPUTE_CLAIM), few).reason
    other = write_run(
        tmp_path / "other", cells, samples, ratios=[pair_ratio(work_class="different")]
    )
    assert "work of the two differs" in verdict_of(timed(**COMPUTE_CLAIM), other).reason
    apart = write_run(tmp_path / "apart", cells, samples)
    assert verdict_of(timed(**COMPUTE_CLAIM), apart).verdict == "not measured"


@pytest.mark.parametrize("has_couple", [False, True])
def test_fetch_time_is_memory_io_without_reordering(tmp_path, has_couple):
    cells = [whole_epoch_row("a", "dgl"), whole_epoch_row("b", "fastgl")]
    cells[1]["reference_id"], cells[1]["work_class"] = "a", "identical"
    samples = [*times("a", "a-b", 1.0), *times("b", "a-b", 1.0)]
    for sample in samples:
        if sample["id"] == "b":
            sample["counts"] = [["order", "reorder_time_s", "", 0.1]]
    ratios = [pair_ratio()] if has_couple else []
    folder = write_run(tmp_path / "run", cells, samples, ratios=ratios)
    wanted = {"of": "dgl", "versus": "fastgl", "measure": "fetch_time", "number": (1.9, 2.1)}
    (finding,) = verdict_of(timed(**wanted), folder).findings
    assert finding.verdict == "holds" and finding.estimate.value == pytest.approx(2.0)


def test_gains_over_one_reference_are_compared(tmp_path):
    cells = [whole_epoch_row(i, "tsota", {"schedule": {"name": n}}, pairs=5)
             for i, n in (("ref", "none"), ("a", "serial"), ("b", "prefetch"))]  # fmt: skip
    metric_rows = [metric("a", "memory_io", "speedup", 3.0, 2.9, 3.1, n=5),
            metric("b", "memory_io", "speedup", 1.5, 1.4, 1.6, n=5)]  # fmt: skip
    statement = claim(
        measure="memory_io_gain", of="tsota schedule=serial", versus="tsota schedule=prefetch",
        by="ratio", number=2.0, tolerance=0.3,
    )  # fmt: skip
    judged = verdict_of(statement, write_run(tmp_path / "run", cells, metrics=metric_rows))
    (finding,) = judged.findings
    assert (finding.estimate.value, finding.estimate.low) == pytest.approx((2.0, 2.9 / 1.6))
    assert judged.verdict == "holds"
    few = [{**c, "pairs": 2} for c in cells]
    judged = verdict_of(statement, write_run(tmp_path / "few", few, metrics=metric_rows))
    assert judged.verdict == "unclear" and "fewer than 3 pairs" in judged.reason
    alone = claim(measure="memory_io_gain", of="tsota schedule=none", number=1.0)
    assert verdict_of(alone, tmp_path / "run").verdict == "not measured"


def test_gain_over_sampling(tmp_path):
    row = whole_epoch_row("a", "dgl", ratio=1.2, ratio_ci_low=1.1, ratio_ci_high=1.3, pairs=5)
    metric_rows = [metric("a", "sample", "speedup", 6.0, 5.5, 6.5, n=5)]
    folder = write_run(tmp_path / "run", [row], metrics=metric_rows)
    statement = claim(measure="gain_over_sampling", of="dgl", number=None, tolerance=None, most=1.0)
    judged = verdict_of(statement, folder)
    estimate = judged.findings[0].estimate
    assert (estimate.value, estimate.high) == pytest.approx((0.2, 1.3 / 5.5))
    assert judged.verdict == "holds"
