"""Measures of tables that the judge's own tests do not need."""

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


def test_the_kernel_nearest_its_ceiling_and_the_share_of_the_peak(tmp_path):
    rows = [
        PEAK, {**PEAK, "name": "read", "unit": "B/s", "value": 1.0}, kernel(),
        kernel(value=2.0, of_ceiling=0.9, of_ceiling_low=0.88, of_ceiling_high=1.02),
        kernel(direction="backward", value=50.0), kernel(id="b", of_ceiling=3.0),
        kernel(name="gather", unit="B/s", value=1e9, of_ceiling=0.99),
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    (near,) = verdict_of(claim(measure="of_ceiling", of="baseline"), folder).findings
    found = near.estimate
    assert (found.value, found.low, found.high, found.n) == (0.9, 0.88, 1.02, 5)
    (share,) = verdict_of(claim(measure="of_peak", of="baseline"), folder).findings
    found = share.estimate
    assert (found.value, found.low, found.high) == pytest.approx((0.04, 3 / 110, 5 / 90))


def test_a_level_of_memory_over_another_is_end_against_end(tmp_path):
    levels = [
        {**PEAK, "name": "read", "unit": "B/s", "level": level,
         "value": v, "low": v - 1, "high": v + 1}
        for level, v in (("L2", 20.0), ("memory", 5.0))
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=[PEAK, *levels])
    asked = claim(measure="l2_over_memory", of="baseline", number=None, tolerance=None, least=1.0)
    found = verdict_of(asked, folder)
    estimate = found.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == (4.0, 19 / 6, 21 / 4)
    assert found.verdict == "holds"
    other = claim(measure="shared_over_l2", of="baseline", number=None, tolerance=None, least=1.0)
    assert verdict_of(other, folder).verdict == "not measured"


def test_a_ceiling_without_an_interval_gives_none(tmp_path):
    rows = [{**PEAK, "low": None, "high": None}, kernel()]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    found = verdict_of(claim(measure="of_peak", of="baseline"), folder)
    assert math.isnan(found.findings[0].estimate.low) and found.verdict == "unclear"


def test_nodes_of_a_batch_are_over_epochs(tmp_path):
    samples = epochs("a", {}, {}, {}, unique_nodes=0, batches=10)
    for sample, nodes in zip(samples, (1000, 1010, 990), strict=True):
        sample["unique_nodes"] = nodes
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples)
    asked = claim(measure="input_nodes", of="baseline", number=100.0, tolerance=3.0)
    found = verdict_of(asked, folder)
    assert found.verdict == "holds"
    assert found.findings[0].estimate.value == pytest.approx(100.0)
    (share,) = verdict_of(claim(measure="reached", of="baseline"), folder).findings
    assert share.estimate.value == pytest.approx(100 / 1000)  # of the graph's nodes


def test_peaks_of_memory_are_each_life_s_highest(tmp_path):
    samples = [s for life in (0, 1) for s in epochs("a", {}, {}, life=life)]
    for sample, peak in zip(samples, (100, 110, 120, 90), strict=True):
        sample["peak_alloc_bytes"] = peak
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples)
    asked = claim(measure="peak_memory", of="baseline", number=115.0, tolerance=100.0, unit="B")
    (found,) = verdict_of(asked, folder).findings
    assert (found.estimate.value, found.estimate.n) == (115.0, 2)


def test_stored_samples_are_the_most_at_a_time(tmp_path):
    samples = epochs("a", {}, {}, {})
    for sample, size in zip(samples, (900, 1000, 1100), strict=True):
        sample["counts"] = [
            ["schedule", "stored_bytes", "", 5000],
            ["schedule", "stored_most_bytes", "", size],
        ]
    whole = cell("a", "baseline", batches=3, epoch_batches=3)
    folder = write_run(tmp_path / "run", [whole], samples)
    asked = claim(measure="stored_bytes", of="baseline", number=1000.0, tolerance=300.0, unit="B")
    found = verdict_of(asked, folder)
    assert found.verdict == "holds" and found.findings[0].estimate.value == 1000.0
    cut = write_run(tmp_path / "cut", [{**whole, "epoch_batches": 9}], samples)
    assert verdict_of(asked, cut).verdict == "not measured"


def test_steps_go_along_a_column_among_rows_alike(tmp_path):
    cells, told = [], []
    for n, (batch, graph, degree) in enumerate(
        [(200, "x", 0.3), (800, "x", 0.7), (400, "x", 0.5), (100, "y", 0.9)]
    ):
        cells.append(cell(str(n), "baseline", batch_size=batch, dataset=graph))
        names = (("", 0.0), ("_least", -0.01), ("_most", 0.01))
        told += [metric(str(n), "order", f"match_degree{w}", degree + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    rises = claim(
        measure="match_degree", of="baseline", along="batch_size", by="difference", kind="order",
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    found = verdict_of(rises, folder)
    assert found.verdict == "holds"
    assert [f.estimate.value for f in found.findings] == pytest.approx([0.2, 0.2])
    assert found.findings[0].estimate.low == pytest.approx(0.18)


def test_graphs_have_one_name_whatever_stands_for_them():
    for name in ("papers100m", "papers100m~twin", "papers100m~twin@0.2", "papers100m~twin@0.2+sym"):
        assert graph_of(name) == "papers100m"
    assert graph_of("rows@10kx120") == "rows"


def test_a_line_that_was_cut_is_passed_over(tmp_path):
    samples = epochs("a", {"cache": 1, "host": 1}, {"cache": 1, "host": 1})
    folder = write_run(tmp_path / "run", [cell("a")], samples)
    path = folder / "samples.jsonl"
    path.write_text(path.read_text()[:-20])
    (evidence,) = open_runs([folder])
    assert [len(e.counts) for e in evidence.epochs["a"]] == [2, 0]


def test_rows_that_a_batch_loads_and_what_no_order_goes_below(tmp_path):
    """Half of 1000 nodes, of a twin at a tenth; the most like pair shares 0.45 of its nodes."""
    served = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
    samples = epochs("a", *served, unique_nodes=10_000, batches=10)
    told = [metric("a", "order", "match_degree_most", 0.45)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], samples, metrics=told)
    (rows,) = verdict_of(claim(measure="loaded_rows", of="baseline"), folder).findings
    assert rows.estimate.value == pytest.approx(0.5 * 1000 / 0.1)
    least = claim(measure="over_best_order", of="baseline", number=None, tolerance=None, least=0.0)
    found = verdict_of(least, folder)
    assert found.findings[0].estimate.value == pytest.approx(0.5 - 0.55)
    assert found.verdict == "refuted"


def test_rates_backward_are_apart_from_those_forward(tmp_path):
    rows = [kernel(value=4.0), kernel(direction="backward", value=9.0, low=8.0, high=10.0)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], roofline=rows)
    for measure, value in (("aggregate_rate", 4.0), ("aggregate_backward_rate", 9.0)):
        (found,) = verdict_of(claim(measure=measure, of="baseline"), folder).findings
        assert found.estimate.value == value


def test_a_phase_over_another_is_over_lives(tmp_path):
    times = {"sample_time_s": 0.1, "memory_io_time_s": 0.6, "compute_time_s": 0.2}
    samples = [s for life in (0, 1) for s in epochs("a", {}, {}, life=life, **times)]
    folder = write_run(tmp_path / "run", [cell("a", "baseline", until="compute")], samples)
    asked = claim(measure="memory_io_over_compute", of="baseline", number=3.0, tolerance=0.1)
    found = verdict_of(asked, folder)
    assert found.verdict == "holds" and found.findings[0].estimate.n == 2


def test_steps_of_couples_go_along_an_axis_of_either_system(tmp_path):
    """Differences of 0.1, 0.3 at sizes 1 and 2, the systems' sizes under names of their own."""
    cells, told = [], []
    for size, mine, other in ((1, 0.5, 0.4), (2, 0.8, 0.5)):
        cells.append(cell(f"a{size}", "fastgl", {"schedule": {"name": "x", "ranks": size}}))
        cells.append(cell(f"b{size}", "gnnlab", {"schedule": {"name": "y", "trainers": size}}))
        for ident, value in ((f"a{size}", mine), (f"b{size}", other)):
            names = (("", 0.0), ("_least", 0.0), ("_most", 0.0))
            told += [metric(ident, "order", f"match_degree{w}", value + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    grows = claim(
        measure="match_degree", of="fastgl schedule.ranks=2", versus="gnnlab", by="difference",
        kind="order", along="fastgl.schedule.ranks gnnlab.schedule.trainers", number=None,
        tolerance=None, least=0.15,
    )  # fmt: skip
    assert verdict_of(grows, folder).verdict == "not measured"  # one size makes no step
    grows = grows.model_copy(update={"of": "fastgl"})
    found = verdict_of(grows, folder)
    values = sorted(round(f.estimate.value, 3) for f in found.findings)
    assert 0.2 in values and found.findings[0].label.count(" less ") == 3
