"""Runs on a busy machine keep their ratios, marked as doubtful, and are never incorrect."""

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
# Their parent ends at once: CPU time of children would count as this process's own.
LOOP = "timeout 120 sh -c 'while :; do :; done' > /dev/null & echo $!"


@pytest.fixture
def busy(fakes, monkeypatch):
    """Runs two processes that use a core each and are visible to the runner."""
    monkeypatch.setattr(machine, "busy_seconds", BUSY_SECONDS)
    pids = [int(subprocess.check_output(["sh", "-c", LOOP])) for _ in range(2)]
    yield
    for pid in pids:  # the process of `timeout`, which ends its child
        os.kill(pid, signal.SIGTERM)


def test_busy_machine_marks_ratios(busy, launch):
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
    (slow_line,) = [line for line in part.lines if line["system"].startswith("slow")]
    assert slow_line["system"].endswith("(?)")
    assert re.fullmatch(r"[0-9.]+x \[.*\] \(\?\)", slow_line["speed-up"])


def test_busy_machine_leaves_all_pairs_and_no_verdict(busy, launch):
    outcome = launch("fake,slow", repeats=3, options=("speed=0.02",))
    slow = by_system(outcome)["slow"]
    assert (slow["status"], slow["pairs"], slow["verdict"]) == ("unstable", 3, "")
    assert slow["ratio"] < 1 and "other programs used" in slow["doubtful"]
    trials = {(s["life"], s["void"]) for s in reader.read(outcome.folder).samples}
    assert sum(void for _, void in trials) == 2


def test_stopped_worker_is_noted_in_its_row(launch, tmp_path):
    flag = tmp_path / "flag"

    def stop():
        while not flag.exists() or not flag.read_text():
            time.sleep(0.01)
        worker = int(flag.read_text())
        os.kill(worker, signal.SIGSTOP)
        time.sleep(2.2)  # longer than the polling interval
        os.kill(worker, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = launch("fake,waits", repeats=1, options=(f'waits.flag="{flag}"',))
    thread.join()
    row = by_system(outcome)["waits"]
    assert row["status"] == "ok" and row["ratio"] > 0
    assert re.search(r"the worker of 'waits' was stopped by a signal for [1-9] s", row["doubtful"])
