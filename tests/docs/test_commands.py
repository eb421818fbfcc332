"""Every command of every document: run as a dry run, run as it stands, or checked word by word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from documents import PAGES, PYTHONS, ROOT, Shown, blocks, commands, of_gnnbench

from gnnbench.core import registry

RUN = ROOT / "results" / "reference" / "h100" / "breakdown-best-25"
PLANNED = ("run", "reproduce")  # with --dry-run
AT_ONCE = ("list", "doctor", "runs", "show", "compare", "track", "plot", "verdicts")
PARSED = ("advise", "calibrate", "new", "data")  # they take minutes, or write; tested elsewhere
TRIED = "docs/own-graph.md"  # each of its commands is run by test_own_graph
SYSTEM_PROGRAMS = {
    "cp", "export", "mkdir", "pip", "pre-commit", "pytest", "python3.11", "strip", "tar",
    "torchrun",
}  # fmt: skip
SOURCE = re.compile(r"\b(?:native|tests|gnnbench|experiments)/[\w/]+\.(?:py|toml|h|cuh?|cpp)\b")
HELP: dict[str, str] = {}

SHOWN = list(dict.fromkeys(shown for page in PAGES for shown in commands(page)))
GNNBENCH = {
    words: shown
    for shown in SHOWN
    if (words := of_gnnbench(shown)) is not None and shown.page != TRIED
}
OTHERS = [shown for shown in SHOWN if of_gnnbench(shown) is None]

Said = Callable[..., tuple[int, str, str]]


def ids(words: tuple[str, ...]) -> str:
    return " ".join(words)


@pytest.fixture
def readers_folder(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder as the documents assume it: two runs, extensions of one's own, a second Python."""
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
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of the process that imports plug-ins
    own = "mine=mysystem:MINE,my_sampler=my_sampler:SYSTEM"
    monkeypatch.setenv("GNNBENCH_EXTRA_SYSTEMS", own)
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path))
    registry.entries.cache_clear()
    yield
    registry.entries.cache_clear()
    for module in ("mysystem", "my_sampler"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in PLANNED], ids=ids)
def test_what_is_measured_can_be_planned(words: tuple[str, ...], readers_folder: None, said: Said):
    """``--resume`` needs a run that was stopped, so it is left out."""
    planned = [word for word in words if word not in ("--dry-run", "--resume")]
    code, out, err = said(*planned, "--dry-run")
    assert code == 0, f"{GNNBENCH[words]}\n{err}"
    assert out.strip(), GNNBENCH[words]


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in AT_ONCE], ids=ids)
def test_what_prints_runs(words: tuple[str, ...], readers_folder: None, said: Said):
    code, out, err = said(*words)
    assert code in (0, 5), f"{GNNBENCH[words]}\n{err}"  # 5: a regression, a refuted claim
    assert out.strip(), GNNBENCH[words]


@pytest.mark.parametrize("words", [w for w in GNNBENCH if w[0] in PARSED], ids=ids)
def test_what_takes_long_is_understood(words: tuple[str, ...]):
    from typer.main import get_command

    from gnnbench.cli import app

    command, rest = get_command(app), list(words)
    while children := getattr(command, "commands", {}):
        command = children[rest.pop(0)]
    command.make_context(" ".join(words), rest)


def test_no_command_is_of_another_kind():
    kinds = {w[0] for w in GNNBENCH if not w[0].startswith("-")}
    assert kinds <= {*PLANNED, *AT_ONCE, *PARSED}
    programs = {shown.words[0] for shown in OTHERS} - {"make", *PYTHONS}
    assert {p for p in programs if not p.endswith("/pip")} <= SYSTEM_PROGRAMS


@pytest.mark.parametrize("shown", [s for s in OTHERS if s.words[0] == "make"], ids=str)
def test_make_has_the_target(shown: Shown):
    makefile = (ROOT / "Makefile").read_text()
    for word in shown.words[1:]:
        name, is_variable, _ = word.partition("=")
        pattern = rf"(?m)^{name} *[?:]?=" if is_variable else rf"(?m)^{name}:"
        assert re.search(pattern, makefile), f"{shown}: {name}"


@pytest.mark.parametrize("shown", [s for s in OTHERS if "-m" in s.words], ids=str)
def test_modules_are_there_and_know_their_options(shown: Shown):
    words = list(shown.words)
    while "--" in words:  # what is behind it is a command by itself
        words = words[: words.index("--")]
    at = words.index("-m") if "-m" in words else -1
    module, arguments = words[at + 1], words[at + 2 :]
    if module in ("pip", "venv"):
        return
    if module == "pytest":
        paths = [word for word in arguments if word.startswith("tests/")]
        assert all((ROOT / path).exists() for path in paths), shown
        return
    subcommand = [w for w in arguments[:1] if module in ("gnnbench.contrib.emulated_network",)]
    assert find_spec(module), shown
    options = [word for word in arguments if word.startswith("--")]
    help_text = helped(module, *subcommand) if options else ""
    for option in options:
        assert re.search(rf"{option}\b", help_text), f"{shown}: {option}"


def helped(module: str, *subcommand: str) -> str:
    """The help of a module that is a command."""
    key = " ".join((module, *subcommand))
    if key not in HELP:
        words = [sys.executable, "-m", module, *subcommand, "--help"]
        done = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
        )
        assert done.returncode == 0, done.stderr
        HELP[key] = done.stdout
    return HELP[key]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_that_are_named_are_there(page: Path):
    """Sources of this repository, in commands and in the text; ``mine`` is the reader's."""
    for path in SOURCE.findall(page.read_text()):
        assert (ROOT / path).exists() or "mine" in path, path
