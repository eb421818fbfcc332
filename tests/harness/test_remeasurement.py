"""Repeated measurements: ``--only-failed``, throttled trials; ``--no-keep-going``."""

import pytest
from fakes import by_system

from gnnbench.analysis.compare import is_in_statistics
from gnnbench.core.errors import UsageError
from gnnbench.harness.journal import RunJournal
from gnnbench.measure import throttle
from gnnbench.schema import reader
from gnnbench.schema.samples import EpochSample

ONLY_FAILED = {"only_failed": True}


def test_only_failed_repeats_failed_cells_only(launch, tmp_path):
    flag = tmp_path / "flag"
    options = (f'fragile.flag="{flag}"',)
    first = launch("fake,slow,fragile", options=options)
    assert {s: r["status"] for s, r in by_system(first).items()} == {
        "fake": "ok", "slow": "ok", "fragile": "crash",
    }  # fmt: skip
    again = launch("fake,slow,fragile", options=options, more=ONLY_FAILED)
    assert by_system(again)["fragile"]["status"] == "crash"
    flag.write_text("")
    last = launch("fake,slow,fragile", options=options, more=ONLY_FAILED)
    assert last.folder == first.folder
    rows = by_system(last)
    assert (last.exit_code, rows["fragile"]["status"], rows["fragile"]["pairs"]) == (0, "ok", 1)
    assert rows["slow"] == by_system(first)["slow"]
    run = reader.read(last.folder)
    assert {s["life"] for s in run.samples if s["system"] == "slow"} == {0}
    counted = [s for s in run.samples if is_in_statistics(s)]
    assert {r["system"]: r["n"] for r in run.cells} == {
        name: sum(s["system"] == name for s in counted) for name in ("fake", "slow", "fragile")
    }


def counted_trials(outcome, system):
    """(pair, trial) of a system that are in the statistics."""
    run = reader.read(outcome.folder)
    return sorted(
        {
            (s["pair"], s["life"])
            for s in run.samples
            if s["system"] == system and is_in_statistics(s)
        }
    )


def test_reference_keeps_its_solo_trials_while_its_pair_fails(launch, tmp_path, observer):
    flag = tmp_path / "flag"
    options = (f'fragile.flag="{flag}"',)
    first = launch("fake,fragile", options=options)
    assert by_system(first)["fake"]["status"] == "ok"
    again = launch("fake,fragile", options=options, more=ONLY_FAILED)
    assert by_system(again)["fake"] == by_system(first)["fake"]
    assert counted_trials(again, "fake") == counted_trials(first, "fake")
    words = "fragile (crash), 1 of 1 comparisons, with fake measured again as well: a ratio needs"
    assert any(words in note for note in observer.notes)
    flag.write_text("")
    last = launch("fake,fragile", options=options, more=ONLY_FAILED)
    assert by_system(last)["fragile"]["ratio"] > 0
    (pair,) = {pair for pair, _ in counted_trials(last, "fake")}  # its solo trials no longer count
    assert counted_trials(last, "fake") == counted_trials(last, "fragile") and "-" in pair


def test_dry_run_of_only_failed_lists_what_it_will_measure(launch, tmp_path, monkeypatch):
    from gnnbench.harness import campaign

    first = launch("fake,slow,crash")
    requests = []
    monkeypatch.setattr(campaign, "run", lambda request, observer: requests.append(request))
    launch("fake,slow,crash", more=ONLY_FAILED)
    selection = campaign.only_failed(requests[0])
    plan = selection.of(requests[0].plan)
    assert [c.system for c in plan.cells] == ["fake", "crash"] and len(plan.pairs) == 1
    assert plan.notes[-1] == selection.note and first.folder.name in selection.note
    assert "crash (crash), 1 of 2 comparisons, with fake measured again" in selection.note


def test_only_failed_repeats_a_failed_reference_with_its_pairs(launch, tmp_path):
    flag = tmp_path / "flag"
    options = ("reference=fragile", f'fragile.flag="{flag}"')
    first = launch("fragile,slow,fake", options=options)
    assert by_system(first)["slow"].get("ratio") is None
    flag.write_text("")
    last = launch("fragile,slow,fake", options=options, more=ONLY_FAILED)
    rows = by_system(last)
    assert {r["status"] for r in rows.values()} == {"ok"}
    assert all(rows[s]["pairs"] == rows[s]["lives"] == 1 for s in ("slow", "fake"))
    assert rows["slow"]["ratio"] > 0


def test_only_failed_after_success_measures_nothing(launch, observer):
    first = launch("fake,slow")
    assert launch("fake,slow", more=ONLY_FAILED).rows == first.rows
    assert any("nothing to run again" in n for n in observer.notes)
    with pytest.raises(UsageError, match=r"axes\.system was .*slow.* and is \[.fake.\]"):
        launch("fake", more=ONLY_FAILED)


def test_run_continues_after_a_failure_unless_keep_going_is_false(launch):
    stopped = launch("fake,crash,slow", more={"keep_going": False})
    assert "slow" not in by_system(stopped)
    assert stopped.exit_code == 3
    assert reader.read(stopped.folder).record["finished"] is False
    whole = launch("fake,crash,slow", resume=True)
    assert set(by_system(whole)) == {"fake", "crash", "slow"}
    assert whole.folder == stopped.folder
    assert by_system(whole)["slow"]["pairs"] == 1
    assert by_system(whole)["crash"]["status"] == "crash"


class FakeGpuWatch:
    """A GPU that is throttled in the readings selected by ``hot``; counts its readings."""

    def __init__(self, hot):
        self.hot, self.readings = hot, 0

    def read(self):
        self.readings += 1
        bits = 0x40 if self.hot(self.readings) else 0x4
        return {"sm_clock_mhz": 1500, "power_w": 300.5, "temperature_c": 60, "reasons": bits,
                "thermal_ns": 0}  # fmt: skip


@pytest.fixture
def fake_gpu(monkeypatch):
    def use(hot):
        watch = FakeGpuWatch(hot)
        monkeypatch.setattr(throttle.GpuWatch, "read", lambda _: watch.read())
        return watch

    return use


def throttled(run):
    """The metric ``throttled`` of the run's only GPU cell."""
    (gpu,) = {r["id"] for r in run.cells if r["system"] == "gpu"}
    (row,) = [m for m in run.metrics if (m["id"], m["name"]) == (gpu, "throttled")]
    return row["value"]


# A solo trial has one warm-up and two measured rounds: 3 blocks of 2 readings each.
def test_throttled_trial_is_repeated_once(launch, fake_gpu, observer):
    fake_gpu(lambda reading: reading == 3)
    outcome = launch("gpu,fake", device="cuda", repeats=3, options=("reference=gpu",))
    assert by_system(outcome)["gpu"]["status"] == "ok"
    assert sum("throttled" in n for n in observer.notes) == 1
    run = reader.read(outcome.folder)
    hot = [s for s in run.samples if s["throttle"]]
    assert [s["throttle"] for s in hot] == ["hardware thermal slowdown"]
    assert hot[0]["void"] and (hot[0]["sm_clock_mhz"], hot[0]["power_w"]) == (1500, 300.5)
    assert sum(not s["void"] and not s["warmup"] for s in run.samples) == 6
    (row,) = [r for r in run.cells if r["system"] == "gpu"]
    assert row["lives"] == 3 and throttled(run) == 0


def test_permanent_throttling_is_unstable_after_two_void_trials(launch, fake_gpu):
    fake_gpu(lambda reading: True)
    outcome = launch("gpu", device="cuda", repeats=3, options=("reference=gpu",))
    (row,) = outcome.rows
    assert (row["status"], outcome.exit_code) == ("unstable", 3)
    # Two epochs of each trial in the statistics.
    assert throttled(reader.read(outcome.folder)) == 6
    assert "the GPU was throttled (hardware thermal slowdown)" in row["reason"]
    trials = {(s["life"], s["void"]) for s in reader.read(outcome.folder).samples}
    counted = {(trial, False) for trial in (1, 3, 4)}
    assert trials == {(0, True), (2, True), *counted}


def test_cpu_run_reads_no_gpu(launch, fake_gpu):
    watch = fake_gpu(lambda reading: True)
    assert launch("fake").exit_code == 0
    assert watch.readings == 0


def test_throttling_differs_from_power_cap_and_is_detected_within_a_block():
    calm = {"reasons": 0x4, "thermal_ns": 5}
    assert throttle.throttling(calm, calm) == ""
    assert throttle.throttling(None, None) == ""
    assert throttle.throttling({"reasons": None, "thermal_ns": None}, calm) == ""
    assert throttle.throttling(calm, {"reasons": 0x88, "thermal_ns": 5}) == (
        "hardware slowdown, power brake"
    )
    assert "within the block" in throttle.throttling(calm, {**calm, "thermal_ns": 6})


def test_gpu_watch_reads_each_nvml_field(monkeypatch):
    import pynvml

    class Violation:
        violationTime = 7

    def absent(*_):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    answers = {
        "nvmlInit": lambda: None, "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda i: f"gpu{i}",
        "nvmlDeviceGetClockInfo": lambda gpu, kind: 1980 if gpu == "gpu1" else 0,
        "nvmlDeviceGetPowerUsage": lambda gpu: 412345, "nvmlDeviceGetTemperature": absent,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: 0x20,
        "nvmlDeviceGetViolationStatus": lambda gpu, policy: Violation,
    }  # fmt: skip
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    watch = throttle.GpuWatch()
    reading = watch.read()
    assert reading == {
        "sm_clock_mhz": 1980, "power_w": 412.345, "temperature_c": None, "reasons": 0x20,
        "thermal_ns": 7,
    }  # fmt: skip
    assert throttle.throttling(reading, reading) == "software thermal slowdown"
    watch.close()


def test_gpu_watch_without_nvml_reads_nothing(monkeypatch):
    import pynvml

    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert throttle.GpuWatch().read() is None


def test_reopened_journal_knows_void_trials(tmp_path):
    def end(journal, life, void=False, pair="a-b"):
        journal.record("life", pair=pair, life=life, doubt="", void=void, seconds=1.0)

    journal = RunJournal(tmp_path)
    end(journal, 0)
    end(journal, 1, void=True)
    end(journal, 0, pair="b")
    journal.retry(["b"], ["a-b", "never-started"])
    end(journal, 2)
    journal.close()
    reopened = RunJournal(tmp_path)
    samples = [EpochSample(pair=pair, life=life) for pair in ("a-b", "b") for life in range(4)]
    counted = [(s.pair, s.life) for s in samples if reopened.counts(s)]
    assert counted == [("a-b", 2), ("b", 0)]  # trial 3 was never finished
    reopened.close()


def test_retried_cell_passes_its_gate_again(tmp_path):
    """Its first seeds are not compared with those of a failed trial."""
    journal = RunJournal(tmp_path)
    for cell in "ab":
        report = {"check": {"ok": True}, "glance": {"digest": "d"}, "facts": {}}
        journal.record("report", cell=cell, report=report)
    journal.retry(["b"], ["a-b"])
    assert journal.reports["a"].keys() == {"check", "glance", "facts"}
    assert journal.reports["b"].keys() == {"facts"}
    journal.close()
