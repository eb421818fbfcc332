"""Where prepared graphs, raw sources and the shipped definitions live."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gnnbench.core.errors import MissingError, UsageError


def data_root(root: str | Path | None = None) -> Path:
    """Folder of prepared graphs.

    ``root``, else ``$GNNBENCH_DATA``, else ``gnnbench`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if root is not None:
        return Path(root).expanduser().absolute()
    if named := os.environ.get("GNNBENCH_DATA"):
        return Path(named).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "gnnbench"


def store_problem(root: str | Path | None = None) -> str:
    """Why nothing can be written to the data root; empty where it can. Makes no folder."""
    folder = data_root(root)
    there = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".tmp-", dir=there)).rmdir()
    except OSError as error:
        why = error.strerror or str(error)
        return (
            f"the store {folder} cannot be written ({why}); set GNNBENCH_DATA to a folder that you "
            "may write"
        )
    return ""


def imported_dir(root: str | Path | None = None) -> Path:
    """Folder below the data root of the graphs that ``data import`` stored, one folder each."""
    return data_root(root) / "imported"


def raw_folders(root: str | Path | None = None) -> list[Path]:
    """Folders searched for raw sources, first match wins.

    ``$GNNBENCH_REAL_DATA``, then ``raw`` below the data root. No folder near the working folder is
    searched: others may be able to write there. Raises ``UsageError`` where the variable names no
    folder.
    """
    named = os.environ.get("GNNBENCH_REAL_DATA")
    first = [Path(named).expanduser()] if named else []
    if first and not first[0].is_dir():
        raise UsageError(
            f"GNNBENCH_REAL_DATA names {named}, and there is no such folder; correct or unset it"
        )
    return [*first, data_root(root) / "raw"]


def find_raw(
    patterns: list[str], root: str | Path | None = None, needs: list[str] | None = None
) -> Path | None:
    """First existing file, or folder that holds all of ``needs``, among relative ``patterns``."""
    for folder in raw_folders(root):
        for pattern in patterns:
            path = folder / pattern
            if path.exists() and all((path / file).is_file() for file in needs or []):
                return path.resolve()
    return None


def share_dir(kind: str) -> Path:
    """Folder of the definitions that travel with gnnbench: ``datasets`` or ``experiments``.

    ``gnnbench/_share`` in an installed wheel, the repository's own folder in a source tree.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_share" / kind, package.parent / kind):
        if folder.is_dir() and any(folder.glob("*.toml")):
            return folder
    raise MissingError(f"the shipped {kind} are not there; install gnnbench again")
