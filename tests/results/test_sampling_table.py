from rich.console import Console

from gnnbench.results import sampling_table as tables

ROW = {
    "id": "a", "dataset": "d", "model": "none", "system": "baseline", "device": "cuda",
    "options": '{"sampler": "fused-map"}', "batch_size": 8000, "fanouts": "15/10/5", "threads": 16,
    "status": "ok", "epoch_wall_s": 0.05, "ci_low_s": 0.049, "ci_high_s": 0.051, "batches": 200,
    "sample_time_s": 0.04, "device_time_s": 0.036, "sampled_edges": 250_000_000,
    "sample_speedup": 2.0, "sample_speedup_ci_low": 1.9, "sample_speedup_ci_high": 2.1,
    "work_class": "identical", "verdict": "faster",
}  # fmt: skip
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


def show(table, width=250):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(table)
    return console.export_text()


def test_time_per_batch_and_rate():
    text = show(tables.samples_table([ROW, {**ROW, "status": "crash", "sample_time_s": None}]))
    assert "baseline sampler=fused-map on cuda" in text and "crash" in text
    for expected in ("0.2 ", "0.18 ", "6.25e+03", "2.0%", "2.00x [1.90, 2.10]", "identical"):
        assert expected in text, expected


def test_stages_are_summed_over_hops_and_what_is_unknown_stays_empty():
    assert tables.stage_time(STAGES[:3], "pick") == 2e-5 + 3e-5
    assert tables.stage_time(STAGES[:3], "id_map") is None
    first, second = show(tables.stages_table(STAGES)).splitlines()[1:3]
    assert "200 us" in first and "50 us" in first and "3 MiB" in first and "1.50" in first
    assert second.split() == ["dgl", "9", "ms"]


def test_kernels_say_what_is_unknown():
    text = show(tables.kernels_table(KERNELS))
    assert "pick_kernel " in text and text.count("unknown") == 2 and "int const" not in text


def test_only_a_run_without_models_is_one_of_samples():
    assert tables.is_sampling([ROW]) and not tables.is_sampling([])
    assert not tables.is_sampling([ROW, {**ROW, "model": "gcn"}])


def test_narrow_tables_hold_everything_in_eighty_columns():
    reference = {**ROW, "options": "{}", "sample_speedup": None, "verdict": "reference"}
    found = tables.sampling_tables([reference, ROW], STAGES, KERNELS, narrow=True)
    text = "".join(show(table, 80) for table in found)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    for expected in ("d, batch 8000, 15/10/5, 16 threads", "2.00x [1.90, 2.10]", "identical",
                     "6.25e+03", "reference", "unknown", "3 MiB"):  # fmt: skip
        assert expected in text, expected
