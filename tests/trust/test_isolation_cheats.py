"""Processes that a worker leaves behind, and changes of cores and priorities, are detected."""

import os
import re
import subprocess

import psutil
import pytest
from planted import register, run_systems
from warm import Cold

SYSTEMS = {
    "honest": "Honest", "longer": "Longer", "honest-child": "HonestChild",
    "daemon-at-setup": "DaemonAtSetup", "daemon-in-an-epoch": "DaemonInAnEpoch",
    "bare-daemon": "BareDaemon", "reniced": "Reniced", "pinned": "Pinned",
    "pins-the-other": "PinsTheOther", "stops-the-other": "StopsTheOther",
    "after-its-answer": "WorksAfterItsAnswer",
}  # fmt: skip
HONEST = ("honest", "longer", "honest-child")
DAEMONS = ("daemon-at-setup", "daemon-in-an-epoch", "bare-daemon")
SAMPLING = ("bare-daemon", "reniced")  # their epochs sample only; those of the others train
CORES = "the cores that a thread may run on were changed, around [1-9] of [0-9] epochs"
DOUBTFUL = {
    "reniced": "the priority of a thread was changed, around [1-9] of [0-9] epochs",
    "pinned": CORES,
    "pins-the-other": CORES,
    "stops-the-other": "the worker of 'honest' was stopped by a signal",
    "after-its-answer": "used [0-9]+% of a core between its commands|of a core while",
}


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    """The rows of each system: of an honest one in several runs, of a cheat in one."""
    register(patch, "isolation_cheats", SYSTEMS)
    patch.setattr(subprocess, "Popen", Cold)  # a daemon is known by its worker's variables
    late = "after-its-answer"  # seen by CPU time, of which little is rounding
    once = [s for s in SYSTEMS if s not in (late, "longer", *SAMPLING)]
    out = tmp_path_factory.mktemp("isolation")
    rows = run_systems(["longer", late], out / "late", "longer", rounds=4).rows
    rows += run_systems(once, out / "whole", "honest").rows
    sampling = ["honest", "honest-child", *SAMPLING]
    rows += run_systems(sampling, out / "sampling", "honest", options=("until=sample",)).rows
    return {system: [r for r in rows if r["system"] == system] for system in SYSTEMS}


@pytest.mark.parametrize("system", HONEST)
def test_honest_twins_pass(rows, system):
    assert len(rows[system]) == (1 if system == "longer" else 2)
    for row in rows[system]:
        assert (row["status"], row["reason"]) == ("ok", "")
        if system == "honest-child":  # references report what their partners did
            assert not re.search("priority|cores that|between its", row["doubtful"])


@pytest.mark.parametrize("system", DAEMONS)
def test_a_process_that_is_left_behind_is_found_and_ended(rows, system):
    (row,) = rows[system]
    assert row["status"] == "incorrect", row
    assert re.match("1 of its processes .* outlived their parent", row["reason"]), row["reason"]
    here = psutil.Process()
    left = [p for p in here.children() if os.getsid(p.pid) not in (os.getsid(0), 0)]
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize("system", DOUBTFUL)
def test_what_cannot_be_proven_is_doubtful(rows, system):
    if system.startswith("pin") and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a single core leaves nothing to change")
    (row,) = rows[system]
    assert row["status"] == "ok"
    assert re.search(DOUBTFUL[system], row["doubtful"]), row["doubtful"]
