"""Numbers from beside the table of cells, and of several cells together, by rows written out."""

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


def test_a_spread_over_seeds_has_the_interval_of_their_mean(tmp_path):
    cells = [cell(str(n), "baseline", seed=n) for n in range(3)]
    told = [r for n, d in enumerate((0.06, 0.07, 0.08)) for r in spread(str(n), 0.7, 0.7 + d)]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(
        measure="match_spread", of="baseline", over="seed", number=0.07, tolerance=0.03
    )  # fmt: skip
    found = verdict_of(asked, folder)
    (finding,) = found.findings
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert finding.estimate.n == 3 and len(finding.rows) == 3
    assert finding.estimate.value == pytest.approx(0.07)
    assert finding.estimate.high - finding.estimate.value == pytest.approx(half, rel=1e-5)
    assert found.verdict == "holds"
    assert verdict_of(asked.model_copy(update={"number": 0.2}), folder).verdict == "refuted"


def test_means_over_seeds_of_two_graphs_are_held_against_one_another(tmp_path):
    """Spreads of 0.06, 0.07, 0.08 less those of 0.01, 0.02, 0.03: 0.05, both halves added."""
    graphs = {"a": ("reddit~twin", 0.05), "b": ("mag~twin", 0.0)}
    cells = [cell(f"{g}{n}", "baseline", seed=n, dataset=name)
             for g, (name, _) in graphs.items() for n in range(3)]  # fmt: skip
    told = [r for g, (_, more) in graphs.items() for n in range(3)
            for r in spread(f"{g}{n}", 0.7, 0.71 + 0.01 * n + more)]  # fmt: skip
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(
        measure="match_spread", of="baseline", versus="baseline", by="difference", over="seed",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "mag"}, kind="order", least=0.0,
        number=None, tolerance=None,
    )  # fmt: skip
    (finding,) = verdict_of(asked, folder).findings
    half = 2 * 4.302653 * 0.01 / math.sqrt(3)
    assert finding.estimate.value == pytest.approx(0.05)
    assert finding.estimate.high == pytest.approx(0.05 + half, rel=1e-5)
    assert [r["id"] for r in finding.rows] == ["a0", "b0"]


def test_what_mapping_took_is_the_least_that_two_cells_agree_in(tmp_path):
    """A table of 256 GB takes half a GB; beside another life that maps one, twice that, and less
    where one gave some memory back meanwhile."""
    table = {"dataset": "rows@500Mx128", "nodes": 500_000_000, "feature_dim": 128, "device": "cuda"}
    piece = 2**21 / 256e9
    shares = {"a": 1 / 256, "b": 1 / 512, "c": 0.0, "e": -0.3, "half": 1e-4, "d": 0.01}
    shares |= {"f": 1 / 512 + 0.9 * piece, "g": 1 / 256 + 0.5 * piece, "back": 1e-5}
    recipe = {"features": {"name": "uva"}}
    recipes = {i: {**recipe, "dtype": "float16" if i == "half" else "float32"} for i in shares}
    cells = [cell(i, "baseline", recipes[i], **table) for i in shares]
    cells[4] |= {"nodes": 7}  # none of the claim's rows, and no other's table
    cells[5] |= {"dataset": "rows@1Mx128", "nodes": 1_000_000}  # alone
    told = [metric(i, "features", "mapping_share", s, n=None) for i, s in shares.items()]
    asked = claim(
        measure="mapping_share", of="baseline features=uva", device="cuda", number=1 / 512,
        tolerance=0.0002, rows={"nodes": 500_000_000},
    )  # fmt: skip
    found = verdict_of(asked, write_run(tmp_path / "run", cells, metrics=told))
    assert found.verdict == "holds"
    for finding in found.findings:
        assert finding.estimate.value == 1 / 512
        assert finding.estimate.high - 1 / 512 == pytest.approx(piece)
    small = asked.model_copy(update={"rows": {"nodes": 1_000_000}, "number": 0.01})
    assert verdict_of(small, tmp_path / "run").verdict == "not measured"


def stages(ident, name, *hops, looks=5):
    """Rows of stages.csv, a hop's device time with ends a tenth away."""
    return [
        {"id": ident, "cell": ident, "stage": name, "hop": hop, "batches": 20, "host_s": 1.0,
         "looks": looks, "device_s": s, "device_low_s": 0.9 * s, "device_high_s": 1.1 * s}
        for hop, s in enumerate(hops, start=1)
    ]  # fmt: skip


def test_a_stage_s_time_is_that_of_all_hops_and_a_ratio_of_two_is_end_against_end(tmp_path):
    names = {"a": "hop-by-hop", "b": "fused-map-by-hop"}
    cells = [cell(i, "baseline", {"sampler": {"name": n}}, device="cuda") for i, n in names.items()]
    folder = write_run(tmp_path / "run", cells)
    told = [*stages("a", "id_map", 3.0, 4.0, 5.0), *stages("b", "id_map", 1.0, 2.0, 2.0),
            *stages("a", "pick", 9.0, 9.0, 9.0)]  # fmt: skip
    write_csv(folder / "stages.csv", STAGES, told)
    asked = claim(
        measure="id_map_s", of="baseline sampler=hop-by-hop", kind="range", number=[1.9, 3.0],
        versus="baseline sampler=fused-map-by-hop", by="ratio", tolerance=None,
    )  # fmt: skip
    found = verdict_of(asked, folder)
    (finding,) = found.findings
    assert finding.estimate.value == pytest.approx(12 / 5)
    assert (finding.estimate.low, finding.estimate.high) == pytest.approx((10.8 / 5.5, 13.2 / 4.5))
    assert (finding.estimate.n, found.verdict) == (5, "holds")


def test_a_single_look_has_no_interval(tmp_path):
    folder = write_run(tmp_path / "run", [cell("a", "baseline", device="cuda")])
    row = {"id": "a", "cell": "a", "stage": "id_map", "hop": 1, "device_s": 1.0}
    write_csv(folder / "stages.csv", STAGES, [row])
    asked = claim(measure="id_map_s", of="baseline", number=1.0, tolerance=0.5)
    assert verdict_of(asked, folder).reason.endswith("has no interval")


def test_hops_are_held_against_one_another(tmp_path):
    """Preparing takes 1.0, 1.2 and 1.1, picking 1, 3 and 12: four times and three times as long."""
    folder = write_run(tmp_path / "run", [cell("a", "baseline", device="cuda")])
    told = [*stages("a", "prepare", 1.0, 1.2, 1.1), *stages("a", "pick", 1.0, 3.0, 12.0)]
    for row in told:
        row["nodes"] = {1: 10, 2: 60, 3: 480}[row["hop"]]  # 10, 20, 40 a second
    write_csv(folder / "stages.csv", STAGES, told)
    for measure, value in (
        ("prepare_s_spread", 1.2), ("pick_s_growth", 3.0), ("pick_rate_growth", 2.0),
        ("prepare_over_pick_1", 1.0), ("prepare_over_pick_2", 0.4),
        ("prepare_over_pick_3", 1.1 / 12),
    ):  # fmt: skip
        asked = claim(measure=measure, of="baseline", number=value, tolerance=2.0)
        (finding,) = verdict_of(asked, folder).findings
        ends = (value * 0.9 / 1.1, value * 1.1 / 0.9)
        assert finding.estimate.value == pytest.approx(value)
        assert (finding.estimate.low, finding.estimate.high) == pytest.approx(ends)


def test_one_seed_alone_tells_nothing_and_other_cells_are_pools_of_their_own(tmp_path):
    cells = [cell("a", "baseline"), cell("b", "baseline", seed=1, batch_size=400)]
    told = [*spread("a", 0.70, 0.77), *spread("b", 0.70, 0.77)]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(measure="match_spread", of="baseline", over="seed", number=0.07, tolerance=0.03)
    assert verdict_of(asked, folder).verdict == "not measured"


def test_a_twin_s_batch_is_as_much_smaller_as_the_twin(tmp_path):
    sizes = [("a", "mag~twin@0.1", 800), ("b", "mag~twin@0.1", 1600), ("c", "mag~twin", 8000),
             ("d", "mag+sym", 8000), ("e", "mag~twin@0.05+sym", 400)]  # fmt: skip
    cells = [cell(i, "baseline", dataset=graph, batch_size=size) for i, graph, size in sizes]
    told = [r for i, _, _ in sizes for r in spread(i, 0.1, 0.2)]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(measure="match_spread", of="baseline", number=0.1, full_batch=8000)
    found = verdict_of(asked, folder)
    assert [f.rows[0]["id"] for f in found.findings] == ["a", "c", "d", "e"]
    other = verdict_of(asked.model_copy(update={"full_batch": 16000}), folder)
    assert [f.rows[0]["id"] for f in other.findings] == ["b"]


def test_a_graph_is_held_against_another_that_is_alike_in_all_else(tmp_path):
    cells = [
        cell("a", "baseline", dataset="reddit~twin"),
        cell("b", "baseline", dataset="products~twin"),
        cell("c", "baseline", dataset="products~twin", batch_size=400),
    ]
    degrees = [("a", 0.93), ("b", 0.71), ("c", 0.1)]
    told = [
        metric(ident, "order", f"match_degree{end}", value + d)
        for ident, value in degrees
        for end, d in (("", 0.0), ("_least", -0.01), ("_most", 0.01))
    ]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(
        measure="match_degree", of="baseline", versus="baseline", by="difference", kind="order",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "products"},
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    found = verdict_of(asked, folder)
    (finding,) = found.findings
    assert finding.estimate.value == pytest.approx(0.22) and found.verdict == "holds"
    turned = {"rows": {"dataset": "products"}, "versus_rows": {"dataset": "reddit"}}
    assert verdict_of(asked.model_copy(update=turned), folder).verdict == "refuted"


def test_launches_are_those_of_the_longest_kernel(tmp_path):
    folder = write_run(tmp_path / "run", [cell("a", "dgl", fanouts="10/10/10")])
    rows = [kernel("a", "draw", 3.0, 4e-4), kernel("a", "clear", 1.0, 1e-5)]
    write_csv(folder / "kernels.csv", KERNELS, rows)
    once = claim(measure="launches_a_hop", of="dgl", number=1.0, tolerance=0.0)
    assert verdict_of(once, folder).verdict == "holds"
    whole = claim(measure="launches", of="dgl", number=1.0, tolerance=0.0)
    found = verdict_of(whole, folder)
    assert found.verdict == "refuted" and found.findings[0].estimate.value == 3.0
    bare = write_run(tmp_path / "bare", [cell("a", "dgl")])
    assert verdict_of(whole, bare).verdict == "not measured"


def remember(folder, memory_bytes):
    """Write the GPU's memory into a run's record."""
    record = json.loads((folder / "run.json").read_text())
    record["machine"]["gpus"] = [{"name": "a GPU", "memory_bytes": memory_bytes}]
    (folder / "run.json").write_text(json.dumps(record))


def test_what_is_left_of_a_gpu_s_memory_is_less_the_peak(tmp_path):
    cells = [
        cell("a", "dgl", device="cuda", dataset="reddit~twin"),
        cell("b", "dgl", device="cuda", dataset="mag~twin"),
        cell("c", "dgl", device="cpu", dataset="mag~twin"),
    ]
    told = [metric(i, "epoch", "memory_bytes", v) for i, v in (("a", 11e9), ("b", 23e9))]
    told.append(metric("c", "epoch", "memory_bytes", 1e9))
    folder = write_run(tmp_path / "run", cells, metrics=told)
    remember(folder, 24_000_000_000)
    asked = claim(
        measure="memory_left", of="dgl", versus="dgl", by="difference", kind="order", unit="B",
        rows={"dataset": "reddit"}, versus_rows={"dataset": "mag"},
        number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    found = verdict_of(asked, folder)
    assert [f.estimate.value for f in found.findings] == [12e9] and found.verdict == "holds"
    turned = {"rows": {"dataset": "mag"}, "versus_rows": {"dataset": "reddit"}}
    assert verdict_of(asked.model_copy(update=turned), folder).verdict == "refuted"


def test_topology_and_features_are_what_all_epochs_share(tmp_path):
    told = [
        metric("a", part, "memory_bytes", size)
        for part, size in (("topology", 6.4e9), ("features", 4e9), ("rows", 9e9))
    ]
    folder = write_run(tmp_path / "run", [cell("a", "tsota")], metrics=told)
    asked = claim(
        measure="memory_of_all_epochs", of="tsota", number=None, tolerance=None, least=10.0e9,
        unit="B", kind="bound",
    )  # fmt: skip
    found = verdict_of(asked, folder)
    assert found.findings[0].estimate.value == pytest.approx(10.4e9) and found.verdict == "holds"
    assert verdict_of(asked.model_copy(update={"least": 11e9}), folder).verdict == "refuted"


def test_presampling_is_told_in_epochs_over_lives(tmp_path):
    samples = [s for life in range(3) for s in epochs("a", {}, {}, life=life)]
    for sample, wall in zip(samples, (2.0, 2.0, 2.1, 2.1, 1.9, 1.9), strict=True):
        sample["wall_s"] = wall
    told = [metric("a", "features", "hotness_time_s", 2.8, n=None)]
    folder = write_run(tmp_path / "run", [cell("a", "tsota")], samples, told)
    asked = claim(
        measure="presampling_epochs", of="tsota", number=(0.8, 2.2), tolerance=0.0, kind="range"
    )
    found = verdict_of(asked, folder)
    assert found.findings[0].estimate.value == pytest.approx(1.4, rel=0.01)
    assert found.findings[0].estimate.n == 3 and found.verdict == "holds"
    other = asked.model_copy(update={"number": (3.0, 4.0)})
    assert verdict_of(other, folder).verdict == "refuted"


def test_overlap_is_a_share_of_the_epoch_over_lives(tmp_path):
    times = {"sample_time_s": 0.6, "memory_io_time_s": 0.6, "counts": []}
    samples = []
    for ident, overlap in (("a", 0.3), ("b", 0.01)):
        samples += [s for life in (0, 1) for s in epochs(ident, {}, life=life, **times)]
        for sample in samples[-2:]:
            sample["overlap_s"] = overlap
    cells = [
        cell(i, "baseline", {"schedule": {"name": "prefetch", "sms": n}})
        for i, n in (("a", 16), ("b", 0))
    ]
    folder = write_run(tmp_path / "run", cells, samples)
    asked = claim(
        measure="overlap_share", of="baseline schedule.sms=16", versus="baseline schedule.sms=0",
        by="difference", kind="order", number=None, tolerance=None, least=0.0,
    )  # fmt: skip
    found = verdict_of(asked, folder)
    assert found.findings[0].estimate.value == pytest.approx(0.29) and found.verdict == "holds"
    turned = {"of": asked.versus, "versus": asked.of}
    assert verdict_of(asked.model_copy(update=turned), folder).verdict == "refuted"


def test_aggregations_are_held_against_one_another_by_their_rates(tmp_path):
    def rate(ident, value, direction="forward"):
        return {
            "kind": "kernel", "id": ident, "device": "cuda", "name": "aggregate", "unit": "flop/s",
            "direction": direction, "value": value, "low": value - 1, "high": value + 1, "n": 5,
        }  # fmt: skip

    cells = [cell("a", "baseline", {"aggregate": {"name": "memory-aware"}}),
             cell("b", "baseline", {"aggregate": {"name": "spmm"}})]  # fmt: skip
    rows = [rate("a", 40.0), rate("a", 400.0, "backward"), rate("b", 10.0)]
    folder = write_run(tmp_path / "run", cells, roofline=rows)
    asked = claim(
        measure="aggregate_rate", of="baseline aggregate=memory-aware", by="ratio", kind="upto",
        versus="baseline aggregate=spmm", number=3.7, tolerance=0.05, unit="x",
    )  # fmt: skip
    found = verdict_of(asked, folder)
    estimate = found.findings[0].estimate
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((4.0, 39 / 11, 41 / 9))
    assert found.verdict == "holds"
    assert verdict_of(asked.model_copy(update={"number": 9.0}), folder).verdict == "refuted"


def test_making_groups_is_a_part_of_computing_over_lives(tmp_path):
    samples = []
    for life, shares in enumerate(((0.5, 0.9, 0.5), (0.6, 0.6, 0.1))):
        made = epochs("a", *({} for _ in shares), life=life, compute_time_s=2.0)
        for sample, share in zip(made, shares, strict=True):
            sample["counts"] = [["aggregate", "groups_time_s", "", 2.0 * share]]
        samples += made
    samples += epochs("b", {}, compute_time_s=2.0)  # no groups are made
    cells = [cell("a", "gnnadvisor", until="compute"), cell("b", "baseline", until="compute")]
    folder = write_run(tmp_path / "run", cells, samples)
    asked = claim(measure="groups_of_compute", of="gnnadvisor", number=0.55, tolerance=0.9)
    found = verdict_of(asked, folder)
    assert found.findings[0].estimate.value == pytest.approx(0.55)
    assert found.findings[0].estimate.n == 2 and found.verdict == "holds"
    none = asked.model_copy(update={"of": "baseline"})
    assert verdict_of(none, folder).verdict == "not measured"


def test_what_a_ratio_gains_by_a_step_is_its_ratio_to_the_one_before(tmp_path):
    cells, told = [], []
    for width, gain in ((16, 1.0), (64, 1.5), (256, 2.5)):
        for system, value in (("dgl", gain), ("baseline", 1.0)):
            ident = f"{system}{width}"
            cells.append(cell(ident, system, dataset=f"rows@1x{width}", feature_dim=width))
            names = (("", 0.0), ("_least", -0.01), ("_most", 0.01))
            told += [metric(ident, "order", f"match_degree{w}", value + d) for w, d in names]
    folder = write_run(tmp_path / "run", cells, metrics=told)
    asked = claim(
        measure="match_degree", of="dgl", versus="baseline", by="ratio", kind="order",
        along="feature_dim", along_with=["dataset"], number=None, tolerance=None, least=1.0,
    )  # fmt: skip
    found = verdict_of(asked, folder)
    assert [f.estimate.value for f in found.findings] == pytest.approx([1.5, 2.5 / 1.5])
    assert found.verdict == "holds"
    falls = asked.model_copy(update={"least": None, "most": 1.0})
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
def test_fields_that_do_not_go_together_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Claim.model_validate({**claim().model_dump(exclude_unset=True), **fields})
