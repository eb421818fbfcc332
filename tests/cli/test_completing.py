"""Completion of names in a shell."""

import os
import subprocess
import sys

import pytest

from gnnbench.cli import completing
from gnnbench.core import registry
from gnnbench.core.errors import UsageError


def test_prefix_is_completed_to_known_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    assert "breakdown" in completing.experiments("bre") and completing.experiments("nosuch") == []
    assert "fastgl/table4" in completing.experiments("fastgl/ta")
    assert completing.listed("baseli") == ["baseline"] and completing.listed("mod") == ["models"]
    assert completing.systems("basel") == ["baseline"]
    assert completing.models("graphs") == ["graphsage"]
    assert completing.dataset("products~") == ["products~twin"]
    assert "products" in completing.downloads("prod")
    assert completing.runs("") == ["latest"]
    (tmp_path / "results" / "transitivity" / "run-1").mkdir(parents=True)
    assert completing.runs("t") == ["transitivity"]


def test_comma_separated_list_is_completed_without_repeats():
    known = sorted(registry.known(registry.SYSTEM))
    rest = [name for name in known if name != "baseline"]
    assert completing.systems("baseline,") == [f"baseline,{name}" for name in rest]
    assert completing.systems("baseline,dg") == ["baseline,dgl"]


def test_unusable_store_has_no_completions(monkeypatch):
    def refuse():
        raise UsageError("no store")

    monkeypatch.setattr("gnnbench.harness.doctor.datasets", refuse)
    assert completing.dataset("") == []


@pytest.mark.parametrize(
    "words,completion",
    [
        ("gnnbench run breakdown --systems baseline,dg", "baseline,dgl"),
        ("gnnbench compare --csv --format mark", "markdown"),
    ],
)
def test_bash_gets_completions_without_a_warning(words, completion):
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    result = subprocess.run(
        [sys.executable, "-m", "gnnbench.cli"], capture_output=True, text=True,
        env={**os.environ, **variables, "_GNNBENCH_COMPLETE": "complete_bash"},
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert completion in result.stdout.split()


def test_bash_completion_script_is_printed():
    result = subprocess.run(
        [sys.executable, "-m", "gnnbench.cli", "--show-completion", "bash"],
        capture_output=True, text=True,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert "_GNNBENCH_COMPLETE=complete_bash" in result.stdout
