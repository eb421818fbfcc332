"""Runs on a busy machine: doubtful and marked, never incorrect, with every ratio."""

import os
import re
import signal
import subprocess
import threading
import time

import pytest
from fakes import by_system

from gnnbench.analysis import render, table
from gnnbench.measure import machine
from gnnbench.schema import reader

BUSY_SECONDS = machine.busy_seconds  # before fixtures replace it
# Their parent ends at once: children of this process would be its own work.
LOOP = "timeout 120 sh -c 'while :; do :; done' > /dev/null & echo $!"


@pytest.fixture
def busy(fakes, monkeypatch):
    """Two processes that use a core each, seen by the runner."""
    monkeypatch.setattr(machine, "busy_seconds", BUSY_SECONDS)
    pids = [int(subprocess.check_output(["sh", "-c", LOOP])) for _ in range(2)]
    yield
    for pid in pids:  # of timeout, which ends its child
        os.kill(pid, signal.SIGTERM)


def test_ratios_of_a_busy_machine_are_marked(busy, launch):
    outcome = launch("fake,slow", repeats=2, options=("speed=0.03",))
    rows = by_system(outcome)
    assert {r["status"] for r in rows.values()} == {"ok"} and outcome.exit_code == 0
    slow = rows["slow"]
    assert re.search(r"other programs used [0-9.]+ cores meanwhile", slow["doubtful"])
    assert slow["pairs"] == 2 and slow["ratio_ci_low"] <= slow["ratio"] <= slow["ratio_ci_high"]
    run = reader.read(outcome.folder)
    (line,) = render.busy(run)
    assert re.match(r"other programs used [0-9.]+ cores in the disturbed rounds: .*sh \(", line)
    (part,) = table.main_tables(run.cells, run.metrics)
    (told,) = [line for line in part.lines if line["system"].startswith("slow")]
    assert told["system"].endswith("(?)")
    assert re.fullmatch(r"[0-9.]+x \[.*\] \(\?\)", told["speed-up"])


def test_a_comparison_of_a_busy_machine_has_all_pairs_and_no_verdict(busy, launch):
    outcome = launch("fake,slow", repeats=3, options=("speed=0.02",))
    slow = by_system(outcome)["slow"]
    assert (slow["status"], slow["pairs"], slow["verdict"]) == ("unstable", 3, "")
    assert slow["ratio"] < 1 and "other programs used" in slow["doubtful"]
    lives = {(s["life"], s["void"]) for s in reader.read(outcome.folder).samples}
    assert sum(void for _, void in lives) == 2


def test_a_stopped_worker_is_noted_in_its_row(launch, tmp_path):
    flag = tmp_path / "flag"

    def stop():
        while not flag.exists() or not flag.read_text():
            time.sleep(0.01)
        worker = int(flag.read_text())
        os.kill(worker, signal.SIGSTOP)
        time.sleep(2.2)  # longer than two looks are apart
        os.kill(worker, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = launch("fake,waits", repeats=1, options=(f'waits.flag="{flag}"',))
    thread.join()
    row = by_system(outcome)["waits"]
    assert row["status"] == "ok" and row["ratio"] > 0
    assert re.search(r"the worker of 'waits' was stopped by a signal for [1-9] s", row["doubtful"])
