"""Measures of tables that test_judge.py does not cover."""

import math

import pytest
from written_runs import cell, claim, epochs, metric, verdict_of, write_run

from gnnbench.reproduction.evidence import graph_of, open_runs


def kernel(**more):
    return {
        "kind": "kernel", "id": "a", "device": "cpu", "name": "aggregate", "unit": "flop/s",
        "direction": "forward", "value": 4.0, "low": 3.0, "high": 5.0, "of_ceiling": 0.8,
        "of_ceiling_low": 0.7, "of_ceiling_high": 0.9, "n": 5, **more,
    }  # fmt: skip


PEAK = {
    "kind": "ceiling", "device": "cpu", "name": "fma", "unit": "flop/s", "value": 100.0,
    "low": 90.0, "high": 110.0, "n": 5,
}  # fmt: skip


def test_of_ceiling_is_the_best_kernel_and_of_peak_its_share_of_fma(tmp_path):
    rows = [
        PEAK, {**PEAK, "name": "read", "unit": "B/s", "value": 1.0}, kernel(),
        kernel(value=2.0, of_ceiling=0.9, of_ceiling_low=0.88, of_ceiling_high=1.02),
        kernel(direction="backward", value=50.0), kernel(id="b", of_ceiling=3.0),
        kernel(name="gather", unit="B/s", value=1e9, of_ceiling=0.99),
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    (near,) = verdict_of(claim(measure="of_ceiling", of="baseline"), folder).findings
    estimate = near.estimate
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (0.9, 0.88, 1.02, 5)
    (share,) = verdict_of(claim(measure="of_peak", of="baseline"), folder).findings
    estimate = share.estimate
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.08, 6 / 110, 10 / 90))


def test_gap_between_the_caches_is_that_of_the_fastest_forward_aggregation(tmp_path):
    rows = [
        kernel(value=2.0, l1_hit=0.05, l2_hit=0.2), kernel(value=1.0, l1_hit=0.5, l2_hit=0.1),
        kernel(direction="backward", value=9.0, l1_hit=0.5, l2_hit=0.1), kernel(value=3.0),
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    statement = claim(measure="hit_rate_gap", of="baseline", number=None, tolerance=None, least=0.0)
    judged = verdict_of(statement, folder)
    assert judged.verdict == "holds"
    assert judged.findings[0].estimate.value == pytest.approx(0.15)
    without = write_run(tmp_path / "without", [cell("a", "baseline")], roofline=[kernel()])
    assert verdict_of(statement, without).verdict == "not measured"


def test_ratio_of_memory_levels_has_interval_bounds(tmp_path):
    levels = [
        {**PEAK, "name": "read", "unit": "B/s", "level": level,
         "value": v, "low": v - 1, "high": v + 1}
        for level, v in (("L2", 20.0), ("memory", 5.0))
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=[PEAK, *levels])
    statement = claim(
        measure="l2_over_memory", of="baseline", number=None, tolerance=None, least=1.0
    )
    judged = verdict_of(statement, folder)
    estimate = judged.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == (4.0, 19 / 6, 21 / 4)
    assert judged.verdict == "holds"
    other = claim(measure="shared_over_l2", of="baseline", number=None, tolerance=None, least=1.0)
    assert verdict_of(other, folder).verdict == "not measured"


def test_share_of_a_ceiling_without_interval_is_unclear(tmp_path):
    rows = [{**PEAK, "low": None, "high": None}, kernel()]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    judged = verdict_of(claim(measure="of_peak", of="baseline"), folder)
    assert math.isnan(judged.findings[0].estimate.low) and judged.verdict == "unclear"


def test_input_nodes_have_an_interval_over_epochs(tmp_path):
    samples = epochs("a", {}, {}, {}, unique_nodes=0, batches=10)
    for sample, nodes in zip(samples, (1000, 1010, 990), strict=True):
        sample["unique_nodes"] = nodes
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples)
    statement = claim(measure="input_nodes", of="baseline", number=100.0, tolerance=3.0)
    judged = verdict_of(statement, folder)
    assert judged.verdict == "holds"
    assert judged.findings[0].estimate.value == pytest.approx(100.0)


def test_peak_memory_is_the_maximum_of_each_trial(tmp_path):
    samples = [s for trial in (0, 1) for s in epochs("a", {}, {}, life=trial)]
    for sample, peak in zip(samples, (100, 110, 120, 90), strict=True):
        sample["peak_alloc_bytes"] = peak
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples)
    statement = claim(measure="peak_memory", of="baseline", number=115.0, tolerance=100.0, unit="B")
    (judged,) = verdict_of(statement, folder).findings
    assert (judged.estimate.value, judged.estimate.n) == (115.0, 2)


def test_stored_bytes_is_the_maximum_at_one_time(tmp_path):
    samples = epochs("a", {}, {}, {})
    for sample, size in zip(samples, (900, 1000, 1100), strict=True):
        sample["counts"] = [
            ["schedule", "stored_bytes", "", 5000],
            ["schedule", "stored_most_bytes", "", size],
        ]
    full_run = cell("a", "baseline", batches=3, epoch_batches=3)
    folder = write_run(tmp_path / "run", [full_run], samples)
    statement = claim(
        measure="stored_bytes", of="baseline", number=1000.0, tolerance=300.0, unit="B"
    )
    judged = verdict_of(statement, folder)
    assert judged.verdict == "holds" and judged.findings[0].estimate.value == 1000.0
    cut = write_run(tmp_path / "cut", [{**full_run, "epoch_batches": 9}], samples)
    assert verdict_of(statement, cut).verdict == "not measured"


def test_steps_along_a_column_are_between_otherwise_equal_rows(tmp_path):
    cells, metric_rows = [], []
    for n, (batch, graph, degree) in enumerate(
        [(200, "x", 0.3), (800, "x", 0.7), (400, "x", 0.5), (100, "y", 0.9)]
    ):
        cells.append(cell(str(n), "baseline", batch_size=batch, dataset=graph))
        names = (("", 0.0), ("_least", -0.01), ("_most", 0.01))
        metric_rows += [metric(str(n), "order", f"match_degree{w}", degree + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    rises = claim(
        measure="match_degree", of="baseline", along="batch_size", by="difference", kind="order",
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    judged = verdict_of(rises, folder)
    assert judged.verdict == "holds"
    assert [f.estimate.value for f in judged.findings] == pytest.approx([0.2, 0.2])
    assert judged.findings[0].estimate.low == pytest.approx(0.18)


def test_graph_of_ignores_twin_scale_and_symmetry():
    for name in ("papers100m", "papers100m~twin", "papers100m~twin@0.2", "papers100m~twin@0.2+sym"):
        assert graph_of(name) == "papers100m"
    assert graph_of("rows@10kx120") == "rows"


def test_graph_of_a_variant_is_the_dataset_that_it_varies():
    assert graph_of("products200~twin@0.1") == graph_of("products") == "products"


def test_truncated_line_of_samples_is_skipped(tmp_path):
    samples = epochs("a", {"cache": 1, "host": 1}, {"cache": 1, "host": 1})
    folder = write_run(tmp_path / "run", [cell("a")], samples)
    path = folder / "samples.jsonl"
    path.write_text(path.read_text()[:-20])
    (evidence,) = open_runs([folder])
    assert [len(e.counts) for e in evidence.epochs["a"]] == [2, 0]


def test_loaded_rows_are_scaled_and_compared_with_the_best_order(tmp_path):
    """Half of 1000 nodes is loaded, at scale 0.1; the most similar pair shares 0.45."""
    served = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
    samples = epochs("a", *served, unique_nodes=10_000, batches=10)
    metric_rows = [metric("a", "order", "match_degree_most", 0.45)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples, metrics=metric_rows)
    (rows,) = verdict_of(claim(measure="loaded_rows", of="baseline"), folder).findings
    assert rows.estimate.value == pytest.approx(0.5 * 1000 / 0.1)
    least = claim(measure="over_best_order", of="baseline", number=None, tolerance=None, least=0.0)
    judged = verdict_of(least, folder)
    assert judged.findings[0].estimate.value == pytest.approx(0.5 - 0.55)
    assert judged.verdict == "refuted"


def test_rate_of_aggregations_is_that_of_all_layers(tmp_path):
    """12 operations at 4 per second and 2 at 1 per second take 5 s."""
    rows = [kernel(flops=12), kernel(flops=2, value=1.0, low=0.5, high=2.0)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    (judged,) = verdict_of(claim(measure="aggregate_rate", of="baseline"), folder).findings
    estimate = judged.estimate
    assert estimate.value == pytest.approx(14 / 5)
    assert (estimate.low, estimate.high) == pytest.approx((14 / (4 + 4), 14 / (12 / 5 + 1)))


def test_similarity_of_cut_epochs_does_not_count(tmp_path):
    similarity = metric("a", "features", "hot_similarity", 0.7)
    statement = claim(measure="hot_similarity", of="baseline", number=0.7, tolerance=0.01)
    for batches, verdict in ((0, "holds"), (25, "holds"), (12, "not measured")):
        one = cell("a", "baseline", max_batches=batches, epoch_batches=25)
        folder = write_run(tmp_path / str(batches), [one], metrics=[similarity])
        assert verdict_of(statement, folder).verdict == verdict


def test_forward_and_backward_rates_are_separate(tmp_path):
    rows = [
        kernel(flops=8),
        kernel(direction="backward", flops=8, value=9.0, low=8.0, high=10.0),
    ]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    for measure, value in (("aggregate_rate", 4.0), ("aggregate_backward_rate", 9.0)):
        (judged,) = verdict_of(claim(measure=measure, of="baseline"), folder).findings
        assert judged.estimate.value == value


def test_ratio_of_phases_has_an_interval_over_trials(tmp_path):
    times = {"sample_time_s": 0.1, "memory_io_time_s": 0.6, "compute_time_s": 0.2}
    samples = [s for trial in (0, 1) for s in epochs("a", {}, {}, life=trial, **times)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline", until="compute")], samples)
    statement = claim(measure="memory_io_over_compute", of="baseline", number=3.0, tolerance=0.1)
    judged = verdict_of(statement, folder)
    assert judged.verdict == "holds" and judged.findings[0].estimate.n == 2


def test_steps_of_pairs_along_an_axis_of_each_system(tmp_path):
    """Differences are 0.1 and 0.3 at sizes 1 and 2; each system has its own name of the size."""
    cells, metric_rows = [], []
    for size, own, other in ((1, 0.5, 0.4), (2, 0.8, 0.5)):
        cells.append(cell(f"a{size}", "fastgl", {"schedule": {"name": "x", "ranks": size}}))
        cells.append(cell(f"b{size}", "gnnlab", {"schedule": {"name": "y", "trainers": size}}))
        for ident, value in ((f"a{size}", own), (f"b{size}", other)):
            names = (("", 0.0), ("_least", 0.0), ("_most", 0.0))
            metric_rows += [metric(ident, "order", f"match_degree{w}", value + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    grows = claim(
        measure="match_degree", of="fastgl schedule.ranks=2", versus="gnnlab", by="difference",
        kind="order", along="fastgl.schedule.ranks gnnlab.schedule.trainers", number=None,
        tolerance=None, least=0.15,
    )  # fmt: skip
    assert verdict_of(grows, folder).verdict == "not measured"  # a single size has no step
    grows = grows.model_copy(update={"of": "fastgl"})
    judged = verdict_of(grows, folder)
    values = sorted(round(f.estimate.value, 3) for f in judged.findings)
    assert 0.2 in values and judged.findings[0].label.count(" less ") == 3
