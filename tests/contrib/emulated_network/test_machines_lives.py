"""Lives that fail or hang: rows that say so, all others run, and a run that goes on."""

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

WHAT = Comparison(
    dataset="ogbn_arxiv~twin@0.01", machines=(2,), rates=(1.0, 10.0), lives=2, fanouts=(3, 2),
    method="metis", peer=False, hops=(1, 2),
)  # fmt: skip
TOLD = {
    "wall_s": 1.0, "sample_s": 0.5, "features_s": 0.25, "steps": 2, "seeds": 20, "edges": [4, 5],
    "nodes": [3, 3], "losses": [2.0, 1.0], "rounds": 8, "size_calls": 4, "reduces": 2,
    "sample_bytes": 1, "features_bytes": 2, "size_bytes": 3, "reduced_bytes": 4,
    "link_sent_bytes": 50, "link_received_bytes": 50,
}  # fmt: skip


def test_a_hung_life_ends_within_a_minute():
    looked = process_activity.SILENCE_S + 2 * start.LOOK_S
    assert process_activity.SILENCE_S == 45.0 and looked + 2 * network._ENDING < 60


@pytest.fixture
def lives(monkeypatch):
    """Lives that take no time, and are counted; ``wrong`` has the keys of those that fail."""
    monkeypatch.setattr(network, "need", lambda: None)
    run, wrong = [], set()

    def live(turn, folder):
        run.append(turn.key)
        common = comparing.replace(life._common(turn), others_cores=0.0)
        epochs = enumerate(turn.plan.epochs)
        timed = [{**TOLD, "place": p, "system": s, "epoch": n, "rank": 0} for p, (s, n) in epochs]
        if turn.key in wrong:
            reason = "machine 2 ended by SIGKILL"
            failed = comparing.replace(common, status="crash", reason=reason)
            return [comparing.replace(failed, system=s) for s in comparing.SYSTEMS], []
        rows = rows_of(comparing.replace(common, status="ok"), timed)
        return rows, [{**turn.setting, **row} for row in timed]

    monkeypatch.setattr(comparing, "live", live)
    return run, wrong


def quiet(text):
    """Nothing is said."""


def table(out):
    with (out / "machines.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_failed_life_is_rows_and_runs_again(lives, tmp_path):
    run, wrong = lives
    compare(WHAT, tmp_path / "whole", quiet)
    every, whole = run.copy(), table(tmp_path / "whole")
    assert len(every) == len(set(every)) == 6  # two lives at two rates, rounds of one and two hops
    out = tmp_path / "run"
    wrong |= {every[1], every[5]}
    run.clear()
    compare(WHAT, out, quiet)
    assert run == every and failed_lives(out) == 2
    failed = [row for row in table(out) if row["status"] != "ok"]
    assert [row["system"] for row in failed] == 2 * ["vanilla", "hybrid", "hybrid-fused"]
    assert all(row["reason"] and not row["wall_s"] for row in failed)
    read = read_machines(out)
    assert len(read.machines) + 6 == len(table(out)) and len(read.failed_lives) == 6
    assert len(multi_machine.with_times(multi_machine.settings(read.machines))) == 2
    told = " ".join(multi_machine.remarks(read))
    assert "Trial 1 of hybrid (2 machines, 10 Gbit/s) failed, crash: machine 2 ended by" in told
    wrong.clear()
    run.clear()
    compare(WHAT, out, quiet, resume=True)
    assert run == [every[1], every[5]]
    assert table(out) == whole and failed_lives(out) == 0
    lines = (out / "samples.jsonl").read_text().splitlines()
    assert len(lines) == len(whole)
    run.clear()
    compare(WHAT, out, quiet, resume=True)
    assert run == [] and table(out) == whole


def test_an_interrupted_run_goes_on_where_it_was(lives, tmp_path):
    run, _ = lives
    out = tmp_path / "run"

    def say(text):
        if len(run) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(WHAT, out, say)
    begun, done = json.loads((out / "run.json").read_text()), run.copy()
    assert not begun["finished"] and len({r["life"] for r in table(out)}) == 2
    with (out / "samples.jsonl").open("a") as file:  # of a life that was killed before its rows
        line = {"machines": 2, "rate_gbit_s": 10.0, "life": 1, "program": OURS, "fanouts": [3, 2]}
        file.write(json.dumps({**line, "batch_size": 1000, "hidden": 256, "epoch": 7}) + "\n")
    run.clear()
    compare(WHAT, out, quiet, resume=True)
    assert len(run) == 3 and not set(run) & set(done)
    ended = json.loads((out / "run.json").read_text())
    assert ended["finished"] and ended["started"] == begun["started"]
    lines = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    assert len(lines) == len(table(out)) and not any(line["epoch"] == 7 for line in lines)


def test_another_definition_or_code_is_not_mixed_in(lives, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with pytest.raises(UsageError, match="there is no run in"):
        compare(WHAT, out, quiet, resume=True)
    compare(WHAT, out, quiet)
    with pytest.raises(UsageError, match="holds a run already; go on with --resume"):
        compare(WHAT, out, quiet)
    other = comparing.replace(WHAT, hidden=8)
    with pytest.raises(UsageError, match=r"hidden \(was 256, is 8\) changed since"):
        compare(other, out, quiet, resume=True)
    revision = {**comparing.machine.revision(), "source_digest": "0"}
    monkeypatch.setattr(comparing.machine, "revision", lambda: revision)
    with pytest.raises(UsageError, match="the code changed since"):
        compare(WHAT, out, quiet, resume=True)


def test_the_command_tells_of_failed_lives_by_its_exit_code(lives, tmp_path, monkeypatch, capsys):
    run, wrong = lives
    words = ["compare", WHAT.dataset, "--out", str(tmp_path), "--no-peer", "--method", "metis"]
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


# Waits for the command itself: processes before it (ip, sh) also belong to the namespace.
STOP_WHEN_STARTED = """
until pids=$(ip netns pids "$1") && [ -n "$pids" ] && \\
  tr '\\0' ' ' < "/proc/${pids%%[!0-9]*}/cmdline" | grep -q 'iter(int'; do sleep 0.1; done
kill -STOP $pids
"""


@needs_root
@pytest.mark.parametrize("how", ["idle", "stopped"])
def test_processes_that_hang_are_ended_though_none_has_ended(monkeypatch, how):
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.5)
    monkeypatch.setattr(start, "LOOK_S", 0.3)
    busy = [sys.executable, "-c", "[0 for _ in iter(int, 1)]"]
    commands = [["sleep", "1000"]] * 2 if how == "idle" else [busy, busy]
    with network.made(Network(2, 1.0, name=NAME)) as there:
        ender = None
        if how == "stopped":
            ender = subprocess.Popen(["sh", "-c", STOP_WHEN_STARTED, "sh", there.namespaces[1]])
        began = time.monotonic()
        match = "on no machine anything" if how == "idle" else "a process of machine 2 was stopped"
        try:
            with pytest.raises(LifeFailedError, match=match) as told:
                start.run(there, commands, [None, None], watched=True, limit=120)
        finally:
            if ender is not None:
                ender.kill()
                ender.wait()
        assert told.value.status == "crash" and time.monotonic() - began < 30


@needs_root
def test_who_waits_for_a_slow_link_does_not_hang(monkeypatch, tmp_path):
    """Bytes that the link carries are a sign, where no process has anything to do."""
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.5)
    monkeypatch.setattr(start, "LOOK_S", 0.3)
    place = f"('{network._SUBNET}.1', 29401)"
    send = f"import socket, time; time.sleep(0.5); s = socket.create_connection({place})"
    take = "import socket; s = socket.create_server(('', 29401)).accept()[0]"
    words = [
        [sys.executable, "-c", f"{take}\nwhile s.recv(1 << 20): pass"],
        [sys.executable, "-c", f"{send}; s.sendall(bytes(1 << 19))"],
    ]
    with network.made(Network(2, 0.001, name=NAME)) as there:  # four seconds and more
        start.run(there, words, [None, None], watched=True, limit=60)


@needs_root
def test_a_life_whose_rank_is_killed_is_rows(monkeypatch, tmp_path):
    """With real processes: a machine's rank dies, its life is told, its network is gone."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "data"))
    right = life.start.run

    def kills(there, commands, logs, **how):
        if how.get("watched"):
            namespace = there.namespaces[1]
            until = f"until ip netns pids {namespace} | grep -q .; do sleep 0.1; done; sleep 0.5"
            subprocess.Popen(["sh", "-c", f"{until}; kill -9 $(ip netns pids {namespace})"])
        right(there, commands, logs, **how)

    monkeypatch.setattr(life.start, "run", kills)
    few = comparing.replace(WHAT, rates=(1.0,), lives=1, hops=(), name=NAME, method="random")
    out = tmp_path / "run"
    compare(few, out, quiet)
    assert {row["status"] for row in table(out)} == {"crash"}
    assert {row["reason"] for row in table(out)} == {
        "machine 2 ended by SIGKILL; all others were ended"
    }
    assert network.namespaces(NAME) == [] and failed_lives(out) == 1
