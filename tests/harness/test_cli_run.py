"""The command line: standard output, standard error and exit codes."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from cli_process import RUN, call, start

from gnnbench.harness import doctor
from gnnbench.version import __version__


def test_run_plot_and_json(run_inside, tmp_path):
    code, out, err = run_inside(*RUN, "--systems", "fake,slow,incorrect,crash")
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
    code, out, err = run_inside("plot", "--json")
    assert (code, err) == (0, "")
    assert [Path(p) for p in json.loads(out)["figures"]] == figures
    redrawn = (tmp_path / figures[1]).read_bytes()
    assert redrawn == (tmp_path / "breakdown.svg").read_bytes()
    assert b"incorrect" in redrawn and b"crash" in redrawn


def test_json_is_the_only_standard_output(tmp_path):
    code, out, err = call(*RUN, "--systems", "fake", "--json", "--quiet", cwd=tmp_path)
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["cells"][0]["status"] == "ok"
    assert report["cells"][0]["recipe"]["speed"] > 0 and report["cells"][0]["fanouts"] == [
        15,
        10,
        5,
    ]
    assert (tmp_path / report["run"] / "run.json").exists()


def test_pick_of_a_definition_is_ignored_for_systems_without_it(run_inside):
    """``sampling`` requests ``floyd`` of native samplers only."""
    words = ("run", "sampling", "--profile", "smoke", "--systems", "pyg")
    code, out, err = run_inside(*words, "--dry-run", "--json", "--pick", "floyd")
    assert (code, "unknown pick 'floyd'" in err) == (2, True)
    code, out, err = run_inside(*words, "--dry-run", "--json")
    assert code == 0, err
    assert {c["system"] for c in json.loads(out)["cells"]} == {"pyg"}


@pytest.mark.parametrize(
    "option,stage",
    [("features.ratio=0.3", "features=cache"), ("order.window=4", "order=greedy")],
)
def test_setting_of_another_stage_names_that_stage(run_inside, option, stage):
    words = ("run", "breakdown", "--profile", "smoke", "--dry-run", "-o", f"baseline.{option}")
    code, _, err = run_inside(*words)
    assert (code, err.count("\n")) == (2, 1)
    assert re.search(f"{stage}( or [a-z]+)? has it: add -o baseline.{stage}$", err)


def test_dry_run_writes_nothing(run_inside, tmp_path):
    code, out, _ = run_inside(*RUN, "--systems", "fake,absent", "--dry-run", "--json")
    report = json.loads(out)
    assert code == 0
    assert [(c["system"], c["status"]) for c in report["cells"]] == [
        ("fake", "planned"), ("absent", "missing_dep"),
    ]  # fmt: skip
    assert report["estimated_time_s"] > 0
    assert report["estimated_peak_bytes"] > 2**20
    assert list(tmp_path.iterdir()) == []
    code, out, _ = run_inside(*RUN, "--systems", "fake", "--dry-run")
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
def test_usage_errors_are_one_sentence_with_exit_code_2(run_inside, tmp_path, words, message):
    (tmp_path / "file").write_text("")
    code, out, err = run_inside(*words)
    assert (code, out) == (2, ""), err
    assert err.startswith("gnnbench: ")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_malformed_variable_is_named(run_inside, monkeypatch):
    from gnnbench.core import registry

    monkeypatch.setenv("GNNBENCH_EXTRA_SAMPLERS", "oops")
    registry.entries.cache_clear()
    code, _, err = run_inside(*RUN, "--systems", "fake", "--dry-run")
    monkeypatch.undo()
    registry.entries.cache_clear()
    assert (code, err.startswith("gnnbench: GNNBENCH_EXTRA_SAMPLERS holds 'oops'")) == (2, True)


def test_definition_in_the_working_folder_is_found_by_name(run_inside, tmp_path):
    head = 'schema_version = 2\nextends = "breakdown"\naxes.system = ["fake"]\n'
    (tmp_path / "mine.toml").write_text(f'{head}reference = "fake"\naxes.seed = [7]\n')
    code, out, err = run_inside("run", "mine", "--dry-run", "--json")
    assert code == 0, err
    assert {c["seed"] for c in json.loads(out)["cells"]} == {7}
    (tmp_path / "breakdown.toml").write_text("broken")  # a shipped definition takes precedence
    assert run_inside("run", "breakdown", "--systems", "fake", "--dry-run")[0] == 0
    rule = '[[constraints]]\nexclude = { system = "fak" }\n'
    (tmp_path / "mine.toml").write_text(head + rule)
    code, _, err = run_inside("run", "mine", "--dry-run")
    assert (code, "unknown system 'fak'; did you mean 'fake'?" in err) == (2, True)


@pytest.mark.parametrize(
    "rule,message",
    [
        ('"fak.speed" = 1', "unknown system 'fak'"),
        ('dataset = ["products~twin@0.01", "prodcuts"]', "unknown dataset 'prodcuts'"),
        ('device = "tpu"', "axis 'device' cannot be 'tpu'"),
    ],
)
def test_constraint_on_an_unknown_value_is_refused(run_inside, tmp_path, rule, message):
    text = 'schema_version = 2\nextends = "breakdown"\naxes.system = ["fake"]\n'
    text += f"[[constraints]]\nexclude = {{ {rule} }}\n"
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = run_inside("run", "mine.toml", "--dry-run")
    assert (code, message in err) == (2, True), err


def test_lists_of_settings_and_axes_expand_to_cells(run_inside):
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
    code, out, err = run_inside(*words, *grid)
    assert code == 0, err
    cells = json.loads(out)["cells"]
    assert [(c["recipe"]["sampler"]["name"], c["fanouts"]) for c in cells] == [
        ("fused-map", [10, 5]), ("fastsample", [10, 5]),
        ("fused-map", [15, 10, 5]), ("fastsample", [15, 10, 5]),
    ]  # fmt: skip


def test_list_of_one_experiment_shows_axes_systems_and_figures(run_inside):
    code, out, _ = run_inside("list", "breakdown", "--profile", "smoke", "--json")
    report = json.loads(out)
    assert (code, report["profile"], report["figures"]) == (0, "smoke", ["breakdown", "loss"])
    assert [p["name"] for p in report["profiles"] if p["default"]] == ["quick"]
    axes = {a["axis"]: a for a in report["axes"]}
    assert axes["batch_size"]["values"] == [256] and axes["gpus"]["values"] == []
    assert [s["name"] for s in report["systems"]] == ["baseline", "dgl", "pyg"]
    assert report["systems"][0]["settings"]["sampler"]["default"] == "hop-by-hop"
    code, out, _ = run_inside("list", "breakdown")
    assert (code, "breakdown: Epoch time by phase" in out, "figures: " in out) == (0, True, True)


def test_run_help_names_the_profiles_of_the_experiment(run_inside):
    code, out, _ = run_inside("run", "convergence", "-h")
    assert code == 0 and "Profiles of convergence:" in out and "laptop (default)" in out
    code, out, _ = run_inside("run", "-h")
    assert code == 0 and "Profiles of" not in out


@pytest.mark.parametrize(
    "words", [(), ("run",), ("data",), ("data", "info"), ("list",), ("doctor",)]
)
def test_short_options_for_help_and_version(run_inside, words):
    assert run_inside(*words, "-h") == run_inside(*words, "--help")
    assert run_inside("--version") == (0, f"gnnbench {__version__}\n", "")


def test_closed_standard_output_is_not_a_failure(tmp_path):
    """For help, which the parser prints, and for a list, which the command prints."""
    for words in (("data", "list"), ("run", "breakdown", "--help")):
        process = start(*words, cwd=tmp_path)
        process.stdout.close()
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")


def test_missing_data_exits_with_6(run_inside):
    code, _, err = run_inside("data", "verify", "products~twin@0.003")
    assert code == 6
    assert err.count("\n") == 1


def test_internal_error_names_the_log_with_its_traceback(run_inside, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "examine", lambda: 1 / 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, _, err = run_inside("doctor")
    assert code == 1
    assert err.count("\n") == 1
    (log,) = tmp_path.glob("gnnbench-*.log")
    assert str(log) in err
    assert "ZeroDivisionError" in log.read_text()
    monkeypatch.setenv("GNNBENCH_DEBUG", "1")
    assert "Traceback" in run_inside("doctor")[2]


def test_list_and_doctor(run_inside):
    code, out, _ = run_inside("list", "--json")
    report = json.loads(out)
    assert code == 0
    assert "breakdown" in [e["name"] for e in report["experiments"]]
    systems = {s["name"]: s for s in report["systems"]}
    assert systems["fake"]["runs on"] == ["cpu"]
    assert systems["fake"]["settings"]["speed"]["help"]
    breakdown = next(e for e in report["experiments"] if e["name"] == "breakdown")
    assert breakdown["default"] == "quick" and breakdown["profiles"]["smoke"].startswith("seconds")
    assert "pip install absent" in systems["absent"]["missing"]
    assert "ogbn_arxiv" in [d["name"] for d in report["datasets"]]
    code, out, _ = run_inside("doctor", "--json")
    checks = {c["what"]: c for c in json.loads(out)["checks"]}
    assert code == 0
    assert {"threads", "memory", "noise", "native CPU library", "GPU", "dgl"} <= set(checks)
    assert all(c["fix"] for c in checks.values() if not c["ok"])
    for command in ("list systems", "doctor"):
        code, out, err = run_inside(*command.split())
        assert (code, err) == (0, "")
        assert "pip install absent" in " ".join(out.split())
