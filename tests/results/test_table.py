from rich.console import Console

from gnnbench.results.table import cells_table, narrow_tables, remarks, seconds

ROW = {
    "dataset": "d", "model": "gcn", "system": "pyg", "status": "ok", "epoch_wall_s": 2.0,
    "ci_low_s": 1.9, "ci_high_s": 2.1, "batches": 10, "sample_time_s": 1.0,
    "memory_io_time_s": 0.5, "compute_time_s": 0.4, "residual_s": 0.1, "work_class": "different",
    "speedup_per_edge": 0.5, "speedup_per_batch": 0.25, "sample_speedup_per_edge": 0.4,
    "sample_speedup_per_batch": 0.2, "reason": "", "epoch_batches": 20,
}  # fmt: skip
FAILED = {"dataset": "d", "model": "gcn", "system": "x", "status": "crash", "reason": "died"}


def show(rows, **how):
    console = Console(width=250, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(cells_table(rows, **how))
    return console.export_text()


def test_different_work_has_no_ratio_unless_asked_for():
    text = show([ROW])
    assert "different" in text and "x/edge" not in text
    assert "0.50x/edge 0.25x/batch" in show([ROW], show_different=True)
    assert any("--show-different" in r for r in remarks([ROW]))
    assert not any("--show-different" in r for r in remarks([ROW], show_different=True))


def test_equal_work_shows_the_ratio_and_its_interval():
    row = {**ROW, "work_class": "equivalent", "speedup": 1.5, "speedup_ci_low": 1.4,
           "speedup_ci_high": 1.6, "verdict": "faster"}  # fmt: skip
    text = show([row, FAILED])
    assert "1.50x [1.40, 1.60]" in text
    assert "100 ms" in text  # sampling per batch
    assert "crash" in text


def test_remarks_name_failures_and_cut_epochs():
    found = remarks([ROW, FAILED])
    assert "x on d (gcn): crash: died" in found
    assert any("max_batches" in r for r in found)


def test_units():
    assert [seconds(v) for v in (None, 0.0, 12.34, 0.5, 0.0123, 4.5e-6, 1e-9)] == [
        "", "0 s", "12.3 s", "500 ms", "12.3 ms", "4.5 us", "0.001 us",
    ]  # fmt: skip
    assert (seconds(630.0), seconds(9000.0)) == ("10 min", "2.5 h")


def test_narrow_tables_hold_everything_in_eighty_columns():
    reference = {**ROW, "system": "baseline", "work_class": "", "verdict": "reference"}
    system = {**ROW, "system": "pyg-native-sampler", "stand_in_for": "pyg", "verdict": "slower",
              "work_class": "equivalent", "speedup": 10.5, "speedup_ci_low": 10.4,
              "speedup_ci_high": 10.6, "sample_speedup": 10.5, "sample_speedup_ci_low": 10.4,
              "sample_speedup_ci_high": 10.6, "doubtful": "x"}  # fmt: skip
    missing = {**FAILED, "status": "missing_dep"}
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    times, comparison = narrow_tables([reference, system, missing])
    console.print(times)
    console.print(comparison)
    text = console.export_text()
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    for expected in ("d, gcn", "baseline", "missing_dep", "2 s", "400 ms", "equivalent", "slower"):
        assert expected in text
    assert text.count("10.50x [10.40, 10.60]") == 2
