"""Interrupted and killed runs of the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from cli_process import RUN, start
from fakes import fake_environment


@pytest.fixture
def inside(fakes, said):
    """The same in this process, for what starts no other: code, standard output and error."""
    return said


GRAPH = "products~twin@0.001"


def wait_for(condition, process, limit=60):
    deadline = time.monotonic() + limit
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_is_code_130_and_one_sentence(tmp_path):
    flag = tmp_path / "flag"
    words = (*RUN, "--systems", "fake,waits", "-o", f'waits.flag="{flag}"')
    process = start(*words, cwd=tmp_path)
    wait_for(flag.exists, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    note, *_, end = err.splitlines()
    assert note.startswith("waits runs with flag=") and "--resume" in end
    assert not psutil.pid_exists(int(flag.read_text()))


@pytest.mark.parametrize("words", [("advise", GRAPH), ("data", "prepare", GRAPH)])
def test_ctrl_c_of_what_keeps_nothing_is_a_word(inside, monkeypatch, words):
    """Whatever the parser of command lines makes of it on its way."""
    from gnnbench.datasets import catalog, prepare

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "load_dataset", interrupted)
    monkeypatch.setattr(catalog, "prepare", interrupted)
    code, out, err = inside(*words)
    assert (code, out, err.splitlines()[-1]) == (130, "", "gnnbench: interrupted")


def test_ctrl_c_while_figures_are_drawn_says_how_to_draw_them(inside, monkeypatch):
    from gnnbench.analysis import plots

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(plots, "draw", interrupted)
    code, out, err = inside(*RUN, "--systems", "fake")
    assert (code, out) == (130, "")
    assert "interrupted; all cells are measured, 'gnnbench plot " in err.splitlines()[-1]


def test_kill_nine_loses_at_most_the_block_in_flight(tmp_path):
    """Runs through a script that pins the source digest: the tree may change meanwhile."""
    flag = tmp_path / "flag"
    script = (
        "from gnnbench.measure import machine\n"
        "machine.source_digest = lambda native=True: 'same'\n"
        "from gnnbench.cli import main; main()\n"
    )
    words = (*RUN[:-1], "2", "--systems", "fake,slow,waits", "-o", f'waits.flag="{flag}"')

    def begin(*more):
        return subprocess.Popen(
            [sys.executable, "-c", script, *words, *more], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **fake_environment()},
        )  # fmt: skip

    process = begin()
    wait_for(flag.exists, process)
    worker = int(flag.read_text())
    process.kill()
    process.communicate(timeout=60)
    for _ in range(200):  # the kernel ends orphans
        if not psutil.pid_exists(worker) or psutil.Process(worker).status() == "zombie":
            break
        time.sleep(0.02)
    else:
        pytest.fail("the worker outlived its parent")
    (folder,) = (tmp_path / "results" / "breakdown").iterdir()
    kept = (folder / "samples.jsonl").read_bytes()
    assert kept.count(b"\n") >= 12  # two pairs of the first comparison, and more
    process = begin("--resume", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    report = json.loads(out)
    assert {c["system"]: c["pairs"] for c in report["cells"] if c["system"] != "fake"} == {
        "slow": 2, "waits": 2,
    }  # fmt: skip
    assert (folder / "samples.jsonl").read_bytes().startswith(kept)


def test_the_runner_of_fakes_imports_no_torch(tmp_path):
    code = (
        "import sys\nsys.argv = ['gnnbench', *sys.argv[1:]]\nfrom gnnbench.cli import app\n"
        "app(standalone_mode=False)\nprint('torch' in sys.modules)"
    )
    words = (*RUN, "--systems", "fake", "--dry-run")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, **fake_environment()}, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/none", "x" * 300, "new/folder"])
def test_a_dry_run_refuses_a_folder_that_a_run_cannot_write_to(inside, tmp_path, out):
    (tmp_path / "file").touch()
    words = [*RUN, "--systems", "fake", "--out", out]
    code, _, err = inside(*words, "--dry-run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
    if out == "new/folder":
        assert code == 0
        return
    assert code == 2 and f"cannot write to '{out}'" in err
    assert inside(*words) == (2, "", err)
