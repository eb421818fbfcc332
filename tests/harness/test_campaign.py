import itertools
import json
import math
import os
import signal
import statistics
import threading
import time

import psutil
import pytest
from fakes import by_system

from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.schema import reader


def samples(outcome, **wanted):
    run = reader.read(outcome.folder)
    return [s for s in run.samples if all(s[k] == v for k, v in wanted.items())]


def metric(outcome, system, stage, name):
    """The one row of metrics.csv."""
    cell = by_system(outcome)[system]["id"]
    rows = reader.read(outcome.folder).metrics
    (row,) = [r for r in rows if (r["id"], r["stage"], r["name"]) == (cell, stage, name)]
    return row


def test_run_of_two_systems_has_two_rows_and_a_ratio(launch):
    outcome = launch("fake,slow", repeats=5, options=("speed=0.01",))
    rows = by_system(outcome)
    fake, slow = rows["fake"], rows["slow"]
    assert outcome.exit_code == 0
    assert (fake["status"], slow["status"]) == ("ok", "ok")
    assert (fake["verdict"], slow["verdict"]) == ("reference", "slower")
    assert (slow["work_class"], slow["reference"], slow["pairs"]) == ("equivalent", "fake", 5)
    assert (slow["rounds"], slow["lives"], slow["stopped"]) == (10, 5, "called")
    assert slow["ratio_ci_low"] <= slow["ratio"] <= slow["ratio_ci_high"] < 1
    assert 0.2 < metric(outcome, "slow", "sample", "speedup")["value"] < 0.6
    assert 0.05 < slow["idle_s"] / slow["epoch_wall_s"] < 0.3
    assert slow["judged"] == "epoch_wall_s" and slow["judged_s"] == slow["epoch_wall_s"]
    assert slow["ci_low_s"] <= slow["epoch_wall_s"] <= slow["ci_high_s"]
    assert (fake["sampled_edges"], fake["verified"], fake["n"]) == (4000, False, 10)
    moved = metric(outcome, "fake", "features", "feature_bytes")
    assert (moved["where"], moved["value"], moved["unit"]) == ("host", 4096, "B")
    written = reader.read(outcome.folder)
    assert [r["id"] for r in written.cells] == [r["id"] for r in outcome.rows]
    assert written.record["definition_hash"][:8] == outcome.folder.name.rpartition("-")[2]


def test_rounds_alternate_in_fresh_processes(launch):
    outcome = launch("fake,slow", repeats=2)
    timed = [s for s in samples(outcome) if not s["warmup"]]
    assert [s["system"] for s in timed] == [
        "fake", "slow", "slow", "fake", "slow", "fake", "fake", "slow",
    ]  # fmt: skip
    assert [s["order"] for s in timed] == [0, 1] * 4
    assert [s["life"] for s in timed] == [0] * 4 + [1] * 4
    assert len({s["worker"] for s in timed}) == 4
    assert len({s["epoch"] for s in samples(outcome)}) == 6  # two warm-ups, four rounds
    for one, two in (
        itertools.batched(timed, 2)
        if hasattr(itertools, "batched")
        else zip(timed[::2], timed[1::2], strict=True)
    ):
        assert one["round"] == two["round"]
        assert one["epoch"] == two["epoch"]
    warm = [s for s in samples(outcome) if s["warmup"]]
    assert [s["system"] for s in warm] == ["fake", "slow", "slow", "fake"]


def test_reference_pools_samples_of_all_comparisons(launch):
    rows = by_system(launch("fake,slow,other", repeats=2))
    assert (rows["fake"]["n"], rows["fake"]["lives"]) == (8, 4)
    assert rows["slow"]["n"] == rows["other"]["n"] == 4


def test_single_system_runs_alone(launch):
    outcome = launch("fake", repeats=3)
    (row,) = outcome.rows
    assert (row["n"], row["lives"], row["verdict"]) == (6, 3, "reference")
    assert row["stopped"] in ("precise", "pairs")
    assert {s["pair"] for s in samples(outcome)} == {row["id"]}


def test_different_work_has_ratios_per_edge_and_batch_only(launch):
    outcome = launch("fake,other", repeats=3, options=("speed=0.01",))
    row = by_system(outcome)["other"]
    assert row["work_class"] == "different"
    assert row["ratio"] is None and not row["verdict"]
    per_edge, per_batch = (
        metric(outcome, "other", "epoch", f"speedup_per_{what}")["value"]
        for what in ("edge", "batch")
    )
    timed = [s for s in samples(outcome) if not s["warmup"] and not s.get("void")]
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


@pytest.mark.parametrize(
    "system,status,words,code",
    [
        ("incorrect", "incorrect", "3 edges where 4 are right", 4),
        ("late-incorrect", "incorrect", "lost edges", 4),
        ("crash", "crash", "SIGSEGV", 3),
        ("raises", "crash", "ValueError: a bug; see logs/", 3),
        ("hang", "timeout", "cell_timeout_s", 3),
        ("greedy", "oom_host", "memory", 3),
        ("greedy-torch", "oom_host", "memory", 3),
        ("greedy-real", "oom_host", "memory", 3),
        ("greedy-gpu", "oom_gpu", "batch_size", 3),
        ("greedy-gpu-driver", "oom_gpu", "batch_size", 3),
        ("late-absent", "missing_dep", "make install", 6),
        ("unable", "unsupported", "take another", 3),
    ],
)
def test_failure_is_a_row_with_status_and_exit_code(launch, system, status, words, code):
    limits = {"hang": "cell_timeout_s=1", "greedy-real": "memory_limit_gib=2"}
    options = (limits[system],) if system in limits else ()
    outcome = launch(f"{system},fake", repeats=1, options=options)
    rows = by_system(outcome)
    assert (rows[system]["status"], outcome.exit_code) == (status, code)
    assert words in rows[system]["reason"]
    assert "\n" not in rows[system]["reason"]
    assert rows["fake"]["status"] == "ok"
    assert rows["fake"]["verdict"] == "reference"
    assert rows[system].get("ratio") is None


def test_system_that_fails_its_gate_is_not_timed(launch):
    outcome = launch("incorrect,fake")
    assert not samples(outcome, system="incorrect")


def test_systems_run_alone_after_the_reference_fails(launch):
    outcome = launch("crash,slow", options=("reference=crash",))
    rows = by_system(outcome)
    assert rows["crash"]["status"] == "crash"
    assert rows["slow"]["status"] == "ok"
    assert rows["slow"].get("ratio") is None
    assert outcome.exit_code == 3


def test_run_leaves_no_processes(launch):
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    launch("fake,hang,crash,slow", repeats=1, options=("cell_timeout_s=1",))
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before


def test_missing_system_gets_its_stand_in_unless_named(launch):
    outcome = launch("fake,absent", named=False)
    rows = by_system(outcome)
    assert rows["absent"]["status"] == "missing_dep"
    assert "pip install absent" in rows["absent"]["reason"]
    assert (rows["slow"]["status"], rows["slow"]["stand_in_for"]) == ("ok", "absent")
    assert outcome.exit_code == 0
    outcome = launch("fake,absent", named=True)
    assert set(by_system(outcome)) == {"fake", "absent"}
    assert outcome.exit_code == 6


def test_unsupported_system_fails_the_run_only_if_named(launch):
    assert launch("fake,unable", named=False).exit_code == 0
    assert launch("fake,unable", named=True).exit_code == 3


def test_spinning_worker_makes_its_row_doubtful(launch):
    outcome = launch("fake,spin,slow", repeats=1, options=("speed=0.05",))
    rows = by_system(outcome)
    assert "'spin'" in rows["spin"]["doubtful"]
    assert not any(
        "'spin'" in rows[s]["doubtful"] for s in ("fake", "slow")
    )  # they did not cause it
    assert metric(outcome, "fake", "epoch", "idle_cpu_share")["value"] > 0.1


def test_doubtful_pairs_are_repeated_and_leave_no_verdict(launch, observer):
    outcome = launch("fake,spin", repeats=3, options=("speed=0.1", "warmup_epochs=0"))
    rows = by_system(outcome)
    assert (rows["spin"]["status"], outcome.exit_code) == ("unstable", 3)
    assert rows["spin"]["ratio"] > 0 and rows["spin"]["verdict"] == ""
    assert "'spin' used" in rows["spin"]["doubtful"]
    assert rows["spin"]["reason"].startswith("the worker of 'spin' used")
    assert "so there is no verdict; run again on a quiet machine" in rows["spin"]["reason"]
    void = {s["life"] for s in samples(outcome) if s["void"]}
    # All three planned pairs. On a busy machine, a worker may spin too little to be detected.
    assert 1 <= len(void) <= 2 and rows["spin"]["pairs"] == rows["spin"]["lives"] == 3
    assert rows["spin"]["stopped"] in ("precise", "pairs", "called", "budget", "doubt")
    assert sum("is void" in n for n in observer.notes) == len(void)


def test_output_of_a_system_goes_to_its_log(launch):
    outcome = launch("fake,chatty")
    assert by_system(outcome)["chatty"]["status"] == "ok"
    (log,) = (outcome.folder / "logs").glob("*-chatty.log")
    assert "chatter on stdout" in log.read_text()
    assert "more chatter" in log.read_text()


def test_run_folder_is_complete_and_contains_no_local_paths(launch, tmp_path):
    outcome = launch("fake,slow,crash")
    names = {p.name for p in outcome.folder.iterdir()}
    assert names >= {"cells.csv", "samples.csv", "run.json", "definition.toml", "logs"}
    assert not [p for p in outcome.folder.rglob(".tmp-*")]
    record = json.loads((outcome.folder / "run.json").read_text())
    assert record["finished"] is True
    assert set(record) >= {
        "experiment", "definition_hash", "revision", "versions", "machine", "load_before",
        "load_after", "profile",
    }  # fmt: skip
    assert str(tmp_path) not in (outcome.folder / "run.json").read_text()
    assert str(tmp_path) not in (outcome.folder / "cells.csv").read_text()


def test_second_run_in_a_folder_is_refused(launch, tmp_path):
    from gnnbench.harness.folder import locked

    with locked(tmp_path / "results"), pytest.raises(UsageError, match="another run is writing"):
        launch("fake")
    assert launch("fake").exit_code == 0


def interrupt_when(condition):
    def watch():
        while not condition():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()


def test_ctrl_c_keeps_finished_pairs_and_resume_continues(launch, tmp_path):
    flag = tmp_path / "flag"
    options = (f'waits.flag="{flag}"',)
    interrupt_when(flag.exists)
    with pytest.raises(campaign.Interrupted) as stopped:
        launch("fake,slow,waits", repeats=3, options=options)
    run = reader.read(stopped.value.folder)
    # The interrupted pair does not count.
    assert {r["system"]: r["n"] for r in run.cells} == {"fake": 6, "slow": 6}
    assert run.record["finished"] is False
    worker = int(flag.read_text())
    assert not psutil.pid_exists(worker)
    kept = len(run.samples)
    outcome = launch("fake,slow,waits", repeats=3, options=options, resume=True)
    assert outcome.folder == stopped.value.folder
    rows = by_system(outcome)
    assert {s: r["n"] for s, r in rows.items()} == {"fake": 12, "slow": 6, "waits": 6}
    assert rows["waits"]["pairs"] == 3
    after = samples(outcome)
    assert after[:kept] == run.samples
    assert not [s for s in after[kept:] if s["system"] == "slow"]
    assert {s["life"] for s in after if s["system"] == "waits" and s["void"]} == {0}
    assert {s["life"] for s in after if s["system"] == "waits" and not s["void"]} == {1, 2, 3}


def test_dry_run_of_resume_lists_the_remaining_pairs(launch, tmp_path, monkeypatch):
    flag = tmp_path / "flag"
    options = (f'waits.flag="{flag}"',)
    interrupt_when(flag.exists)
    with pytest.raises(campaign.Interrupted):
        launch("fake,slow,waits", options=options)
    requests = []
    with monkeypatch.context() as patch:
        patch.setattr(campaign, "run", lambda request, observer: requests.append(request))
        launch("fake,slow,waits", options=options, resume=True)
    remaining = campaign.unfinished(requests[0])
    assert [c.system for c in remaining.cells] == ["fake", "waits"] and len(remaining.pairs) == 1
    launch("fake,slow,waits", options=options, resume=True)
    assert not campaign.unfinished(requests[0]).pairs


def test_resume_of_a_finished_run_measures_nothing(launch):
    first = launch("fake,slow")
    again = launch("fake,slow", resume=True)
    assert again.folder == first.folder
    assert again.rows == first.rows


def test_resume_refuses_changed_settings_code_and_machine(launch, monkeypatch):
    from gnnbench.measure import machine

    with pytest.raises(UsageError, match="no run of"):
        launch("fake", resume=True)
    first = launch("fake")
    with pytest.raises(
        UsageError, match=r"is another one: measure\.pairs was \[2\] and is \[3\]; give the same"
    ):
        launch("fake", repeats=3, resume=True)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "changed")
    with pytest.raises(UsageError, match="the code changed since"):
        launch("fake", resume=True)
    assert launch("fake", resume=True, force=True).folder == first.folder
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    for what, change in (
        ("the machine", ("fingerprint", lambda hardware: "another")),
        ("a package's version", ("versions", lambda: {"dgl": "another"})),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(machine, *change)
            with pytest.raises(UsageError, match=f"{what} changed since .* cannot be pooled"):
                launch("fake", resume=True, force=True)


def test_resume_refuses_a_plugin_whose_sources_changed(launch, monkeypatch, tmp_path):
    """Otherwise a changed sampler would keep the verdict on its old version."""
    from gnnbench.core import registry

    changed = tmp_path / "changed.py"
    changed.write_text("")
    first = launch("fake,slow")
    record = reader.read_record(first.folder)["plugins"]
    assert record.keys() == {"system fake", "system slow"}
    assert all(len(one["source_digest"]) == 16 for one in record.values())
    assert launch("fake,slow", resume=True).folder == first.folder
    monkeypatch.setattr(registry, "_sources", lambda module: [changed])
    with pytest.raises(
        UsageError, match=r"^the module '[a-z_]+' changed since 'run-.*--resume --f"
    ):
        launch("fake,slow", resume=True)
    assert launch("fake,slow", resume=True, force=True).folder == first.folder


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
