"""Help is quick because it imports little; a time would depend on the machine, this does not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COMMANDS = [
    "run", "show", "runs", "plot", "advise", "calibrate", "compare", "verdicts", "reproduce",
    "list", "doctor", "data", "new",
]  # fmt: skip
DATA = ["list", "info", "import", "get", "prepare", "verify"]
NEW = ["system", "sampler"]
LARGE = {
    "torch", "numpy", "scipy", "pandas", "matplotlib", "dgl", "torch_geometric", "psutil",
    "pydantic", "rich",
}  # fmt: skip
CODE = """
import json, sys
from gnnbench.cli import app
code = app(standalone_mode=False)
print(json.dumps([code, *sys.modules]))
"""
MAIN = """
import json, sys
from gnnbench.cli import main
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, *sys.modules]))
"""
GUARD = {
    "gnnbench.core.terminal",
    "gnnbench.core.text",
}  # make the output safe, with the standard library


def help_of(*words: str, code: str = CODE) -> tuple[str, set[str]]:
    """What ``gnnbench WORDS --help`` prints, and the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--help"], capture_output=True, text=True, check=True
    )
    *text, last = done.stdout.splitlines()
    ended, *modules = json.loads(last)
    assert ended == 0 and done.stderr == ""
    return "\n".join(text), set(modules)


def check_few(modules: set[str]) -> None:
    assert not modules & LARGE
    ours = {name for name in modules if name.split(".")[0] == "gnnbench"}
    assert "gnnbench.cli.running" in ours
    few = {"gnnbench", "gnnbench.version", "gnnbench.cli"}
    few |= {f"gnnbench.core{name}" for name in ("", ".console", ".errors")}
    assert {name for name in ours - few if not name.startswith("gnnbench.cli.")} == set()


def test_help_imports_the_command_line_alone() -> None:
    text, modules = help_of()
    assert all(f"\n  {command} " in text for command in COMMANDS)
    check_few(modules)


def test_the_program_imports_what_guards_its_output_and_no_more() -> None:
    text, modules = help_of(code=MAIN)
    assert "Usage: gnnbench" in text and modules >= GUARD
    check_few(modules - GUARD)


@pytest.mark.parametrize(
    "words",
    [
        *((name,) for name in COMMANDS),
        *(("data", name) for name in DATA),
        *(("new", name) for name in NEW),
    ],
    ids=" ".join,
)
def test_the_help_of_a_command_imports_the_command_line_alone(words: tuple[str, ...]) -> None:
    text, modules = help_of(*words)
    assert " ".join(words) in text.splitlines()[0]
    check_few(modules)
