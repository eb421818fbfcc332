"""Cells measured again: failed ones on request, throttled ones by themselves; stopping early."""

import pytest
from fakes import by_system

from gnnbench.analysis.compare import is_in_statistics
from gnnbench.core.errors import UsageError
from gnnbench.harness.journal import RunJournal
from gnnbench.measure import throttle
from gnnbench.schema import reader

AGAIN = {"only_failed": True}


def test_only_failed_runs_failed_cells_again_and_nothing_else(launch, tmp_path):
    flag = tmp_path / "flag"
    options = (f'fragile.flag="{flag}"',)
    first = launch("fake,slow,fragile", options=options)
    assert {s: r["status"] for s, r in by_system(first).items()} == {
        "fake": "ok", "slow": "ok", "fragile": "crash",
    }  # fmt: skip
    again = launch("fake,slow,fragile", options=options, more=AGAIN)
    assert by_system(again)["fragile"]["status"] == "crash"
    flag.write_text("")
    last = launch("fake,slow,fragile", options=options, more=AGAIN)
    assert last.folder == first.folder
    rows = by_system(last)
    assert (last.exit_code, rows["fragile"]["status"], rows["fragile"]["pairs"]) == (0, "ok", 2)
    assert rows["slow"] == by_system(first)["slow"]
    run = reader.read(last.folder)
    assert {s["life"] for s in run.samples if s["system"] == "slow"} == {0, 1}
    counted = [s for s in run.samples if is_in_statistics(s)]
    assert {r["system"]: r["n"] for r in run.cells} == {
        name: sum(s["system"] == name for s in counted) for name in ("fake", "slow", "fragile")
    }


def lives(outcome, system):
    """Which lives of a system count, by pair."""
    run = reader.read(outcome.folder)
    return sorted(
        {
            (s["pair"], s["life"])
            for s in run.samples
            if s["system"] == system and is_in_statistics(s)
        }
    )


def test_what_a_reference_measured_alone_stands_while_its_partner_fails(launch, tmp_path, observer):
    flag = tmp_path / "flag"
    options = (f'fragile.flag="{flag}"',)
    first = launch("fake,fragile", options=options)
    assert by_system(first)["fake"]["status"] == "ok"
    again = launch("fake,fragile", options=options, more=AGAIN)
    assert by_system(again)["fake"] == by_system(first)["fake"]
    assert lives(again, "fake") == lives(first, "fake")
    words = "fragile (crash), 1 of 1 comparisons, with fake measured again as well: a ratio needs"
    assert any(words in note for note in observer.notes)
    flag.write_text("")
    last = launch("fake,fragile", options=options, more=AGAIN)
    assert by_system(last)["fragile"]["ratio"] > 0
    (pair,) = {pair for pair, _ in lives(last, "fake")}  # what it did alone is left out now
    assert lives(last, "fake") == lives(last, "fragile") and "-" in pair


def test_the_dry_run_of_only_failed_is_what_it_will_measure(launch, tmp_path, monkeypatch):
    from gnnbench.harness import campaign

    first = launch("fake,slow,crash")
    seen = []
    monkeypatch.setattr(campaign, "run", lambda request, observer: seen.append(request))
    launch("fake,slow,crash", more=AGAIN)
    found = campaign.only_failed(seen[0])
    plan = found.of(seen[0].plan)
    assert [c.system for c in plan.cells] == ["fake", "crash"] and len(plan.pairs) == 1
    assert plan.notes[-1] == found.note and first.folder.name in found.note
    assert "crash (crash), 1 of 2 comparisons, with fake measured again" in found.note


def test_a_failed_reference_is_run_again_with_all_that_ran_alone(launch, tmp_path):
    flag = tmp_path / "flag"
    options = ("reference=fragile", f'fragile.flag="{flag}"')
    first = launch("fragile,slow,fake", options=options)
    assert by_system(first)["slow"].get("ratio") is None
    flag.write_text("")
    last = launch("fragile,slow,fake", options=options, more=AGAIN)
    rows = by_system(last)
    assert {r["status"] for r in rows.values()} == {"ok"}
    assert all(rows[s]["pairs"] == rows[s]["lives"] == 2 for s in ("slow", "fake"))
    assert rows["slow"]["ratio"] > 0


def test_only_failed_of_a_good_run_measures_nothing(launch, observer):
    first = launch("fake,slow")
    assert launch("fake,slow", more=AGAIN).rows == first.rows
    assert any("nothing to run again" in n for n in observer.notes)
    with pytest.raises(UsageError, match=r"axes\.system was .*slow.* and is \[.fake.\]"):
        launch("fake", more=AGAIN)


def test_a_run_goes_on_after_a_failure_unless_told_to_stop(launch):
    assert set(by_system(launch("fake,crash,slow"))) == {"fake", "crash", "slow"}
    stopped = launch("fake,crash,slow", repeats=3, more={"keep_going": False})
    assert "slow" not in by_system(stopped)
    assert stopped.exit_code == 3
    assert reader.read(stopped.folder).record["finished"] is False
    whole = launch("fake,crash,slow", repeats=3, resume=True)
    assert whole.folder == stopped.folder
    assert by_system(whole)["slow"]["pairs"] == 3
    assert by_system(whole)["crash"]["status"] == "crash"


class Watch:
    """A GPU that is throttled while ``hot`` says so; counts its readings."""

    def __init__(self, hot):
        self.hot, self.readings = hot, 0

    def read(self):
        self.readings += 1
        bits = 0x40 if self.hot(self.readings) else 0x4
        return {"sm_clock_mhz": 1500, "power_w": 300.5, "temperature_c": 60, "reasons": bits,
                "thermal_ns": 0}  # fmt: skip


@pytest.fixture
def watched(monkeypatch):
    def use(hot):
        watch = Watch(hot)
        monkeypatch.setattr(throttle.GpuWatch, "read", lambda _: watch.read())
        return watch

    return use


def throttled(run):
    """Of the run's only GPU cell."""
    (gpu,) = {r["id"] for r in run.cells if r["system"] == "gpu"}
    (row,) = [m for m in run.metrics if (m["id"], m["name"]) == (gpu, "throttled")]
    return row["value"]


# A life alone of one warm-up and two measured rounds is 3 blocks, read at both ends: 6 readings.
def test_a_throttled_life_is_measured_once_more(launch, watched, observer):
    watched(lambda reading: reading == 3)
    outcome = launch("gpu,fake", device="cuda", repeats=5, options=("reference=gpu",))
    assert by_system(outcome)["gpu"]["status"] == "ok"
    assert sum("throttled" in n for n in observer.notes) == 1
    run = reader.read(outcome.folder)
    hot = [s for s in run.samples if s["throttle"]]
    assert [s["throttle"] for s in hot] == ["hardware thermal slowdown"]
    assert hot[0]["void"] and (hot[0]["sm_clock_mhz"], hot[0]["power_w"]) == (1500, 300.5)
    assert sum(not s["void"] and not s["warmup"] for s in run.samples) == 10
    (row,) = [r for r in run.cells if r["system"] == "gpu"]
    assert row["lives"] == 5 and throttled(run) == 0


def test_always_throttled_is_unstable_after_two_void_lives(launch, watched):
    watched(lambda reading: True)
    outcome = launch("gpu", device="cuda", repeats=5, options=("reference=gpu",))
    (row,) = outcome.rows
    assert (row["status"], outcome.exit_code) == ("unstable", 3)
    assert throttled(reader.read(outcome.folder)) == 10  # two epochs of each life that counts
    assert "the GPU was throttled (hardware thermal slowdown)" in row["reason"]
    lives = {(s["life"], s["void"]) for s in reader.read(outcome.folder).samples}
    counted = {(life, False) for life in (1, 3, 4, 5, 6)}
    assert lives == {(0, True), (2, True), *counted}


def test_on_the_cpu_no_gpu_is_read(launch, watched):
    watch = watched(lambda reading: True)
    assert launch("fake").exit_code == 0
    assert watch.readings == 0


def test_throttling_is_told_from_the_power_cap_and_seen_within_a_block():
    calm = {"reasons": 0x4, "thermal_ns": 5}
    assert throttle.throttling(calm, calm) == ""
    assert throttle.throttling(None, None) == ""
    assert throttle.throttling({"reasons": None, "thermal_ns": None}, calm) == ""
    assert throttle.throttling(calm, {"reasons": 0x88, "thermal_ns": 5}) == (
        "hardware slowdown, power brake"
    )
    assert "within the block" in throttle.throttling(calm, {**calm, "thermal_ns": 6})


def test_nvml_is_read_field_by_field(monkeypatch):
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
    found = watch.read()
    assert found == {
        "sm_clock_mhz": 1980, "power_w": 412.345, "temperature_c": None, "reasons": 0x20,
        "thermal_ns": 7,
    }  # fmt: skip
    assert throttle.throttling(found, found) == "software thermal slowdown"
    watch.close()


def test_without_nvml_nothing_is_read(monkeypatch):
    import pynvml

    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert throttle.GpuWatch().read() is None


def test_a_ledger_read_back_knows_what_is_void(tmp_path):
    def end(journal, life, void=False, pair="a-b"):
        journal.record("life", pair=pair, life=life, doubt="", void=void, seconds=1.0)

    journal = RunJournal(tmp_path)
    end(journal, 0)
    end(journal, 1, void=True)
    end(journal, 0, pair="b")
    journal.retry(["b"], ["a-b", "never-started"])
    end(journal, 2)
    journal.close()
    back = RunJournal(tmp_path)
    counted = {
        (p, n) for p in ("a-b", "b") for n in range(4) if back.counts({"pair": p, "life": n})
    }
    assert counted == {("a-b", 2), ("b", 0)}  # life 3 was never finished
    back.close()


def test_what_is_measured_again_passes_the_whole_gate_again(tmp_path):
    """Its first seeds are held against those of no life that failed."""
    journal = RunJournal(tmp_path)
    for cell in "ab":
        report = {"check": {"ok": True}, "glance": {"digest": "d"}, "facts": {}}
        journal.record("report", cell=cell, report=report)
    journal.retry(["b"], ["a-b"])
    assert journal.reports["a"].keys() == {"check", "glance", "facts"}
    assert journal.reports["b"].keys() == {"facts"}
    journal.close()
