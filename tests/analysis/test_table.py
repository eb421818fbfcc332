import json

import pytest
from rich.console import Console

from gnnbench.analysis import metrics, sample_tables
from gnnbench.analysis.row_remarks import ratio_lines, remarks
from gnnbench.analysis.table import heading, main_tables
from gnnbench.core.counters import DEVICE_TIME, FEATURE_BYTES, MATCH_DEGREE, WINDOW_BYTES
from gnnbench.core.units import seconds

ROW = {
    "id": "p", "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "seed": 0,
    "system": "pyg", "status": "ok", "epoch_wall_s": 2.0, "judged_s": 2.0, "ci_low_s": 1.9,
    "ci_high_s": 2.1, "batches": 10, "sample_time_s": 1.0, "memory_io_time_s": 0.5,
    "compute_time_s": 0.4, "overlap_s": 0.0, "idle_s": 0.1, "work_class": "different",
    "reason": "", "epoch_batches": 20, "batch_size": 8000, "fanouts": "15/10/5", "hidden": 64,
    "threads": 16, "verified": True, "recipe": "{}",
}  # fmt: skip
SAMPLING = {
    **ROW, "id": "s", "until": "sample", "model": "", "hidden": None, "epoch_wall_s": 0.05,
    "judged_s": 0.04, "ci_low_s": 0.0396, "ci_high_s": 0.0404, "sample_time_s": 0.04,
    "batches": 200, "epoch_batches": 200, "sampled_edges": 250_000_000, "ratio": 2.0,
    "ratio_ci_low": 1.9, "ratio_ci_high": 2.1, "work_class": "identical", "verdict": "faster",
    "system": "baseline", "device": "cuda", "noise_floor": 0.0,
}  # fmt: skip
FAILED = {
    "id": "x", "dataset": "d", "until": "compute", "model": "gcn", "system": "x", "device": "cpu",
    "status": "crash", "reason": "died",
}  # fmt: skip
PER = [
    metrics.metric("p", stage, measure, value)
    for stage, measure, value in (
        ("epoch", metrics.PER_EDGE, 0.5), ("epoch", metrics.PER_BATCH, 0.25),
        ("sample", metrics.PER_EDGE, 0.4), ("sample", metrics.PER_BATCH, 0.2),
    )
]  # fmt: skip
DEVICE = [metrics.metric("s", "sample", DEVICE_TIME, 0.036)]
STAGES = [
    {"id": "a", "cell": "baseline", "stage": "batch", "hop": None, "host_s": 3e-4, "device_s": 2e-4,
     "extra_bytes": 3 << 20, "extra_ratio": 1.5},
    {"id": "a", "cell": "baseline", "stage": "pick", "hop": 1, "host_s": 1e-5, "device_s": 2e-5},
    {"id": "a", "cell": "baseline", "stage": "pick", "hop": 2, "host_s": 1e-5, "device_s": 3e-5},
    {"id": "b", "cell": "dgl", "stage": "batch", "hop": None, "host_s": 9e-3, "device_s": None},
]  # fmt: skip
KERNELS = [
    {"id": "a", "cell": "baseline", "device_s": 5e-5, "calls": 3.0, "grid": "132x1x1",
     "block": "256x1x1", "registers": None, "occupancy": None,
     "kernel": "void gnnbench::cuda::(anonymous namespace)::pick_kernel<int, 4>(int const*)"},
]  # fmt: skip


def show(tables, width=250):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    for table in tables:
        if table.title:
            console.print(table.title)
        console.print(table.table())
    return console.export_text()


def test_different_work_has_no_ratio_unless_requested():
    text = show(main_tables([ROW], PER))
    assert "different" in text and "x/edge" not in text
    text = show(main_tables([ROW], PER, different=True))
    assert "0.50x/edge 0.25x/batch" in text and "0.40x/edge 0.20x/batch" in text
    assert any("--show-different" in r for r in remarks([ROW]))
    assert not any("--show-different" in r for r in remarks([ROW], different=True))


def test_equal_work_shows_the_ratio_and_its_interval():
    row = {**ROW, "work_class": "equivalent", "ratio": 1.5, "ratio_ci_low": 1.4,
           "ratio_ci_high": 1.6, "verdict": "faster"}  # fmt: skip
    text = show(main_tables([row, FAILED], []))
    assert "1.50x [1.40, 1.60]" in text and "5.0%" in text
    assert "crash" in text


@pytest.mark.parametrize(
    "axis,other", [("fanouts", "5/5"), ("seed", 1), ("hidden", 128), ("threads", 1)]
)
def test_labels_show_only_what_differs(axis, other):
    first, second = ROW, {**ROW, "id": "q", axis: other}
    head, one, two = show(main_tables([first, second], [])).splitlines()[:3]
    assert head.split()[0] == axis and one != two
    assert (one.split()[0], two.split()[0]) == (str(ROW[axis]), str(other))
    assert str(ROW["fanouts"]) in heading([first, second]) or axis == "fanouts"
    assert "15/10/5" not in show(main_tables([first, first], []))


def test_varying_settings_are_shown_next_to_their_system():
    rows = [
        {**ROW, "id": name, "recipe": json.dumps({"sampler": {"name": name}, "dtype": "float32"})}
        for name in ("hop-by-hop", "fused-map")
    ]
    text = show(main_tables(rows, []))
    assert "pyg sampler=hop-by-hop" in text and "pyg sampler=fused-map" in text
    assert "float32" not in text


def test_time_per_batch_and_rate_of_samplers():
    lost = {**SAMPLING, "id": "l", "status": "crash", "judged_s": None}
    text = show(main_tables([SAMPLING, lost], DEVICE))
    assert "crash" in text
    for expected in ("0.200 ", "0.180 ", "6250", "1.0%", "2.00x [1.90, 2.10]", "identical"):
        assert expected in text, expected


def test_each_last_phase_has_its_table():
    tables = main_tables([ROW, SAMPLING], [])
    heads = [part.heads for part in tables]
    assert "ms/batch" in heads[0] and "compute" in heads[1]
    assert all("until" in head for head in heads)


def test_remarks_name_failures_cut_epochs_and_unverified_systems():
    texts = remarks([ROW, FAILED])
    assert "x: crash: died" in texts
    assert any("max_batches" in r for r in texts)
    elsewhere = remarks([ROW, {**FAILED, "dataset": "e", "verified": False}])
    assert "x (unverified) (e): crash: died" in elsewhere
    assert any(r.startswith("unverified: ") for r in elsewhere)


def test_units():
    assert [seconds(v) for v in (None, 0.0, 12.34, 0.5, 0.0123, 4.5e-6, 1e-9)] == [
        "", "0 s", "12.3 s", "500 ms", "12.3 ms", "4.5 us", "0.001 us",
    ]  # fmt: skip
    assert (seconds(630.0), seconds(9000.0)) == ("10 min", "2.5 h")


def test_narrow_tables_fit_into_eighty_columns():
    reference = {**ROW, "id": "r", "system": "baseline", "work_class": "", "verdict": "reference"}
    system = {**ROW, "system": "pyg-native-sampler", "stand_in_for": "pyg", "verdict": "slower",
              "work_class": "equivalent", "ratio": 10.5, "ratio_ci_low": 10.4,
              "ratio_ci_high": 10.6, "doubtful": "x"}  # fmt: skip
    rows = [reference, system, {**FAILED, "status": "missing_dep"}]
    rows += [{**r, "id": r["id"] + "2", "fanouts": "5/5"} for r in rows[:2]]
    text = show([cut for part in main_tables(rows, [], narrow=True) for cut in part.fitted(80)], 80)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    for expected in ("fanouts 15/10/5", "fanouts 5/5", "baseline", "missing_dep", "2.00 s",
                     "400 ms", "equivalent", "slower"):  # fmt: skip
        assert expected in text
    assert text.count("10.50x [10.40, 10.60]") == 2


def test_stages_are_summed_over_hops_and_unknown_ones_are_empty():
    assert sample_tables.stage_time(STAGES[:3], "pick") == 2e-5 + 3e-5
    assert sample_tables.stage_time(STAGES[:3], "id_map") is None
    first, second = show([sample_tables.stages_table(STAGES)]).splitlines()[2:4]
    assert "0.200 ms" in first and "50.0 us" in first and "3.00 MiB" in first and "1.50" in first
    assert second.split() == ["dgl", "9.00", "ms"]


def test_unknown_values_of_kernels_are_named():
    text = show([sample_tables.kernels_table(KERNELS)])
    assert "pick_kernel " in text and text.count("unknown") == 2 and "int const" not in text


def test_names_of_kernels_leave_room_for_the_numbers():
    row = {**KERNELS[0], "kernel": f"void sm80_xmma_gemm_{'f32f32_' * 20}execute(int const*)"}
    text = show([sample_tables.kernels_table([row])])
    assert "sm80_xmma_gemm_f32f32_f32f32_f32f32_f..." in text


def test_pairs_are_sentences_with_varying_settings():
    couple = {
        "first": "dgl", "second": "baseline sampler=fused-map", "dataset": "d", "fanouts": "2/2",
        "ratio": 2.0, "ratio_ci_low": 1.9, "ratio_ci_high": 2.1, "device_ratio": 3.0, "pairs": 7,
        "work_class": "different", "verdict": "faster",
    }  # fmt: skip
    assert ratio_lines([couple, {**couple, "fanouts": "5/5", "device_ratio": None}]) == [
        "time of dgl / baseline sampler=fused-map (fanouts 2/2): 2.00x [1.90, 2.10] per edge, 3.00x"
        " by events; different work, 7 pairs, baseline sampler=fused-map is faster",
        "time of dgl / baseline sampler=fused-map (fanouts 5/5): 2.00x [1.90, 2.10] per edge;"
        " different work, 7 pairs, baseline sampler=fused-map is faster",
    ]


def test_remark_quantifies_different_work():
    couple = {
        "first": "baseline sampler.frontier=cumulative", "second": "baseline sampler.frontier=new",
        "pair": "a-b", "dataset": "d", "ratio": 1.25, "ratio_ci_low": 1.0, "ratio_ci_high": 1.2,
        "device_ratio": None, "pairs": 7, "work_class": "different", "verdict": "faster",
    }  # fmt: skip
    counts = {"sampled_edges": 200, "unique_nodes": 50}
    first = {**ROW, **counts, "id": "a", "frontier": "cumulative"}
    second = {"id": "b", "frontier": "new", "sampled_edges": 150, "unique_nodes": 48}
    (line,) = ratio_lines([couple], [first, {**ROW, **second}])
    assert line.endswith(  # 0.75 of the edges, each in 0.8 of the time
        "; the second has 0.75x the edges, 0.96x the nodes, 0.60x the time (frontier new, not"
        " cumulative)"
    )
    narrow = {**first, "id": "b", "precision": "bfloat16"}
    (line,) = ratio_lines([couple], [{**first, "precision": ""}, narrow])
    assert line.endswith("0.80x the time (precision bfloat16, not float32)")
    alike = {**couple, "work_class": "equivalent"}
    assert ["the second has" in t for t in ratio_lines([alike], [first])] == [False]


def test_special_reference_is_named_once():
    rows = [{**ROW, "id": i, "system": s, "reference": "baseline sampler.frontier=new"}
            for i, s in (("a", "pyg"), ("b", "pyg-native-sampler"))]  # fmt: skip
    text = remarks([*rows, {**ROW, "id": "c", "reference": "baseline"}])
    assert "pyg, pyg-native-sampler: compared with baseline sampler.frontier=new" in text
    assert sum("compared with" in line for line in text) == 1


def test_differing_versions_of_another_environment_are_named():
    here = {**ROW, "id": "a", "system": "dgl", "env": "", "reference": "dgl", "reference_id": "a",
            "versions": "dgl 1.1.3, torch 2.13.0+cpu, python 3.11.7"}  # fmt: skip
    there = {**here, "id": "b", "env": "old", "versions": "dgl 1.1.2, python 3.11.7"}
    equal = {**here, "id": "c", "env": "same"}
    text = remarks([here, there, equal])
    assert "dgl env=old, dgl env=same: compared with dgl" in text
    assert "dgl env=old has dgl 1.1.2 (not 1.1.3), torch none (not 2.13.0+cpu)" in text
    assert "dgl env=same has the same versions of all that ran" in text


def test_hits_and_loaded_rows_are_shown_with_the_times():
    reads = {**ROW, "until": "memory_io", "model": "", "work_class": "identical"}
    known = [
        metrics.metric("p", "features", metrics.HIT_RATIO, 0.25),
        metrics.metric("p", "features", FEATURE_BYTES, 300, where="cache"),
        metrics.metric("p", "features", FEATURE_BYTES, 900, where="host"),
        metrics.metric("p", "order", MATCH_DEGREE, 0.714),
    ]
    text = show(main_tables([reads], known))
    assert "hits" in text and "25.0%" in text and "75.0%" in text and "71.4%" in text
    plain = show(main_tables([reads], [known[2]]))
    assert not any(head in plain for head in ("hits", "match degree", "rows loaded"))


def test_memory_of_stores_is_shown_with_the_times():
    """A window's rows in any memory, the peak only on a GPU."""
    reads = {**ROW, "until": "memory_io", "model": "", "work_class": "identical"}
    known = [
        metrics.metric("p", "features", WINDOW_BYTES, 2_345_600_000),
        metrics.metric("p", "epoch", metrics.PEAK_ALLOC, 9_876_500_000),
    ]
    ((here,), (there,)) = (main_tables([{**reads, "device": d}], known) for d in ("cpu", "cuda"))
    assert here.lines[0]["window GB"] == there.lines[0]["window GB"] == "2.35"
    assert there.lines[0]["peak GB"] == "9.88" and "peak GB" in there.heads
    assert "window GB" in here.heads and "peak GB" not in here.heads
    (plain,) = main_tables([reads], known[1:])
    assert "window GB" not in plain.heads
