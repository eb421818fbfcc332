"""Other Python environments, in which workers run this source tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gnnbench.core.bootstrap import command
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.harness.protocol import EnvironmentFacts
from gnnbench.kernels.rng import IN_NUMPY
from gnnbench.measure.machine import native_folders

OLDEST = (3, 10)
NEEDED = ("numpy", "torch")
LONGEST = 40  # a name is a part of file names and labels
NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}")
VALUES = ("true", "false", "inf", "nan")  # what a label would not read as a name
FIRST_WORD_S = 60.0

# What is said by any Python 3, however old.
FIRST_WORD = (
    "import sys; from importlib.util import find_spec;"
    " print(*sys.version_info[:2], *(n for n in sys.argv[1:] if find_spec(n) is None))"
)
# Variables that would bring this environment's packages along.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


@dataclass(frozen=True)
class Interpreter:
    """An environment: its ``name`` in labels, and its ``python`` as given by the user."""

    name: str
    python: Path

    def command(self, module: str) -> list[str]:
        """Return the command that runs a module of this source, without its argument."""
        return command(self.python, module)

    def variables(self) -> dict[str, str]:
        """Return the environment variables of its workers, without those that lead back to this
        environment.
        """
        inherited = {k: v for k, v in os.environ.items() if k not in OURS}
        folders = native_folders()
        built = next((f for f in folders if f.is_dir()), folders[0])
        return inherited | {"GNNBENCH_NATIVE_DIR": str(built)}


class EnvironmentEntry(EnvironmentFacts):
    """An environment in ``run.json``."""

    executable: str


@dataclass(frozen=True)
class Environments:
    """The environments of a run; this process's own is called ``""``.

    ``facts`` by name are the answers of ``gnnbench.harness.remote_answers.describe``.
    """

    others: Mapping[str, Interpreter] = field(default_factory=dict)
    facts: Mapping[str, EnvironmentFacts] = field(default_factory=dict)

    @property
    def order_in_numpy(self) -> bool:
        """Whether an environment cannot load the native library.

        Then all environments compute the batch order with numpy, because the order is part of every
        epoch.
        """
        return any(facts["native"] for facts in self.facts.values())

    def command(self, env: str, module: str = "gnnbench.harness.worker") -> list[str]:
        """Return the command that starts a worker, or another ``module``, in an environment."""
        if env:
            return self.others[env].command(module)
        # Not by what lies in the folder that a user stands in.
        return [sys.executable, "-P", "-m", module]

    def variables(self, env: str) -> dict[str, str]:
        """Return the environment variables of a worker in an environment."""
        inherited = self.others[env].variables() if env else dict(os.environ)
        return inherited | ({IN_NUMPY: "1"} if self.order_in_numpy else {})

    def record(self) -> dict[str, EnvironmentEntry]:
        """Return the environments' part of ``run.json``: versions, and names of executables
        without folders.
        """
        return {
            name: {
                "executable": other.python.name,
                "versions": self.facts[name]["versions"],
                "native": self.facts[name]["native"],
            }
            for name, other in self.others.items()
        }


HERE = Environments()


def parse(texts: Iterable[str]) -> dict[str, Interpreter]:
    """Parse ``NAME=PATH``: the folder of a virtual environment, or a Python executable.

    Raises ``UsageError`` for a malformed text, an invalid or repeated name and a path without an
    environment, ``MissingError`` for a Python that is too old or lacks numpy or torch.
    """
    interpreters: dict[str, Interpreter] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise UsageError(f"'{text}' is not of the form NAME=PATH; give --env old=.venv-old")
        if not NAME.fullmatch(name) or name in VALUES:
            raise UsageError(
                f"'{name}' cannot be the name of an environment; begin it with a letter and go on"
                f" with letters, digits, '_', '-' and '.', {LONGEST} characters at most"
            )
        if name in interpreters:
            raise UsageError(f"the environment '{name}' is given twice; name each another way")
        interpreters[name] = Interpreter(name, _python(name, path))
        _first_word(interpreters[name])
    return interpreters


def _python(name: str, path: str) -> Path:
    # A link is not followed: the Python of a virtual environment is known by where the link is.
    try:
        place = Path(path).expanduser().absolute()
        there = place.exists()
    except (OSError, RuntimeError):  # too long a name, or nobody's home
        there = False
    if not there:
        raise UsageError(f"environment '{name}': there is no '{path}'; give its folder or Python")
    if not place.is_dir():
        return place
    if not (place / "bin" / "python").exists():
        raise UsageError(
            f"environment '{name}': '{path}' holds no bin/python; give the folder of a virtual"
            " environment, or a Python itself"
        )
    return place / "bin" / "python"


def _first_word(other: Interpreter) -> None:
    """Raise an error unless the Python can run a worker."""
    try:
        done = subprocess.run(
            [str(other.python), "-c", FIRST_WORD, *NEEDED],
            capture_output=True, text=True, timeout=FIRST_WORD_S, env=other.variables(),
        )  # fmt: skip
        words = done.stdout.splitlines()[-1].split() if done.returncode == 0 else []
        version = (int(words[0]), int(words[1]))
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        raise UsageError(
            f"environment '{other.name}': '{other.python.name}' is no Python 3 that runs; give"
            " another"
        ) from None
    if version < OLDEST:
        raise MissingError(
            f"environment '{other.name}' has Python {words[0]}.{words[1]}; a worker needs"
            f" {OLDEST[0]}.{OLDEST[1]} or newer"
        )
    if lacking := words[2:]:
        raise MissingError(
            f"environment '{other.name}' has no {' and no '.join(lacking)}; a worker needs"
            f" {' and '.join(NEEDED)}: install what is missing there"
        )
