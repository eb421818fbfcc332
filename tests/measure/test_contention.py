"""CPU use of other programs by name, and run-queue delay."""

import os
import subprocess

import pytest

from gnnbench.measure import contention
from gnnbench.measure.contention import Process, named, others_cpu

BEFORE = {
    (1, 0): Process("init", 0, 9.0, 0), (10, 5): Process("gnnbench", 1, 3.0, 0),
    (11, 6): Process("worker", 10, 1.0, 1), (20, 7): Process("cc1plus", 1, 2.0, 1),
    (30, 8): Process("elsewhere", 1, 0.0, 7), (40, 9): Process("gone", 1, 4.0, 0),
}  # fmt: skip
AFTER = {
    (1, 0): Process("init", 0, 9.0, 0), (10, 5): Process("gnnbench", 1, 5.0, 0),
    (11, 6): Process("worker", 10, 9.0, 1), (12, 50): Process("rank", 11, 9.0, 1),
    (20, 7): Process("cc1plus", 1, 2.5, 1), (21, 60): Process("cc1plus", 20, 1.0, 0),
    (30, 8): Process("elsewhere", 1, 8.0, 7), (40, 99): Process("new", 1, 0.25, 0),
}  # fmt: skip


def test_cpu_use_of_others_excludes_own_processes():
    assert others_cpu(BEFORE, AFTER, 10, (0, 1)) == {"cc1plus": 1.5, "new": 0.25}


def test_orphaned_worker_is_not_foreign():
    after = {(11, 6): Process("worker", 1, 9.0, 1)}
    assert others_cpu(BEFORE, after, 10, (0, 1)) == {}


@pytest.mark.parametrize("used,foreign,text", [
    ({"cc1plus": 9.0, "make": 2.0}, 1.1, "cc1plus (0.9), make (0.2)"),
    ({"cc1plus": 9.0, "idle": 0.1}, 0.9, "cc1plus (0.9)"),
    ({"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}, 1.0, "a (0.4), b (0.3), c (0.2)"),
    ({"make": 1.0}, 1.5, "make (0.1), and programs that ended meanwhile or are not visible from"
     " here"),
    ({}, 1.5, "programs that ended meanwhile or are not visible from here"),
    ({str(n): 0.4 for n in range(9)}, 0.4, "many small programs"),
])  # fmt: skip
def test_named_programs_with_their_cores(used, foreign, text):
    assert named(used, 10.0, foreign) == text


def test_process_name_has_no_escapes(tmp_path):
    """The program's own name contains an escape sequence."""
    program = tmp_path / "\x1b[31mred"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        by_pid = {key[0]: process for key, process in contention.processes().items()}
        child.kill()
    assert by_pid[child.pid].name == "?[31mred"
    assert by_pid[child.pid].parent == os.getpid()


def test_run_delay_grows_and_is_0_for_ended_processes():
    before = contention.run_delay(os.getpid())
    own = contention.own_run_delay_s()
    assert 0 <= before.main <= before.total
    assert contention.run_delay(os.getpid()).main >= before.main
    assert contention.own_run_delay_s() >= own >= 0
    child = subprocess.Popen(["true"])
    child.wait()
    assert contention.run_delay(child.pid) == (0.0, 0.0)
