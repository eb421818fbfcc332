"""The command as a user has it: a process, its two streams and its exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import RUN, call, start
from fakes import fake_environment

from gnnbench.version import __version__


@pytest.fixture
def inside(fakes, said):
    """The same in this process, for what starts no other: code, standard output and error."""
    return said


def test_run_plot_and_json(inside, tmp_path):
    code, out, err = call(*RUN[:-1], "1", "--systems", "fake,slow,incorrect,crash", cwd=tmp_path)
    assert code == 4, err
    for number, system in ((1, "slow"), (2, "incorrect"), (3, "crash")):
        assert f"{number} of 3: products~twin@0.005 gcn {system}: opening\n" in err
    lines = out.splitlines()
    assert "slow" in out and "incorrect" in out
    cells, *figures = [Path(x) for x in lines if x.startswith("results/")]
    assert cells.name == "cells.csv"
    assert {f.name for f in figures} == {"breakdown.png", "breakdown.svg", "loss.png", "loss.svg"}
    for path in (cells, *figures):
        assert (tmp_path / path).stat().st_size > 100
        (tmp_path / path).rename(tmp_path / path.name)
    (tmp_path / "cells.csv").rename(tmp_path / cells)
    code, out, err = inside("plot", "--json")
    assert (code, err) == (0, "")
    assert [Path(p) for p in json.loads(out)["figures"]] == figures
    redrawn = (tmp_path / figures[1]).read_bytes()
    assert redrawn == (tmp_path / "breakdown.svg").read_bytes()
    assert b"incorrect" in redrawn and b"crash" in redrawn


def test_json_is_all_there_is_on_standard_output(tmp_path):
    code, out, err = call(*RUN, "--systems", "fake", "--json", "--quiet", cwd=tmp_path)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["cells"][0]["status"] == "ok"
    assert found["cells"][0]["recipe"]["speed"] > 0 and found["cells"][0]["fanouts"] == [
        15,
        10,
        5,
    ]
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
    assert re.search(f"{stage}( or [a-z]+)? has it: add -o baseline.{stage}$", err)


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
    assert (code, " MiB\n" in out) == (0, True)


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
        (("run", "breakdown", "--systems", "fake", "--resume"), "to go on with"),
        (("run", "breakdown", "--systems", "fake", "--force"), "--resume"),
        (("run", "nowhere.toml"), "there is no definition"),
        (("run",), "missing argument"),
        (("run", "breakdown", "--bogus"), "no such option"),
        (("plot", "nowhere"), "'nowhere' is no run"),
        (("plot",), "no results in"),
        (("data", "info", "ogbn_arixv"), "did you mean 'ogbn_arxiv'?"),
        (("bogus",), "no such command 'bogus'; see 'gnnbench --help'"),
        (("data", "bogus"), "see 'gnnbench data --help'"),
        (("data", "prepare"), "missing argument 'name'; see 'gnnbench data prepare --help'"),
        (
            ("run", "breakdown", "--threads", "4"),
            "--threads; give -o threads=...; see 'gnnbench run",
        ),
        (("run", "breakdown", "--dataset", "x"), "did you mean --datasets?; see 'gnnbench run"),
        (("calibrate", "--batch-size", "4"), "give -o batch_size=...; see 'gnnbench calibrate"),
        (("run", "breakdown", "--systems", ""), "--systems names nothing"),
        (("run", "breakdown", "--datasets", ","), "--datasets names nothing"),
        (
            ("run", "breakdown", "--profile", "x"),
            "'breakdown' has quick, smoke, models, laptop, real",
        ),
        (("run", "breakdown", "-o", "threads=99999"), "threads=99999 is more than the "),
        (("run", "breakdown", "-o", "seed=1", "-o", "seed=2"), "by '-o seed=1' and '-o seed=2'"),
        (("list", "brakdown"), "did you mean 'breakdown'?"),
        (("run", "breakdown", "--repeats", "-1"), "'--repeats': give 0 or more; see 'gnnbench run"),
        (("run", "breakdown", "--seed", "abc"), "for '--seed': give a whole number; see"),
        (("run", "breakdown", "-o", "batch_size"), "form key=value; give -o batch_size=VALUE"),
        (
            ("data", "import", ".", "--name", "x"),
            "is a folder, and 'data import' takes a file",
        ),
        (("list", "--profile", "smoke"), "--profile belongs to an experiment"),
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


def test_a_malformed_variable_is_not_a_definition_s_fault(inside, monkeypatch):
    from gnnbench.core import registry

    monkeypatch.setenv("GNNBENCH_EXTRA_SAMPLERS", "oops")
    registry.entries.cache_clear()
    code, _, err = inside(*RUN, "--systems", "fake", "--dry-run")
    monkeypatch.undo()
    registry.entries.cache_clear()
    assert (code, err.startswith("gnnbench: GNNBENCH_EXTRA_SAMPLERS holds 'oops'")) == (2, True)


def test_a_definition_goes_by_its_name_beside_it(inside, tmp_path):
    own = 'schema_version = 2\nextends = "breakdown"\naxes.system = ["fake"]\n'
    (tmp_path / "mine.toml").write_text(f'{own}reference = "fake"\naxes.seed = [7]\n')
    code, out, err = inside("run", "mine", "--dry-run", "--json")
    assert code == 0, err
    assert {c["seed"] for c in json.loads(out)["cells"]} == {7}
    (tmp_path / "breakdown.toml").write_text("broken")  # a shipped name means what is shipped
    assert inside("run", "breakdown", "--systems", "fake", "--dry-run")[0] == 0
    rule = '[[constraints]]\nexclude = { system = "fak" }\n'
    (tmp_path / "mine.toml").write_text(own + rule)
    code, _, err = inside("run", "mine", "--dry-run")
    assert (code, "unknown system 'fak'; did you mean 'fake'?" in err) == (2, True)


@pytest.mark.parametrize(
    "rule,message",
    [
        ('"fak.speed" = 1', "unknown system 'fak'"),
        ('dataset = ["products~twin@0.01", "prodcuts"]', "unknown dataset 'prodcuts'"),
        ('device = "tpu"', "axis 'device' cannot be 'tpu'"),
    ],
)
def test_a_constraint_on_what_there_is_not_is_refused(inside, tmp_path, rule, message):
    text = 'schema_version = 2\nextends = "breakdown"\naxes.system = ["fake"]\n'
    text += f"[[constraints]]\nexclude = {{ {rule} }}\n"
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = inside("run", "mine.toml", "--dry-run")
    assert (code, message in err) == (2, True), err


def test_several_values_of_a_field_and_of_an_axis_are_cells_of_one_run(inside):
    words = (
        "run",
        "breakdown",
        "--profile",
        "smoke",
        "--systems",
        "baseline",
        "--dry-run",
        "--json",
    )
    grid = ("-o", "baseline.sampler=[fused-map,fastsample]", "-o", "fanouts=[[10,5],[15,10,5]]")
    code, out, err = inside(*words, *grid)
    assert code == 0, err
    cells = json.loads(out)["cells"]
    assert [(c["recipe"]["sampler"]["name"], c["fanouts"]) for c in cells] == [
        ("fused-map", [10, 5]), ("fastsample", [10, 5]),
        ("fused-map", [15, 10, 5]), ("fastsample", [15, 10, 5]),
    ]  # fmt: skip


def test_what_one_experiment_has_is_listed(inside):
    code, out, _ = inside("list", "breakdown", "--profile", "smoke", "--json")
    found = json.loads(out)
    assert (code, found["profile"], found["figures"]) == (0, "smoke", ["breakdown", "loss"])
    assert [p["name"] for p in found["profiles"] if p["default"]] == ["quick"]
    axes = {a["axis"]: a for a in found["axes"]}
    assert axes["batch_size"]["values"] == [256] and axes["gpus"]["values"] == []
    assert [s["name"] for s in found["systems"]] == ["baseline", "dgl", "pyg"]
    assert found["systems"][0]["settings"]["sampler"]["default"] == "hop-by-hop"
    code, out, _ = inside("list", "breakdown")
    assert (code, "breakdown: Epoch time by phase" in out, "figures: " in out) == (0, True, True)


def test_the_help_of_a_run_names_the_experiment_s_own_profiles(inside):
    code, out, _ = inside("run", "convergence", "-h")
    assert code == 0 and "Profiles of convergence:" in out and "laptop (default)" in out
    code, out, _ = inside("run", "-h")
    assert code == 0 and "Profiles of" not in out


@pytest.mark.parametrize(
    "words", [(), ("run",), ("data",), ("data", "info"), ("list",), ("doctor",)]
)
def test_help_and_version_have_short_ways(inside, words):
    assert inside(*words, "-h") == inside(*words, "--help")
    assert inside("--version") == (0, f"gnnbench {__version__}\n", "")


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path):
    """Of the help, which the parser prints, and of a list, which we do."""
    for words in (("data", "list"), ("run", "breakdown", "--help")):
        process = start(*words, cwd=tmp_path)
        process.stdout.close()
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")


def test_data_that_is_not_here_is_code_six(inside):
    code, _, err = inside("data", "verify", "products~twin@0.003")
    assert code == 6
    assert err.count("\n") == 1


def test_an_internal_error_says_where_its_traceback_is(tmp_path):
    broken = "import gnnbench.harness.doctor as d\nd.examine = lambda: 1 / 0\n"
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


def test_list_and_doctor(inside):
    code, out, _ = inside("list", "--json")
    found = json.loads(out)
    assert code == 0
    assert "breakdown" in [e["name"] for e in found["experiments"]]
    systems = {s["name"]: s for s in found["systems"]}
    assert systems["fake"]["runs on"] == ["cpu"]
    assert systems["fake"]["settings"]["speed"]["help"]
    breakdown = next(e for e in found["experiments"] if e["name"] == "breakdown")
    assert breakdown["default"] == "quick" and breakdown["profiles"]["smoke"].startswith("seconds")
    assert "pip install absent" in systems["absent"]["missing"]
    assert "ogbn_arxiv" in [d["name"] for d in found["datasets"]]
    code, out, _ = inside("doctor", "--json")
    checks = {c["what"]: c for c in json.loads(out)["checks"]}
    assert code == 0
    assert {"threads", "memory", "noise", "native CPU library", "GPU", "dgl"} <= set(checks)
    assert all(c["fix"] for c in checks.values() if not c["ok"])
    for command in ("list systems", "doctor"):
        code, out, err = inside(*command.split())
        assert (code, err) == (0, "")
        assert "pip install absent" in " ".join(out.split())
