"""Failed and hung trials are rows; all others run, and a run can be resumed."""

import csv
import json
import subprocess
import sys
import time

import pytest
from emulated import NAME, needs_root

from gnnbench.analysis import multi_machine
from gnnbench.contrib.emulated_network import __main__ as command
from gnnbench.contrib.emulated_network import compare as comparing
from gnnbench.contrib.emulated_network import life, network, start
from gnnbench.contrib.emulated_network.compare import Comparison, compare, failed_lives
from gnnbench.contrib.emulated_network.life import OURS, rows_of
from gnnbench.contrib.emulated_network.network import Network
from gnnbench.contrib.emulated_network.start import LifeFailedError
from gnnbench.core import process_activity
from gnnbench.core.errors import UsageError
from gnnbench.schema.reader import read_machines

COMPARISON = Comparison(
    dataset="ogbn_arxiv~twin@0.01", machines=(2,), rates=(1.0, 10.0), lives=2, fanouts=(3, 2),
    method="metis", peer=False, hops=(1, 2),
)  # fmt: skip
REPORTED = {
    "wall_s": 1.0, "sample_s": 0.5, "features_s": 0.25, "steps": 2, "seeds": 20, "edges": [4, 5],
    "nodes": [3, 3], "losses": [2.0, 1.0], "rounds": 8, "size_calls": 4, "reduces": 2,
    "sample_bytes": 1, "features_bytes": 2, "size_bytes": 3, "reduced_bytes": 4,
    "link_sent_bytes": 50, "link_received_bytes": 50,
}  # fmt: skip


def test_hung_trial_ends_within_a_minute():
    detected_s = process_activity.SILENCE_S + 2 * start.LOOK_S
    assert process_activity.SILENCE_S == 45.0 and detected_s + 2 * network._ENDING < 60


@pytest.fixture
def fake_trials(monkeypatch):
    """Trials that take no time; returns keys of those that ran and of those that must fail."""
    monkeypatch.setattr(network, "need", lambda: None)
    run, wrong = [], set()

    def live(trial, folder):
        run.append(trial.key)
        common = comparing.replace(life._common(trial), others_cores=0.0)
        epochs = enumerate(trial.plan.epochs)
        timed = [
            {**REPORTED, "place": p, "system": s, "epoch": n, "rank": 0} for p, (s, n) in epochs
        ]
        if trial.key in wrong:
            reason = "machine 2 ended by SIGKILL"
            failed = comparing.replace(common, status="crash", reason=reason)
            return [comparing.replace(failed, system=s) for s in comparing.SYSTEMS], []
        rows = rows_of(comparing.replace(common, status="ok"), timed)
        return rows, [{**trial.setting, **row} for row in timed]

    monkeypatch.setattr(comparing, "live", live)
    return run, wrong


def quiet(text):
    """Ignore progress messages."""


def table(out):
    with (out / "machines.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_failed_trial_is_rows_and_runs_again(fake_trials, tmp_path):
    run, wrong = fake_trials
    compare(COMPARISON, tmp_path / "complete", quiet)
    keys, complete = run.copy(), table(tmp_path / "complete")
    assert len(keys) == len(set(keys)) == 6  # two trials at two rates; rounds of one and two hops
    out = tmp_path / "run"
    wrong |= {keys[1], keys[5]}
    run.clear()
    compare(COMPARISON, out, quiet)
    assert run == keys and failed_lives(out) == 2
    failed = [row for row in table(out) if row["status"] != "ok"]
    assert [row["system"] for row in failed] == 2 * ["vanilla", "hybrid", "hybrid-fused"]
    assert all(row["reason"] and not row["wall_s"] for row in failed)
    read = read_machines(out)
    assert len(read.machines) + 6 == len(table(out)) and len(read.failed_lives) == 6
    assert len(multi_machine.with_times(multi_machine.settings(read.machines))) == 2
    remarks = " ".join(multi_machine.remarks(read))
    assert "Trial 1 of hybrid (2 machines, 10 Gbit/s) failed, crash: machine 2 ended by" in remarks
    wrong.clear()
    run.clear()
    compare(COMPARISON, out, quiet, resume=True)
    assert run == [keys[1], keys[5]]
    assert table(out) == complete and failed_lives(out) == 0
    lines = (out / "samples.jsonl").read_text().splitlines()
    assert len(lines) == len(complete)
    run.clear()
    compare(COMPARISON, out, quiet, resume=True)
    assert run == [] and table(out) == complete


def test_interrupted_run_resumes(fake_trials, tmp_path):
    run, _ = fake_trials
    out = tmp_path / "run"

    def say(text):
        if len(run) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(COMPARISON, out, say)
    started, done = json.loads((out / "run.json").read_text()), run.copy()
    assert not started["finished"] and len({r["life"] for r in table(out)}) == 2
    with (out / "samples.jsonl").open("a") as file:  # of a trial that was killed before its rows
        line = {"machines": 2, "rate_gbit_s": 10.0, "life": 1, "program": OURS, "fanouts": [3, 2]}
        file.write(json.dumps({**line, "batch_size": 1000, "hidden": 256, "epoch": 7}) + "\n")
    run.clear()
    compare(COMPARISON, out, quiet, resume=True)
    assert len(run) == 3 and not set(run) & set(done)
    ended = json.loads((out / "run.json").read_text())
    assert ended["finished"] and ended["started"] == started["started"]
    lines = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    assert len(lines) == len(table(out)) and not any(line["epoch"] == 7 for line in lines)


def test_resume_refuses_another_definition_or_code(fake_trials, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with pytest.raises(UsageError, match="there is no run in"):
        compare(COMPARISON, out, quiet, resume=True)
    compare(COMPARISON, out, quiet)
    with pytest.raises(UsageError, match="holds a run already; go on with --resume"):
        compare(COMPARISON, out, quiet)
    other = comparing.replace(COMPARISON, hidden=8)
    with pytest.raises(UsageError, match=r"hidden \(was 256, is 8\) changed since"):
        compare(other, out, quiet, resume=True)
    revision = {**comparing.machine.revision(), "source_digest": "0"}
    monkeypatch.setattr(comparing.machine, "revision", lambda: revision)
    with pytest.raises(UsageError, match="the code changed since"):
        compare(COMPARISON, out, quiet, resume=True)


def test_failed_trials_set_the_exit_code(fake_trials, tmp_path, monkeypatch, capsys):
    run, wrong = fake_trials
    words = [
        "compare",
        COMPARISON.dataset,
        "--out",
        str(tmp_path),
        "--no-peer",
        "--method",
        "metis",
    ]
    words += ["--machines", "2", "--lives", "1"]
    monkeypatch.setattr(sys, "argv", ["gnnbench.contrib.emulated_network", *words])
    wrong |= {(0, OURS, 2, 1.0, 1000, 256, (15, 10, 5))}
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 3
    error = capsys.readouterr().err
    assert error.startswith("gnnbench: 1 of the lives failed") and "--resume runs" in error
    wrong.clear()
    run.clear()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--resume"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert not ended.value.code and len(run) == 1


# Wait for the command itself: the earlier processes (ip, sh) also belong to the namespace.
STOP_WHEN_STARTED = """
until pids=$(ip netns pids "$1") && [ -n "$pids" ] && \\
  tr '\\0' ' ' < "/proc/${pids%%[!0-9]*}/cmdline" | grep -q 'iter(int'; do sleep 0.1; done
kill -STOP $pids
"""


@needs_root
@pytest.mark.parametrize("kind", ["idle", "stopped"])
def test_hanging_processes_are_killed(monkeypatch, kind):
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.5)
    monkeypatch.setattr(start, "LOOK_S", 0.3)
    busy = [sys.executable, "-c", "[0 for _ in iter(int, 1)]"]
    commands = [["sleep", "1000"]] * 2 if kind == "idle" else [busy, busy]
    with network.made(Network(2, 1.0, name=NAME)) as emulated:
        ender = None
        if kind == "stopped":
            ender = subprocess.Popen(["sh", "-c", STOP_WHEN_STARTED, "sh", emulated.namespaces[1]])
        began = time.monotonic()
        match = "on no machine anything" if kind == "idle" else "a process of machine 2 was stopped"
        try:
            with pytest.raises(LifeFailedError, match=match) as raised:
                start.run(emulated, commands, [None, None], watched=True, limit=120)
        finally:
            if ender is not None:
                ender.kill()
                ender.wait()
        assert raised.value.status == "crash" and time.monotonic() - began < 30


@needs_root
def test_process_that_waits_for_a_slow_link_does_not_hang(monkeypatch, tmp_path):
    """Bytes on the link count as activity while all processes are idle."""
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.5)
    monkeypatch.setattr(start, "LOOK_S", 0.3)
    place = f"('{network._SUBNET}.1', 29401)"
    send = f"import socket, time; time.sleep(0.5); s = socket.create_connection({place})"
    take = "import socket; s = socket.create_server(('', 29401)).accept()[0]"
    words = [
        [sys.executable, "-c", f"{take}\nwhile s.recv(1 << 20): pass"],
        [sys.executable, "-c", f"{send}; s.sendall(bytes(1 << 19))"],
    ]
    with network.made(Network(2, 0.001, name=NAME)) as emulated:  # more than four seconds
        start.run(emulated, words, [None, None], watched=True, limit=60)


@needs_root
def test_trial_with_a_killed_rank_is_rows(monkeypatch, tmp_path):
    """With real processes: a rank dies, its trial is reported, its network is removed."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "data"))
    original = life.start.run

    def kills(emulated, commands, logs, **options):
        if options.get("watched"):
            namespace = emulated.namespaces[1]
            until = f"until ip netns pids {namespace} | grep -q .; do sleep 0.1; done; sleep 0.5"
            subprocess.Popen(["sh", "-c", f"{until}; kill -9 $(ip netns pids {namespace})"])
        original(emulated, commands, logs, **options)

    monkeypatch.setattr(life.start, "run", kills)
    few = comparing.replace(COMPARISON, rates=(1.0,), lives=1, hops=(), name=NAME, method="random")
    out = tmp_path / "run"
    compare(few, out, quiet)
    assert {row["status"] for row in table(out)} == {"crash"}
    assert {row["reason"] for row in table(out)} == {
        "machine 2 ended by SIGKILL; all others were ended"
    }
    assert network.namespaces(NAME) == [] and failed_lives(out) == 1
