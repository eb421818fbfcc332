"""``--env NAME=PATH``: accepted environments and errors."""

import os
import sys

import pytest

from gnnbench.core.errors import MissingError, UsageError
from gnnbench.harness.interpreter import Environments, Interpreter, parse
from gnnbench.kernels.rng import IN_NUMPY


def script(folder, text):
    """Writes a fake Python that prints what an old or bare Python would."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_env_accepts_a_python_or_an_environment_folder(tmp_path):
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    script(folder / "bin", "echo a greeting; echo 3 12")
    parsed = parse([f"a={folder}", f"b-1.2={folder}/bin/python"])
    assert list(parsed) == ["a", "b-1.2"]
    assert {other.python for other in parsed.values()} == {folder / "bin" / "python"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["old"], "not of the form NAME=PATH"),
        (["old="], "not of the form NAME=PATH"),
        (["1.1=venv"], "cannot be the name"),
        (["true=venv"], "cannot be the name"),
        (["a b=venv"], "cannot be the name"),
        (["=venv"], "cannot be the name"),
        (["a" * 41 + "=fine"], "cannot be the name .* 40 characters at most"),
        (["old=nowhere"], "there is no 'nowhere'"),
        (["old=" + "a" * 300], "there is no 'aaa"),
        (["old=~nobody-at-all/venv"], "there is no '~nobody"),
        (["old=empty"], "'empty' holds no bin/python"),
        (["old=words"], "'words' is no Python 3 that runs"),
        (["old=fails"], "'fails' is no Python 3 that runs"),
        (["old=fine", "old=fine"], "'old' is given twice"),
    ],
)
def test_invalid_env_is_a_usage_error(texts, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "words").write_text("no program")
    script(tmp_path, "exit 1").rename(tmp_path / "fails")
    script(tmp_path, "echo 3 10").rename(tmp_path / "fine")
    with pytest.raises(UsageError, match=words):
        parse(texts)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("3 9", "has Python 3.9; a worker needs 3.10 or newer"),
        ("3 10 torch", "has no torch; a worker needs numpy and torch"),
        ("3 13 numpy torch", "has no numpy and no torch"),
    ],
)
def test_python_that_cannot_run_a_worker_is_refused(answer, words, tmp_path):
    with pytest.raises(MissingError, match=words):
        parse([f"old={script(tmp_path, f'echo {answer}')}"])


def test_env_name_may_have_40_characters(tmp_path):
    assert list(parse([f"{'a' * 40}={script(tmp_path, 'echo 3 12')}"])) == ["a" * 40]


def test_real_python_without_torch_is_refused(tmp_path):
    """Uses this interpreter without its site packages."""
    bare = script(tmp_path, f'exec {sys.executable} -S -I "$@"')
    with pytest.raises(MissingError, match="has no numpy and no torch"):
        parse([f"bare={bare}"])


def test_workers_of_other_environments_do_not_inherit_python_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", "here")
    monkeypatch.setenv("VIRTUAL_ENV", "here")
    monkeypatch.setenv("MINE", "kept")
    other = Interpreter("old", tmp_path / "python")
    facts = {"native": "", "versions": {"python": "3.10.1"}}
    environments = Environments({"old": other}, {"old": facts})
    other_vars, own_vars = environments.variables("old"), environments.variables("")
    assert (
        "PYTHONPATH" not in other_vars
        and "VIRTUAL_ENV" not in other_vars
        and other_vars["MINE"] == "kept"
    )
    assert own_vars == dict(os.environ)
    assert environments.command("")[0] == sys.executable and environments.command("old")[0] == str(
        other.python
    )
    assert environments.record() == {"old": {"executable": "python", **facts}}


def test_epoch_order_uses_numpy_if_one_environment_lacks_the_native_library(tmp_path):
    other = Interpreter("old", tmp_path / "python")
    environments = Environments({"old": other}, {"old": {"native": "its torch is too old"}})
    assert environments.variables("")[IN_NUMPY] == environments.variables("old")[IN_NUMPY] == "1"
