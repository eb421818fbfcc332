"""The command as a user has it: a process, its two streams and its exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fakes import fake_environment

from gnnbench import cli


def start(*words, cwd, **env):
    return subprocess.Popen(
        [sys.executable, "-m", "gnnbench.cli", *words],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **fake_environment(), **env},
    )  # fmt: skip


def call(*words, cwd, **env):
    process = start(*words, cwd=cwd, **env)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def inside(fakes, tmp_path, monkeypatch, capsys):
    """The same in this process, for what starts no other: code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def said(*words):
        monkeypatch.setattr(sys, "argv", ["gnnbench", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return said


RUN = ("run", "breakdown", "--profile", "smoke", "-o", "reference=fake", "--repeats", "2")


def test_run_plot_and_json(tmp_path):
    code, out, err = call(*RUN, "--systems", "fake,slow,incorrect,crash", cwd=tmp_path)
    assert code == 4, err
    assert err == ""
    lines = out.splitlines()
    assert "slow" in out and "incorrect" in out
    cells, *figures = [Path(x) for x in lines if x.startswith("results/")]
    assert cells.name == "cells.csv"
    assert {f.name for f in figures} == {"breakdown.png", "breakdown.svg", "loss.png", "loss.svg"}
    for path in (cells, *figures):
        assert (tmp_path / path).stat().st_size > 100
        (tmp_path / path).rename(tmp_path / path.name)
    (tmp_path / "cells.csv").rename(tmp_path / cells)
    code, out, err = call("plot", "--json", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert [Path(p) for p in json.loads(out)["figures"]] == figures
    redrawn = (tmp_path / figures[1]).read_bytes()
    assert redrawn == (tmp_path / "breakdown.svg").read_bytes()
    assert b"incorrect" in redrawn and b"crash" in redrawn


def test_json_is_all_there_is_on_standard_output(tmp_path):
    code, out, err = call(*RUN, "--systems", "fake", "--json", cwd=tmp_path)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["cells"][0]["status"] == "ok"
    assert (tmp_path / found["run"] / "run.json").exists()


def test_a_definitions_pick_that_the_selected_system_lacks_is_left_out(inside):
    """``sampling`` asks for Floyd's of our samplers and leaves the packages their own."""
    words = ("run", "sampling", "--profile", "smoke", "--systems", "pyg")
    code, out, err = inside(*words, "--dry-run", "--json", "--pick", "floyd")
    assert (code, "unknown pick 'floyd'" in err) == (2, True)
    code, out, err = inside(*words, "--dry-run", "--json")
    assert code == 0, err
    assert {c["system"] for c in json.loads(out)["cells"]} == {"pyg"}


@pytest.mark.parametrize(
    "option,stage",
    [("features.ratio=0.3", "features=cache"), ("order.window=4", "order=greedy")],
)
def test_a_setting_of_another_stage_says_whose_it_is(inside, option, stage):
    words = ("run", "breakdown", "--profile", "smoke", "--dry-run", "-o", f"baseline.{option}")
    code, _, err = inside(*words)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{stage} has it: add -o baseline.{stage}" in err


def test_dry_run_writes_nothing(inside, tmp_path):
    code, out, _ = inside(*RUN, "--systems", "fake,absent", "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(c["system"], c["status"]) for c in found["cells"]] == [
        ("fake", "planned"), ("absent", "missing_dep"),
    ]  # fmt: skip
    assert found["estimated_time_s"] > 0
    assert found["estimated_peak_bytes"] > 2**20
    assert list(tmp_path.iterdir()) == []
    code, out, _ = inside(*RUN, "--systems", "fake", "--dry-run")
    assert (code, "GiB" in out) == (0, True)


@pytest.mark.parametrize(
    "words,message",
    [
        (("run", "brakdown"), "did you mean 'breakdown'?"),
        (("run", "breakdown", "--systems", "fak"), "did you mean 'fake'?"),
        (("run", "breakdown", "--datasets", "ogbn_arixv"), "did you mean 'ogbn_arxiv'?"),
        (("run", "breakdown", "--profile", "papr"), "did you mean 'paper'?"),
        (("run", "breakdown", "--device", "tpu"), "device"),
        (("run", "breakdown", "--systems", "fake", "-o", "batchsize=3"), "'batch_size'"),
        (("run", "breakdown", "--systems", "fake", "-o", "fake.sped=3"), "'speed'"),
        (("run", "breakdown", "--systems", "baseline", "--pick", "floid"), "mean 'floyd'?"),
        (("run", "breakdown", "--systems", "fake", "-o", "reference=baselin"), "mean 'baseline'?"),
        (("run", "breakdown", "-o", "reference=baseline sampler=fused"), "unknown sampler 'fused'"),
        (("run", "breakdown", "--systems", "fake", "--out", "file/x"), "cannot write to"),
        (("run", "breakdown", "--systems", "fake", "--resume"), "to resume"),
        (("run", "breakdown", "--systems", "fake", "--force"), "--resume"),
        (("run", "nowhere.toml"), "there is no definition"),
        (("run",), "missing argument"),
        (("run", "breakdown", "--bogus"), "no such option"),
        (("plot", "nowhere"), "no cells.csv"),
        (("plot",), "no results in"),
        (("data", "info", "ogbn_arixv"), "did you mean 'ogbn_arxiv'?"),
        (("bogus",), "bogus"),
    ],
)
def test_mistakes_are_one_sentence_and_code_two(inside, tmp_path, words, message):
    (tmp_path / "file").write_text("")
    code, out, err = inside(*words)
    assert (code, out) == (2, ""), err
    assert err.startswith("gnnbench: ")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_data_that_is_not_here_is_code_six(inside):
    code, _, err = inside("data", "verify", "products~twin@0.003")
    assert code == 6
    assert err.count("\n") == 1


def test_an_internal_error_says_where_its_traceback_is(tmp_path):
    broken = "import gnnbench.doctor as d\nd.examine = lambda: 1 / 0\n"
    script = broken + "import sys; sys.argv = ['gnnbench', 'doctor']\n"
    script += "from gnnbench.cli import main; main()\n"
    env = {**os.environ, **fake_environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    (log,) = tmp_path.glob("gnnbench-*.log")
    assert str(log) in done.stderr
    assert "ZeroDivisionError" in log.read_text()
    env["GNNBENCH_DEBUG"] = "1"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert "Traceback" in done.stderr


def test_list_and_doctor(tmp_path):
    """Systems of this tree are imported here: the slowest test of the file."""
    code, out, _ = call("list", "--json", cwd=tmp_path)
    found = json.loads(out)
    assert code == 0
    assert "breakdown" in [e["name"] for e in found["experiments"]]
    systems = {s["name"]: s for s in found["systems"]}
    assert systems["fake"]["runs on"] == "cpu"
    assert "pip install absent" in systems["absent"]["missing"]
    assert "ogbn_arxiv" in [d["name"] for d in found["datasets"]]
    code, out, _ = call("doctor", "--json", cwd=tmp_path)
    checks = {c["what"]: c for c in json.loads(out)["checks"]}
    assert code == 0
    assert {"threads", "memory", "noise", "native CPU library", "GPU", "dgl"} <= set(checks)
    assert all(c["fix"] for c in checks.values() if c["ok"] == "no")
    code, out, err = call("list", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "pip install absent" in out.replace("\n", " ")


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
    note, end = err.splitlines()
    assert note.startswith("waits runs with flag=") and "--resume" in end
    assert not psutil.pid_exists(int(flag.read_text()))


def test_kill_nine_loses_at_most_the_block_in_flight(tmp_path):
    """Runs through a script that pins the source digest: the tree may change meanwhile."""
    flag = tmp_path / "flag"
    script = (
        "from gnnbench.measure import machine\n"
        "machine.source_digest = lambda native=True: 'same'\n"
        "from gnnbench.cli import main; main()\n"
    )
    words = (*RUN[:-1], "3", "--systems", "fake,slow,waits", "-o", f'waits.flag="{flag}"')

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
    assert kept.count(b"\n") >= 20  # three pairs of the first comparison, and more
    process = begin("--resume", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert {c["system"]: c["pairs"] for c in found["cells"] if c["system"] != "fake"} == {
        "slow": 3, "waits": 3,
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
