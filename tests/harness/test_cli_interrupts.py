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

GRAPH = "products~twin@0.001"


def wait_for(condition, process, limit=60):
    deadline = time.monotonic() + limit
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_exits_with_130_and_a_hint(tmp_path):
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
def test_ctrl_c_of_commands_without_results_prints_interrupted(run_inside, monkeypatch, words):
    """The command-line parser must not replace the exit code."""
    from gnnbench.datasets import catalog, prepare

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "load_dataset", interrupted)
    monkeypatch.setattr(catalog, "prepare", interrupted)
    code, out, err = run_inside(*words)
    assert (code, out, err.splitlines()[-1]) == (130, "", "gnnbench: interrupted")


def test_ctrl_c_while_drawing_names_the_plot_command(run_inside, monkeypatch):
    from gnnbench.analysis import plots

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(plots, "draw", interrupted)
    code, out, err = run_inside(*RUN, "--systems", "fake")
    assert (code, out) == (130, "")
    assert "interrupted; all cells are measured, 'gnnbench plot " in err.splitlines()[-1]


def test_sigkill_loses_at_most_the_current_block(tmp_path):
    """A script pins the source digest, because the checkout may change during the test."""
    flag = tmp_path / "flag"
    script = (
        "from gnnbench.measure import machine\n"
        "machine.source_digest = lambda native=True: 'same'\n"
        "from gnnbench.cli import main; main()\n"
    )
    words = (*RUN, "--systems", "fake,slow,waits", "-o", f'waits.flag="{flag}"')

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
    for _ in range(200):  # the kernel kills orphans
        if not psutil.pid_exists(worker) or psutil.Process(worker).status() == "zombie":
            break
        time.sleep(0.02)
    else:
        pytest.fail("the worker outlived its parent")
    (folder,) = (tmp_path / "results" / "breakdown").iterdir()
    kept = (folder / "samples.jsonl").read_bytes()
    assert kept.count(b"\n") >= 6  # the pair of the first comparison
    process = begin("--resume", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    report = json.loads(out)
    pairs = {c["system"]: c["pairs"] for c in report["cells"] if c["system"] != "fake"}
    assert pairs == {"slow": 1, "waits": 1}
    assert (folder / "samples.jsonl").read_bytes().startswith(kept)


def test_runner_of_fakes_does_not_import_torch(tmp_path):
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
def test_dry_run_refuses_an_unwritable_folder(run_inside, tmp_path, out):
    (tmp_path / "file").touch()
    words = [*RUN, "--systems", "fake", "--out", out]
    code, _, err = run_inside(*words, "--dry-run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
    if out == "new/folder":
        assert code == 0
        return
    assert code == 2 and f"cannot write to '{out}'" in err
    assert run_inside(*words) == (2, "", err)
