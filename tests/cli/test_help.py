"""Help imports few modules. A limit on its time would depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

COMMANDS = [
    "run", "show", "runs", "plot", "advise", "calibrate", "certify", "compare", "track", "history",
    "verdicts", "reproduce", "list", "doctor", "data", "new",
]  # fmt: skip
DATA = ["list", "info", "import", "get", "prepare", "verify"]
NEW = ["system", "sampler"]
LARGE = {
    "torch", "numpy", "scipy", "pandas", "matplotlib", "dgl", "torch_geometric", "psutil",
    "pydantic", "rich",
}  # fmt: skip
HELP = """
import io, json, sys
from contextlib import redirect_stdout
from gnnbench.cli import app
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out:
        code = app([*words, "--help"], standalone_mode=False)
    print(json.dumps([code, out.getvalue(), *sys.modules]))
"""
PROGRAM = """
import json, sys
from gnnbench.cli import main
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, *sys.modules]))
"""
# Escape and check the output; import the standard library only.
GUARD = {"gnnbench.core.terminal", "gnnbench.core.text"}


def run(code: str, *arguments: str) -> list[str]:
    """Lines that a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def check_imports(modules: set[str]) -> None:
    assert not modules & LARGE
    ours = {name for name in modules if name.split(".")[0] == "gnnbench"}
    assert "gnnbench.cli.running" in ours
    allowed = {"gnnbench", "gnnbench.version", "gnnbench.cli"}
    allowed |= {f"gnnbench.core{name}" for name in ("", ".console", ".errors")}
    assert {name for name in ours - allowed if not name.startswith("gnnbench.cli.")} == set()


def test_help_imports_only_the_command_line() -> None:
    """All commands share a process, so a later one may use modules that an earlier one imported."""
    commands = [[], *([name] for name in COMMANDS)]
    commands += [["data", name] for name in DATA] + [["new", name] for name in NEW]
    lines = run(HELP, json.dumps(commands))
    for words, line in zip(commands, lines, strict=True):
        code, text, *modules = json.loads(line)
        assert code == 0 and " ".join(words) in text.splitlines()[0]
        assert words or all(f"\n  {command} " in text for command in COMMANDS)
        check_imports(set(modules))


def test_program_imports_only_the_output_guard_in_addition() -> None:
    *text, last = run(PROGRAM, "--help")
    code, *modules = json.loads(last)
    assert code == 0 and "Usage: gnnbench" in "\n".join(text) and set(modules) >= GUARD
    check_imports(set(modules) - GUARD)
