"""The documents of the repository, and the commands they contain."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        ROOT / "tests" / "README.md",
        *(ROOT / "docs").glob("**/*.md"),
        *(ROOT / "gnnbench").glob("**/README.md"),
    ]
)
BLOCK = re.compile(r"(?ms)^```(sh|python|toml|mermaid|text|)\n(.*?)^```")
VARIABLE = re.compile(r"[A-Z_]+=\S*")
PROGRAMS = ("gnnbench", ".venv/bin/gnnbench")
PYTHONS = ("python", "python3", ".venv/bin/python")


class Command(NamedTuple):
    """A command of a document as words, without leading variables and trailing comments."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def blocks(page: Path, *languages: str) -> list[str]:
    """The text of a page's fenced blocks of these languages."""
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def commands(page: Path) -> list[Command]:
    """Every command in the shell blocks of a page."""
    found = []
    name = page.relative_to(ROOT).as_posix()
    for block in blocks(page, "sh"):
        if block.startswith("#!"):  # a script of another program, such as Slurm's
            continue
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            words = shlex.split(line, comments=True)
            while words and VARIABLE.fullmatch(words[0]):
                words = words[1:]
            if words[:1] == ["timeout"]:
                words = words[4:]
            if words:
                found.append(Command(name, tuple(words)))
    return found


def gnnbench_arguments(command: Command) -> tuple[str, ...] | None:
    """The arguments of a ``gnnbench`` command; None for another program."""
    if command.words[0] in PROGRAMS:
        return command.words[1:]
    if command.words[0] in PYTHONS and command.words[1:3] == ("-m", "gnnbench"):
        return command.words[3:]
    return None
