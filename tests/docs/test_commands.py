"""Commands in the documents: each is run, run as a dry run, or parsed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from documents import PAGES, PYTHONS, ROOT, Command, blocks, commands, gnnbench_arguments

from gnnbench.core import registry

RUN = ROOT / "results" / "reference" / "h100" / "breakdown-best-25"
DRY_RUN = ("run", "reproduce")
QUICK = ("list", "doctor", "runs", "show", "compare", "track", "plot", "verdicts")
# Slow, or they write files; other tests run them.
PARSE_ONLY = ("advise", "calibrate", "certify", "new", "data")
TESTED_PAGE = "docs/own-graph.md"  # test_own_graph runs its commands
SYSTEM_PROGRAMS = {
    "cp", "export", "mkdir", "pip", "pre-commit", "pytest", "python3.11", "source", "strip", "tar",
    "torchrun",
}  # fmt: skip
SOURCE = re.compile(r"\b(?:native|tests|gnnbench|experiments)/[\w/]+\.(?:py|toml|h|cuh?|cpp)\b")
HELP: dict[str, str] = {}

COMMANDS = list(dict.fromkeys(command for page in PAGES for command in commands(page)))
GNNBENCH = {
    words: command
    for command in COMMANDS
    if (words := gnnbench_arguments(command)) is not None and command.page != TESTED_PAGE
}
OTHERS = [command for command in COMMANDS if gnnbench_arguments(command) is None]

Said = Callable[..., tuple[int, str, str]]


def ids(words: tuple[str, ...]) -> str:
    return " ".join(words)


@pytest.fixture
def reader_folder(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the documents assume: two runs, plug-ins and a second Python."""
    runs = tmp_path / "results" / "breakdown"
    for name in ("run-20260101-000000-aaaaaa", "run-20260102-000000-bbbbbb"):
        shutil.copytree(RUN, runs / name, ignore=shutil.ignore_patterns("figures"))
    shutil.copytree(RUN, tmp_path / "results" / "reference" / "h100" / RUN.name)
    for name in (".venv-old", ".venv-candidate"):
        (tmp_path / name).symlink_to(sys.prefix)
    for page, module in (("add-a-system.md", "mysystem"), ("own-sampler.md", "my_sampler")):
        text = blocks(ROOT / "docs" / page, "python")[0]
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the process that imports plug-ins
    plugins = "mine=mysystem:MINE,my_sampler=my_sampler:SYSTEM"
    monkeypatch.setenv("GNNBENCH_EXTRA_SYSTEMS", plugins)
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path))
    registry.entries.cache_clear()
    yield
    registry.entries.cache_clear()
    for module in ("mysystem", "my_sampler"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in DRY_RUN], ids=ids)
def test_measuring_command_has_a_dry_run(words: tuple[str, ...], reader_folder: None, said: Said):
    """``--resume`` is removed, because it needs an interrupted run."""
    arguments = [word for word in words if word not in ("--dry-run", "--resume")]
    code, out, err = said(*arguments, "--dry-run")
    assert code == 0, f"{GNNBENCH[words]}\n{err}"
    assert out.strip(), GNNBENCH[words]


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in QUICK], ids=ids)
def test_quick_command_prints_output(words: tuple[str, ...], reader_folder: None, said: Said):
    code, out, err = said(*words)
    assert code in (0, 5), f"{GNNBENCH[words]}\n{err}"  # 5: a regression, a refuted claim
    assert out.strip(), GNNBENCH[words]


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in PARSE_ONLY], ids=ids)
def test_slow_command_is_parsed(words: tuple[str, ...]):
    from typer.main import get_command

    from gnnbench.cli import app

    parser, rest = get_command(app), list(words)
    while children := getattr(parser, "commands", {}):
        parser = children[rest.pop(0)]
    parser.make_context(" ".join(words), rest)


def test_every_command_is_run_or_parsed():
    kinds = {w[0] for w in GNNBENCH if not w[0].startswith("-")}
    assert kinds <= {*DRY_RUN, *QUICK, *PARSE_ONLY}
    programs = {command.words[0] for command in OTHERS} - {"make", *PYTHONS}
    assert {p for p in programs if not p.endswith("/pip")} <= SYSTEM_PROGRAMS


@pytest.mark.parametrize("command", [s for s in OTHERS if s.words[0] == "make"], ids=str)
def test_makefile_has_the_target(command: Command):
    makefile = (ROOT / "Makefile").read_text()
    for word in command.words[1:]:
        name, is_variable, _ = word.partition("=")
        pattern = rf"(?m)^{name} *[?:]?=" if is_variable else rf"(?m)^{name}:"
        assert re.search(pattern, makefile), f"{command}: {name}"


@pytest.mark.parametrize("command", [s for s in OTHERS if "-m" in s.words], ids=str)
def test_modules_exist_and_have_the_options(command: Command):
    words = list(command.words)
    while "--" in words:  # what follows is another command
        words = words[: words.index("--")]
    at = words.index("-m") if "-m" in words else -1
    module, arguments = words[at + 1], words[at + 2 :]
    if module in ("pip", "venv"):
        return
    if module == "pytest":
        paths = [word for word in arguments if word.startswith("tests/")]
        assert all((ROOT / path).exists() for path in paths), command
        return
    subcommand = [w for w in arguments[:1] if module in ("gnnbench.contrib.emulated_network",)]
    assert find_spec(module), command
    options = [word for word in arguments if word.startswith("--")]
    help_text = module_help(module, *subcommand) if options else ""
    for option in options:
        assert re.search(rf"{option}\b", help_text), f"{command}: {option}"


def module_help(module: str, *subcommand: str) -> str:
    """Output of ``python -m MODULE SUBCOMMAND --help``."""
    key = " ".join((module, *subcommand))
    if key not in HELP:
        HELP[key] = (own_help if module.startswith("gnnbench.") else help_of)(module, *subcommand)
    return HELP[key]


def own_help(module: str, *subcommand: str) -> str:
    """The same, in this process, which has imported most of it."""
    out = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit) as ended,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # the module was imported before
        patch.setenv("COLUMNS", "200")
        patch.setattr(sys, "argv", [module, *subcommand, "--help"])
        runpy.run_module(module, run_name="__main__")
    assert not ended.value.code
    return out.getvalue()


def help_of(module: str, *subcommand: str) -> str:
    """The same of a program of others."""
    words = [sys.executable, "-m", module, *subcommand, "--help"]
    result = subprocess.run(
        words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_named_source_files_exist(page: Path):
    """Except files of the reader, whose names contain ``mine``."""
    for path in SOURCE.findall(page.read_text()):
        assert (ROOT / path).exists() or "mine" in path, path
