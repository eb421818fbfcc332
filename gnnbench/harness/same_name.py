"""Other packages that are imported as ``gnnbench``.

One is published: https://github.com/shchur/gnn-benchmark (Shchur et al., 2018). Its distribution
has the name and the version of this one, so that pip replaces one by the other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path

NAME = "gnnbench"
HERE = Path(__file__).resolve().parents[1]  # the package that runs
COMMAND = "gnnbench.cli:main"  # the entry point of this distribution


def other_packages(path: Sequence[str] | None = None) -> list[Path]:
    """Return the folders of other packages of this name, in the order of the search path.

    ``path``: folders to search; default: the working folder, then ``sys.path``.
    """
    found: dict[Path, None] = {}
    for entry in [str(Path.cwd()), *sys.path] if path is None else path:
        spec = PathFinder.find_spec(NAME, [entry])
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).resolve().parent
        if folder != HERE:
            found[folder] = None
    return list(found)


def is_replaced(path: Sequence[str] | None = None) -> bool:
    """Return whether a distribution of this name is installed that is not this one.

    ``path``: folders to search; default: ``sys.path``.
    """
    where = list(sys.path if path is None else path)
    return any(
        COMMAND not in [point.value for point in one.entry_points]
        for one in distributions(name=NAME, path=where)
    )
