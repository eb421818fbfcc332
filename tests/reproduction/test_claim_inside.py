"""Claims on other tables than cells.csv and on several cells, from rows written by hand."""

import json
import math

import pytest
from written_runs import cell, claim, epochs, metric, verdict_of, write_run

from gnnbench.reproduction.claim import Claim
from gnnbench.schema import KERNELS, STAGES
from gnnbench.schema.writer import write_csv


def spread(ident, least, most):
    """Rows of metrics.csv of an epoch's match degrees."""
    return [
        metric(ident, "order", "match_degree_least", least, n=None),
        metric(ident, "order", "match_degree_most", most, n=None),
    ]


def kernel(ident, name, calls, device_s):
    """A row of kernels.csv."""
    return {"id": ident, "cell": ident, "kernel": name, "calls": calls, "device_s": device_s}


def test_value_over_seeds_has_the_interval_of_their_mean(tmp_path):
    cells = [cell(str(n), "baseline", seed=n) for n in range(3)]
    metric_rows = [
        r for n, d in enumerate((0.06, 0.07, 0.08)) for r in spread(str(n), 0.7, 0.7 + d)
    ]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(
        measure="match_spread", of="baseline", over="seed", number=0.07, tolerance=0.03
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    (finding,) = judged.findings
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert finding.estimate.n == 3 and len(finding.rows) == 3
    assert finding.estimate.value == pytest.approx(0.07)
    assert finding.estimate.high - finding.estimate.value == pytest.approx(half, rel=1e-5)
    assert judged.verdict == "holds"
    assert verdict_of(statement.model_copy(update={"number": 0.2}), folder).verdict == "refuted"


def test_means_over_seeds_of_two_graphs_are_compared(tmp_path):
    """Spreads of 0.06, 0.07, 0.08 minus 0.01, 0.02, 0.03 are 0.05; half widths are added."""
    graphs = {"a": ("reddit~twin", 0.05), "b": ("mag~twin", 0.0)}
    cells = [cell(f"{g}{n}", "baseline", seed=n, dataset=name)
             for g, (name, _) in graphs.items() for n in range(3)]  # fmt: skip
    metric_rows = [r for g, (_, more) in graphs.items() for n in range(3)
            for r in spread(f"{g}{n}", 0.7, 0.71 + 0.01 * n + more)]  # fmt: skip
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(
        measure="match_spread", of="baseline", versus="baseline", by="difference", over="seed",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "mag"}, kind="order", least=0.0,
        number=None, tolerance=None,
    )  # fmt: skip
    (finding,) = verdict_of(statement, folder).findings
    half = 2 * 4.302653 * 0.01 / math.sqrt(3)
    assert finding.estimate.value == pytest.approx(0.05)
    assert finding.estimate.high == pytest.approx(0.05 + half, rel=1e-5)
    assert [r["id"] for r in finding.rows] == ["a0", "b0"]


def stages(ident, name, *hops, profiles=5):
    """Rows of stages.csv, with device times by hop and intervals of +-10 %."""
    return [
        {"id": ident, "cell": ident, "stage": name, "hop": hop, "batches": 20, "host_s": 1.0,
         "looks": profiles, "device_s": s, "device_low_s": 0.9 * s, "device_high_s": 1.1 * s}
        for hop, s in enumerate(hops, start=1)
    ]  # fmt: skip


def test_stage_time_is_summed_over_hops_and_ratios_have_interval_bounds(tmp_path):
    names = {"a": "hop-by-hop", "b": "fused-map-by-hop"}
    cells = [cell(i, "baseline", {"sampler": {"name": n}}, device="cuda") for i, n in names.items()]
    folder = write_run(tmp_path / "run", cells)
    stage_rows = [*stages("a", "id_map", 3.0, 4.0, 5.0), *stages("b", "id_map", 1.0, 2.0, 2.0),
            *stages("a", "pick", 9.0, 9.0, 9.0)]  # fmt: skip
    write_csv(folder / "stages.csv", STAGES, stage_rows)
    statement = claim(
        measure="id_map_s", of="baseline sampler=hop-by-hop", kind="range", number=[1.9, 3.0],
        versus="baseline sampler=fused-map-by-hop", by="ratio", tolerance=None,
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    (finding,) = judged.findings
    assert finding.estimate.value == pytest.approx(12 / 5)
    assert (finding.estimate.low, finding.estimate.high) == pytest.approx((10.8 / 5.5, 13.2 / 4.5))
    assert (finding.estimate.n, judged.verdict) == (5, "holds")


def test_single_profiling_run_has_no_interval(tmp_path):
    folder = write_run(tmp_path / "run", [cell("a", "baseline", device="cuda")])
    row = {"id": "a", "cell": "a", "stage": "id_map", "hop": 1, "device_s": 1.0}
    write_csv(folder / "stages.csv", STAGES, [row])
    statement = claim(measure="id_map_s", of="baseline", number=1.0, tolerance=0.5)
    assert verdict_of(statement, folder).reason.endswith("has no interval; two or more are needed")


def test_hops_of_a_stage_are_compared(tmp_path):
    """``prepare`` takes 1.0, 1.2 and 1.1 s, ``pick`` 1, 3 and 12 s by hop."""
    folder = write_run(tmp_path / "run", [cell("a", "baseline", device="cuda")])
    stage_rows = [*stages("a", "prepare", 1.0, 1.2, 1.1), *stages("a", "pick", 1.0, 3.0, 12.0)]
    for row in stage_rows:
        row["nodes"] = {1: 10, 2: 60, 3: 480}[row["hop"]]  # 10, 20, 40 nodes per second of pick
    write_csv(folder / "stages.csv", STAGES, stage_rows)
    for measure, value in (
        ("prepare_s_spread", 1.2), ("pick_s_growth", 3.0), ("pick_rate_growth", 2.0),
        ("prepare_over_pick_1", 1.0), ("prepare_over_pick_2", 0.4),
        ("prepare_over_pick_3", 1.1 / 12),
    ):  # fmt: skip
        statement = claim(measure=measure, of="baseline", number=value, tolerance=2.0)
        (finding,) = verdict_of(statement, folder).findings
        ends = (value * 0.9 / 1.1, value * 1.1 / 0.9)
        assert finding.estimate.value == pytest.approx(value)
        assert (finding.estimate.low, finding.estimate.high) == pytest.approx(ends)


def test_one_seed_is_not_measured_and_other_cells_are_not_pooled(tmp_path):
    cells = [cell("a", "baseline"), cell("b", "baseline", seed=1, batch_size=400)]
    metric_rows = [*spread("a", 0.70, 0.77), *spread("b", 0.70, 0.77)]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(
        measure="match_spread", of="baseline", over="seed", number=0.07, tolerance=0.03
    )
    assert verdict_of(statement, folder).verdict == "not measured"


def test_full_batch_is_scaled_with_the_twin(tmp_path):
    sizes = [("a", "mag~twin@0.1", 800), ("b", "mag~twin@0.1", 1600), ("c", "mag~twin", 8000),
             ("d", "mag+sym", 8000), ("e", "mag~twin@0.05+sym", 400)]  # fmt: skip
    cells = [cell(i, "baseline", dataset=graph, batch_size=size) for i, graph, size in sizes]
    metric_rows = [r for i, _, _ in sizes for r in spread(i, 0.1, 0.2)]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(measure="match_spread", of="baseline", number=0.1, full_batch=8000)
    judged = verdict_of(statement, folder)
    assert [f.rows[0]["id"] for f in judged.findings] == ["a", "c", "d", "e"]
    other = verdict_of(statement.model_copy(update={"full_batch": 16000}), folder)
    assert [f.rows[0]["id"] for f in other.findings] == ["b"]


def test_graphs_are_compared_between_otherwise_equal_cells(tmp_path):
    cells = [
        cell("a", "baseline", dataset="reddit~twin"),
        cell("b", "baseline", dataset="products~twin"),
        cell("c", "baseline", dataset="products~twin", batch_size=400),
    ]
    degrees = [("a", 0.93), ("b", 0.71), ("c", 0.1)]
    metric_rows = [
        metric(ident, "order", f"match_degree{end}", value + d)
        for ident, value in degrees
        for end, d in (("", 0.0), ("_least", -0.01), ("_most", 0.01))
    ]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(
        measure="match_degree", of="baseline", versus="baseline", by="difference", kind="order",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "products"},
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    (finding,) = judged.findings
    assert finding.estimate.value == pytest.approx(0.22) and judged.verdict == "holds"
    inverse = {"rows": {"dataset": "products"}, "versus_rows": {"dataset": "reddit"}}
    assert verdict_of(statement.model_copy(update=inverse), folder).verdict == "refuted"


def test_launches_are_counted_for_the_longest_kernel(tmp_path):
    folder = write_run(tmp_path / "run", [cell("a", "dgl", fanouts="10/10/10")])
    rows = [kernel("a", "draw", 3.0, 4e-4), kernel("a", "clear", 1.0, 1e-5)]
    write_csv(folder / "kernels.csv", KERNELS, rows)
    per_hop = claim(measure="launches_a_hop", of="dgl", number=1.0, tolerance=0.0)
    assert verdict_of(per_hop, folder).verdict == "holds"
    in_total = claim(measure="launches", of="dgl", number=1.0, tolerance=0.0)
    judged = verdict_of(in_total, folder)
    assert judged.verdict == "refuted" and judged.findings[0].estimate.value == 3.0
    bare = write_run(tmp_path / "bare", [cell("a", "dgl")])
    assert verdict_of(in_total, bare).verdict == "not measured"


def set_gpu_memory(folder, memory_bytes):
    """Set the GPU memory in a run's record."""
    record = json.loads((folder / "run.json").read_text())
    record["machine"]["gpus"] = [{"name": "a GPU", "memory_bytes": memory_bytes}]
    (folder / "run.json").write_text(json.dumps(record))


def test_memory_left_is_gpu_memory_minus_the_peak(tmp_path):
    cells = [
        cell("a", "dgl", device="cuda", dataset="reddit~twin"),
        cell("b", "dgl", device="cuda", dataset="mag~twin"),
        cell("c", "dgl", device="cpu", dataset="mag~twin"),
    ]
    metric_rows = [metric(i, "epoch", "memory_bytes", v) for i, v in (("a", 11e9), ("b", 23e9))]
    metric_rows.append(metric("c", "epoch", "memory_bytes", 1e9))
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    set_gpu_memory(folder, 24_000_000_000)
    statement = claim(
        measure="memory_left", of="dgl", versus="dgl", by="difference", kind="order", unit="B",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "mag"},
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    assert [f.estimate.value for f in judged.findings] == [12e9] and judged.verdict == "holds"
    inverse = {"rows": {"dataset": "mag"}, "versus_rows": {"dataset": "reddit"}}
    assert verdict_of(statement.model_copy(update=inverse), folder).verdict == "refuted"


def test_memory_of_all_epochs_is_topology_and_features(tmp_path):
    metric_rows = [
        metric("a", part, "memory_bytes", size)
        for part, size in (("topology", 6.4e9), ("features", 4e9), ("rows", 9e9))
    ]
    folder = write_run(tmp_path / "run", [cell("a", "tsota")], metrics=metric_rows)
    statement = claim(
        measure="memory_of_all_epochs", of="tsota", number=None, tolerance=None, least=10.0e9,
        unit="B", kind="bound",
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    assert judged.findings[0].estimate.value == pytest.approx(10.4e9) and judged.verdict == "holds"
    assert verdict_of(statement.model_copy(update={"least": 11e9}), folder).verdict == "refuted"


def test_presampling_epochs_have_an_interval_over_trials(tmp_path):
    samples = [s for trial in range(3) for s in epochs("a", {}, {}, life=trial)]
    for sample, wall in zip(samples, (2.0, 2.0, 2.1, 2.1, 1.9, 1.9), strict=True):
        sample["wall_s"] = wall
    metric_rows = [metric("a", "features", "hotness_time_s", 2.8, n=None)]
    folder = write_run(tmp_path / "run", [cell("a", "tsota")], samples, metric_rows)
    statement = claim(
        measure="presampling_epochs", of="tsota", number=(0.8, 2.2), tolerance=0.0, kind="range"
    )
    judged = verdict_of(statement, folder)
    assert judged.findings[0].estimate.value == pytest.approx(1.4, rel=0.01)
    assert judged.findings[0].estimate.n == 3 and judged.verdict == "holds"
    other = statement.model_copy(update={"number": (3.0, 4.0)})
    assert verdict_of(other, folder).verdict == "refuted"


def test_overlap_share_has_an_interval_over_trials(tmp_path):
    times = {"sample_time_s": 0.6, "memory_io_time_s": 0.6, "counts": []}
    samples = []
    for ident, overlap in (("a", 0.3), ("b", 0.01)):
        samples += [s for trial in (0, 1) for s in epochs(ident, {}, life=trial, **times)]
        for sample in samples[-2:]:
            sample["overlap_s"] = overlap
    cells = [
        cell(i, "baseline", {"schedule": {"name": "prefetch", "sms": n}})
        for i, n in (("a", 16), ("b", 0))
    ]
    folder = write_run(tmp_path / "run", cells, samples)
    statement = claim(
        measure="overlap_share", of="baseline schedule.sms=16", versus="baseline schedule.sms=0",
        by="difference", kind="order", number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    assert judged.findings[0].estimate.value == pytest.approx(0.29) and judged.verdict == "holds"
    inverse = {"of": statement.versus, "versus": statement.of}
    assert verdict_of(statement.model_copy(update=inverse), folder).verdict == "refuted"


def test_aggregations_are_compared_by_their_rates(tmp_path):
    def rate(ident, value, direction="forward"):
        return {
            "kind": "kernel", "id": ident, "device": "cuda", "name": "aggregate", "unit": "flop/s",
            "direction": direction, "value": value, "low": value - 1, "high": value + 1, "n": 5,
            "flops": 8,
        }  # fmt: skip

    cells = [cell("a", "baseline", {"aggregate": {"name": "memory-aware"}}),
             cell("b", "baseline", {"aggregate": {"name": "spmm"}})]  # fmt: skip
    rows = [rate("a", 40.0), rate("a", 400.0, "backward"), rate("b", 10.0)]
    folder = write_run(tmp_path / "run", cells, roofline=rows)
    statement = claim(
        measure="aggregate_rate", of="baseline aggregate=memory-aware", by="ratio", kind="upto",
        versus="baseline aggregate=spmm", number=3.7, tolerance=0.05, unit="x",
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    estimate = judged.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((4.0, 39 / 11, 41 / 9))
    assert judged.verdict == "holds"
    assert verdict_of(statement.model_copy(update={"number": 9.0}), folder).verdict == "refuted"


def test_groups_share_of_compute_has_an_interval_over_trials(tmp_path):
    samples = []
    for trial, shares in enumerate(((0.5, 0.9, 0.5), (0.6, 0.6, 0.1))):
        made = epochs("a", *({} for _ in shares), life=trial, compute_time_s=2.0)
        for sample, share in zip(made, shares, strict=True):
            sample["counts"] = [["aggregate", "groups_time_s", "", 2.0 * share]]
        samples += made
    samples += epochs("b", {}, compute_time_s=2.0)  # has no groups
    cells = [cell("a", "gnnadvisor", until="compute"), cell("b", "baseline", until="compute")]
    folder = write_run(tmp_path / "run", cells, samples)
    statement = claim(measure="groups_of_compute", of="gnnadvisor", number=0.55, tolerance=0.9)
    judged = verdict_of(statement, folder)
    assert judged.findings[0].estimate.value == pytest.approx(0.55)
    assert judged.findings[0].estimate.n == 2 and judged.verdict == "holds"
    none = statement.model_copy(update={"of": "baseline"})
    assert verdict_of(none, folder).verdict == "not measured"


def test_gain_along_an_axis_is_the_ratio_of_consecutive_ratios(tmp_path):
    cells, metric_rows = [], []
    for width, gain in ((16, 1.0), (64, 1.5), (256, 2.5)):
        for system, value in (("dgl", gain), ("baseline", 1.0)):
            ident = f"{system}{width}"
            cells.append(cell(ident, system, dataset=f"rows@1x{width}", feature_dim=width))
            names = (("", 0.0), ("_least", -0.01), ("_most", 0.01))
            metric_rows += [metric(ident, "order", f"match_degree{w}", value + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=metric_rows)
    statement = claim(
        measure="match_degree", of="dgl", versus="baseline", by="ratio", kind="order",
        along="feature_dim", along_with=["dataset"], number=None, tolerance=None, least=1.0,
    )  # fmt: skip
    judged = verdict_of(statement, folder)
    assert [f.estimate.value for f in judged.findings] == pytest.approx([1.5, 2.5 / 1.5])
    assert judged.verdict == "holds"
    falls = statement.model_copy(update={"least": None, "most": 1.0})
    assert verdict_of(falls, folder).verdict == "refuted"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"over": "seed", "by": "ratio", "along": "threads"}, "'over' cannot be combined"),
        ({"beside_rows": {"dataset": "mag"}}, "'versus_rows' requires 'versus'"),
        ({"along_with": ["dataset"]}, "'along_with' requires 'along'"),
        ({"along": "seed threads", "by": "ratio"}, "'along' takes one path"),
    ],
)
def test_incompatible_fields_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Claim.model_validate({**claim().model_dump(exclude_unset=True), **fields})
