"""A package that adds a system or a sampler: a few files, which run as they are written."""

from __future__ import annotations

import importlib.util
import keyword
from pathlib import Path
from string import Template

from gnnbench.core import registry
from gnnbench.core.errors import UsageError

TEMPLATES = Path(__file__).parent / "templates"
KINDS = (registry.SYSTEM, registry.SAMPLER)
# Other groups of entry points that the module of a kind fills, with the end of the object's name.
ENTRIES = {registry.SYSTEM: ("features", "StoreSpec"), registry.SAMPLER: ("samplers", "")}


def write(kind: str, name: str, folder: Path | None = None) -> list[Path]:
    """Write the package ``name`` with a ``system`` or a ``sampler``; returns its files.

    ``folder`` must not exist; the default is ``name``. Raises ``UsageError`` for a name that is not
    a legal module name or is taken, and for an existing folder.
    """
    if kind not in KINDS:
        raise UsageError(f"a new package is one of {' or '.join(KINDS)}, not '{kind}'")
    _check_identifier(kind, name)
    folder = folder or Path(name)
    if folder.exists():
        raise UsageError(f"'{folder}' exists already; name another folder: --out FOLDER")
    _check_free(name)
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    group, ending = ENTRIES[kind]
    values = {
        "name": name, "Name": class_name, "kind": kind, "group": group,
        "object": f"{class_name}{ending}",
    }  # fmt: skip
    files = {
        "pyproject.toml": "pyproject.toml",
        f"{name}.py": f"{kind}.py",
        f"test_{name}.py": f"test_{kind}.py",
    }
    try:
        folder.mkdir(parents=True)
        for file, template in files.items():
            text = (TEMPLATES / f"{template}.txt").read_text()
            (folder / file).write_text(Template(text).substitute(values))
    except OSError as error:
        raise UsageError(f"'{folder}' cannot be written: {error.strerror}; name another") from error
    return [folder / file for file in files]


def _check_identifier(kind: str, name: str) -> None:
    """Raise ``UsageError`` unless a module may have the name."""
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name[0] == "_":
        like = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
        like = like if like.isidentifier() and not keyword.iskeyword(like) else f"my_{kind}"
        raise UsageError(f"'{name}' cannot be the name of a Python module; take one like '{like}'")


def _check_free(name: str) -> None:
    """Raise ``UsageError`` where a system, a stage or a module has the name already."""
    for taken in registry.KINDS:
        if name in registry.OURS[taken]:
            raise UsageError(
                f"'{name}' is one of gnnbench's own {registry.GROUPS[taken]}; take another name,"
                f" as 'my_{name}'"
            )
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:  # a folder is no module yet
        raise UsageError(
            f"a module '{name}' is installed already; take another name, as 'my_{name}'"
        )
