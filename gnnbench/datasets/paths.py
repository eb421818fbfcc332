"""Folders of prepared graphs, raw sources and the shipped definitions."""

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
    """Why the data root cannot be written; empty if it can. Creates no folder."""
    folder = data_root(root)
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".tmp-", dir=existing)).rmdir()
    except OSError as error:
        reason = error.strerror or str(error)
        return (
            f"the store {folder} cannot be written ({reason}); set GNNBENCH_DATA to a folder that "
            "you may write"
        )
    return ""


def imported_dir(root: str | Path | None = None) -> Path:
    """Folder of the graphs that ``data import`` stored, one subfolder each."""
    return data_root(root) / "imported"


def raw_folders(root: str | Path | None = None) -> list[Path]:
    """Folders that are searched for raw sources, in order.

    ``$GNNBENCH_REAL_DATA``, then ``raw`` below the data root. The working folder is not searched,
    since others may be able to write there. Raises ``UsageError`` if the variable names no folder.
    """
    variable = os.environ.get("GNNBENCH_REAL_DATA")
    extra = [Path(variable).expanduser()] if variable else []
    if extra and not extra[0].is_dir():
        raise UsageError(
            f"GNNBENCH_REAL_DATA names {variable}, and there is no such folder; correct or unset it"
        )
    return [*extra, data_root(root) / "raw"]


def find_raw(
    patterns: list[str], root: str | Path | None = None, needs: list[str] | None = None
) -> Path | None:
    """First of the relative paths ``patterns`` that exists and contains all files ``needs``."""
    for folder in raw_folders(root):
        for pattern in patterns:
            path = folder / pattern
            if path.exists() and all((path / file).is_file() for file in needs or []):
                return path.resolve()
    return None


def share_dir(kind: str) -> Path:
    """Folder of the shipped definitions of a kind: ``datasets`` or ``experiments``.

    It is in ``gnnbench_share``, next to the installed package, or at the top of a source tree.
    """
    root = Path(__file__).resolve().parents[2]
    for folder in (root / "gnnbench_share" / kind, root / kind):
        if folder.is_dir() and any(folder.glob("*.toml")):
            return folder
    raise MissingError(f"the shipped {kind} are missing; install gnnbench again")
