import json
import math
import os
import signal
import statistics
import threading
import time
from functools import partial

import psutil
import pytest
from fakes import by_system

from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.schema import reader

FAILURES = (
    ("incorrect", "incorrect", "3 edges where 4 are right", 4),
    ("late-incorrect", "incorrect", "lost edges", 4),
    ("crash", "crash", "SIGSEGV", 3),
    ("raises", "crash", "ValueError: a bug; see logs/", 3),
    ("greedy", "oom_host", "memory", 3),
    ("greedy-torch", "oom_host", "memory", 3),
    ("greedy-real", "oom_host", "memory", 3),
    ("greedy-gpu", "oom_gpu", "batch_size", 3),
    ("greedy-gpu-driver", "oom_gpu", "batch_size", 3),
    ("late-absent", "missing_dep", "make install", 6),
    ("unable", "unsupported", "take another", 3),
)


def samples(outcome, **wanted):
    run = reader.read(outcome.folder)
    return [s for s in run.samples if all(s[k] == v for k, v in wanted.items())]


def metric(outcome, system, stage, name):
    """The one row of metrics.csv."""
    cell = by_system(outcome)[system]["id"]
    rows = reader.read(outcome.folder).metrics
    (row,) = [r for r in rows if (r["id"], r["stage"], r["name"]) == (cell, stage, name)]
    return row


@pytest.fixture(scope="module")
def compared(module_launch):
    return module_launch("fake,slow,other", repeats=3, options=("speed=0.01",))


@pytest.fixture(scope="module")
def mixed(module_launch, tmp_path_factory):
    systems = ",".join(["fake", "chatty", "absent", *(case[0] for case in FAILURES)])
    out = tmp_path_factory.mktemp("mixed")
    return module_launch(systems, out=out, options=("memory_limit_gib=2",))


@pytest.fixture(scope="module")
def hanging(module_launch, tmp_path_factory):
    """The run of a system that hangs, and the processes before it."""
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    out = tmp_path_factory.mktemp("hanging")
    return module_launch("fake,hang,crash", out=out, options=("cell_timeout_s=1",)), before


def test_run_of_several_systems_has_rows_and_ratios(compared):
    rows = by_system(compared)
    fake, slow = rows["fake"], rows["slow"]
    assert compared.exit_code == 0
    assert (fake["status"], slow["status"]) == ("ok", "ok")
    assert (fake["verdict"], slow["verdict"]) == ("reference", "slower")
    assert (slow["work_class"], slow["reference"], slow["pairs"]) == ("equivalent", "fake", 3)
    assert (slow["rounds"], slow["lives"], slow["stopped"]) == (6, 3, "called")
    assert slow["ratio_ci_low"] <= slow["ratio"] <= slow["ratio_ci_high"] < 1
    assert 0.2 < metric(compared, "slow", "sample", "speedup")["value"] < 0.6
    assert 0.05 < slow["idle_s"] / slow["epoch_wall_s"] < 0.3
    assert slow["judged"] == "epoch_wall_s" and slow["judged_s"] == slow["epoch_wall_s"]
    assert slow["ci_low_s"] <= slow["epoch_wall_s"] <= slow["ci_high_s"]
    assert (fake["sampled_edges"], fake["verified"]) == (4000, False)
    # The reference pools the samples of all comparisons.
    assert fake["n"] == slow["n"] + rows["other"]["n"] == 2 * fake["lives"]
    assert fake["lives"] == slow["lives"] + rows["other"]["lives"]
    moved = metric(compared, "fake", "features", "feature_bytes")
    assert (moved["where"], moved["value"], moved["unit"]) == ("host", 4096, "B")
    written = reader.read(compared.folder)
    assert [r["id"] for r in written.cells] == [r["id"] for r in compared.rows]
    assert written.record["definition_hash"][:8] == compared.folder.name.rpartition("-")[2]


def test_rounds_alternate_in_fresh_processes(compared):
    slow = by_system(compared)["slow"]["id"]
    pair = [s for s in samples(compared) if slow in s["pair"] and s["life"] < 2]
    timed = [s for s in pair if not s["warmup"]]
    assert [s["system"] for s in timed] == [
        "fake", "slow", "slow", "fake", "slow", "fake", "fake", "slow",
    ]  # fmt: skip
    assert [s["order"] for s in timed] == [0, 1] * 4
    assert [s["life"] for s in timed] == [0] * 4 + [1] * 4
    assert len({s["worker"] for s in timed}) == 4
    assert len({s["epoch"] for s in pair}) == 6  # two warm-ups, four rounds
    for one, two in zip(timed[::2], timed[1::2], strict=True):
        assert one["round"] == two["round"]
        assert one["epoch"] == two["epoch"]
    assert [s["system"] for s in pair if s["warmup"]] == ["fake", "slow", "slow", "fake"]


def test_single_system_runs_alone(launch):
    outcome = launch("fake", repeats=3)
    (row,) = outcome.rows
    assert (row["n"], row["lives"], row["verdict"]) == (6, 3, "reference")
    assert row["stopped"] in ("precise", "pairs")
    assert {s["pair"] for s in samples(outcome)} == {row["id"]}


def test_different_work_has_ratios_per_edge_and_batch_only(compared):
    row = by_system(compared)["other"]
    assert row["work_class"] == "different"
    assert row["ratio"] is None and not row["verdict"]
    per_edge, per_batch = (
        metric(compared, "other", "epoch", f"speedup_per_{what}")["value"]
        for what in ("edge", "batch")
    )
    timed = [s for s in samples(compared) if not s["warmup"] and not s.get("void")]
    timed = [s for s in timed if row["id"] in s["pair"]]
    own, reference = ([s for s in timed if s["system"] == name] for name in ("other", "fake"))
    edges, batches = (
        sum(s[key] for s in own) / sum(s[key] for s in reference)
        for key in ("sampled_edges", "batches")
    )
    assert edges > 1 and per_edge / per_batch == pytest.approx(edges / batches, rel=1e-9)
    logs = {}
    for one in own:
        (other,) = [s for s in reference if (s["life"], s["round"]) == (one["life"], one["round"])]
        logs.setdefault(one["life"], []).append(math.log(other["wall_s"] / one["wall_s"]))
    mean = statistics.mean(map(statistics.median, logs.values()))
    assert per_batch == pytest.approx(math.exp(mean) * batches, rel=1e-6)


def assert_failed(outcome, system, status, words, code):
    rows = by_system(outcome)
    assert rows[system]["status"] == status
    assert campaign.exit_code([rows[system], rows["fake"]], {system}) == code
    assert words in rows[system]["reason"]
    assert "\n" not in rows[system]["reason"]
    assert rows["fake"]["status"] == "ok"
    assert rows["fake"]["verdict"] == "reference"
    assert rows[system].get("ratio") is None


@pytest.mark.parametrize("system,status,words,code", FAILURES)
def test_failure_is_a_row_with_status_and_exit_code(mixed, system, status, words, code):
    assert_failed(mixed, system, status, words, code)
    assert mixed.exit_code == 4  # incorrect results first


def test_hang_is_a_row_and_no_processes_are_left(hanging):
    outcome, before = hanging
    assert_failed(outcome, "hang", "timeout", "cell_timeout_s", 3)
    assert outcome.exit_code == 3
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before


def test_system_that_fails_its_gate_is_not_timed(mixed):
    assert not samples(mixed, system="incorrect")


def test_systems_run_alone_after_the_reference_fails(launch):
    outcome = launch("crash,slow", options=("reference=crash",))
    rows = by_system(outcome)
    assert rows["crash"]["status"] == "crash"
    assert rows["slow"]["status"] == "ok"
    assert rows["slow"].get("ratio") is None
    assert outcome.exit_code == 3


def test_missing_system_gets_its_stand_in_unless_named(launch, mixed):
    outcome = launch("fake,absent,unable", named=False)
    rows = by_system(outcome)
    assert rows["absent"]["status"] == "missing_dep"
    assert "pip install absent" in rows["absent"]["reason"]
    assert (rows["slow"]["status"], rows["slow"]["stand_in_for"]) == ("ok", "absent")
    assert rows["unable"]["status"] == "unsupported"
    assert outcome.exit_code == 0
    assert "slow" not in by_system(mixed)


@pytest.mark.parametrize("system,code", [("absent", 6), ("unable", 3)])
def test_named_system_that_cannot_run_fails_the_run(launch, system, code):
    outcome = launch(f"fake,{system}")
    assert set(by_system(outcome)) == {"fake", system}
    assert outcome.exit_code == code


def test_doubtful_pairs_are_repeated_and_leave_no_verdict(launch, observer):
    options = ("fake.speed=0.1", "spin.speed=0.1", "warmup_epochs=0")
    outcome = launch("fake,spin,slow", repeats=3, options=options)
    rows = by_system(outcome)
    assert (rows["spin"]["status"], outcome.exit_code) == ("unstable", 3)
    assert rows["spin"]["ratio"] > 0 and rows["spin"]["verdict"] == ""
    assert "'spin' used" in rows["spin"]["doubtful"]
    for other in ("fake", "slow"):  # they did not cause it
        assert "'spin'" not in rows[other]["doubtful"]
    assert metric(outcome, "fake", "epoch", "idle_cpu_share")["value"] > 0.1
    assert rows["spin"]["reason"].startswith("the worker of 'spin' used")
    assert "so there is no verdict; run again on a quiet machine" in rows["spin"]["reason"]
    void = {s["life"] for s in samples(outcome) if s["void"]}
    # All planned pairs. On a busy machine, a worker may spin too little to be detected.
    assert 1 <= len(void) <= 2 and rows["spin"]["pairs"] == rows["spin"]["lives"] == 3
    assert rows["spin"]["stopped"] in ("precise", "pairs", "called", "budget", "doubt")
    assert sum("is void" in n for n in observer.notes) == len(void)


def test_output_of_a_system_goes_to_its_log(mixed):
    assert by_system(mixed)["chatty"]["status"] == "ok"
    (log,) = (mixed.folder / "logs").glob("*-chatty.log")
    assert "chatter on stdout" in log.read_text()
    assert "more chatter" in log.read_text()


def test_run_folder_is_complete_and_contains_no_local_paths(mixed):
    names = {p.name for p in mixed.folder.iterdir()}
    assert names >= {"cells.csv", "samples.csv", "run.json", "definition.toml", "logs"}
    assert not [p for p in mixed.folder.rglob(".tmp-*")]
    record = json.loads((mixed.folder / "run.json").read_text())
    assert record["finished"] is True
    assert set(record) >= {
        "experiment", "definition_hash", "revision", "versions", "machine", "load_before",
        "load_after", "profile",
    }  # fmt: skip
    local = str(mixed.folder.parents[1])
    assert local not in (mixed.folder / "run.json").read_text()
    assert local not in (mixed.folder / "cells.csv").read_text()


def interrupt_when(condition):
    def watch():
        while not condition():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()


def test_ctrl_c_keeps_finished_pairs_and_resume_continues(launch, tmp_path, monkeypatch):
    flag = tmp_path / "flag"
    launch = partial(launch, "fake,slow,waits", repeats=2, options=(f'waits.flag="{flag}"',))
    interrupt_when(flag.exists)
    with pytest.raises(campaign.Interrupted) as stopped:
        launch()
    run = reader.read(stopped.value.folder)
    # The interrupted pair does not count.
    assert {r["system"]: r["n"] for r in run.cells} == {"fake": 4, "slow": 4}
    assert run.record["finished"] is False
    worker = int(flag.read_text())
    assert not psutil.pid_exists(worker)
    requests = []
    with monkeypatch.context() as patch:
        patch.setattr(campaign, "run", lambda request, observer: requests.append(request))
        launch(resume=True)
    remaining = campaign.unfinished(requests[0])
    assert [c.system for c in remaining.cells] == ["fake", "waits"] and len(remaining.pairs) == 1
    kept = len(run.samples)
    outcome = launch(resume=True)
    assert outcome.folder == stopped.value.folder
    rows = by_system(outcome)
    assert {s: r["n"] for s, r in rows.items()} == {"fake": 8, "slow": 4, "waits": 4}
    assert rows["waits"]["pairs"] == 2
    after = samples(outcome)
    assert after[:kept] == run.samples
    assert not [s for s in after[kept:] if s["system"] == "slow"]
    assert {s["life"] for s in after if s["system"] == "waits" and s["void"]} == {0}
    assert {s["life"] for s in after if s["system"] == "waits" and not s["void"]} == {1, 2}
    assert not campaign.unfinished(requests[0]).pairs


@pytest.fixture
def again(module_launch, compared):
    """Gives the command of ``compared`` with ``--resume`` and other changes."""
    return partial(
        module_launch,
        "fake,slow,other",
        **{"resume": True, "repeats": 3, "options": ("speed=0.01",)},
    )


def test_resume_of_a_finished_run_measures_nothing(again, compared):
    resumed = again()
    assert resumed.folder == compared.folder
    assert resumed.rows == compared.rows


def test_second_run_in_a_folder_is_refused(again, compared):
    from gnnbench.harness.folder import locked

    with locked(compared.folder.parents[1]), pytest.raises(UsageError, match="another run is wri"):
        again()
    assert again().exit_code == 0


def test_resume_without_a_run_is_refused(launch):
    with pytest.raises(UsageError, match="no run of"):
        launch("fake", resume=True)


def test_resume_refuses_changed_settings_code_and_machine(again, compared, monkeypatch):
    from gnnbench.measure import machine

    with pytest.raises(
        UsageError, match=r"is another one: measure\.pairs was \[3\] and is \[4\]; give the same"
    ):
        again(repeats=4)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "changed")
    with pytest.raises(UsageError, match="the code changed since"):
        again()
    assert again(force=True).folder == compared.folder
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    for what, change in (
        ("the machine", ("fingerprint", lambda hardware: "another")),
        ("a package's version", ("versions", lambda: {"dgl": "another"})),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(machine, *change)
            with pytest.raises(UsageError, match=f"{what} changed since .* cannot be pooled"):
                again(force=True)


def test_resume_refuses_a_plugin_whose_sources_changed(again, compared, monkeypatch, tmp_path):
    """Otherwise a changed sampler would keep the verdict on its old version."""
    from gnnbench.core import registry

    changed = tmp_path / "changed.py"
    changed.write_text("")
    record = reader.read_record(compared.folder)["plugins"]
    assert record.keys() == {"system fake", "system slow", "system other"}
    assert all(len(one["source_digest"]) == 16 for one in record.values())
    monkeypatch.setattr(registry, "_sources", lambda module: [changed])
    with pytest.raises(
        UsageError, match=r"^the module '[a-z_]+' changed since 'run-.*--resume --f"
    ):
        again()
    assert again(force=True).folder == compared.folder


def test_unknown_dataset_is_refused_before_the_run(launch, tmp_path):
    with pytest.raises(UsageError, match="did you mean 'products"):
        launch("fake", datasets=("prodcts~twin",))
    assert not (tmp_path / "results").exists()


def test_missing_dataset_is_a_row(launch):
    outcome = launch("fake", datasets=("papers100m", "products~twin@0.005"))
    outcomes = {r["dataset"]: (r["status"], r["reason"]) for r in outcome.rows}
    assert outcomes["products~twin@0.005"] == ("ok", "")
    status, reason = outcomes["papers100m"]
    assert status == "missing_data"
    assert "get it: gnnbench data get papers100m; or curl -LO http" in reason
    assert "\n" not in reason
    assert outcome.exit_code == 6
