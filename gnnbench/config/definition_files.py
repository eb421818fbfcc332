"""Find, read and merge the files of a definition."""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from gnnbench.config import limits
from gnnbench.config.merge import laid_on_default, merge, with_paths
from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.datasets.manifest import share_dir


def shipped() -> dict[str, Path]:
    """Names and files of the shipped definitions."""
    return {p.stem: p for p in sorted(share_dir("experiments").glob("*.toml"))}


def is_one(name_or_path: str) -> bool:
    """Whether a name is that of a definition, shipped or a file, valid or not."""
    text = str(name_or_path)
    is_path = text.endswith(".toml") or "/" in text or _is_file(Path(f"{text}.toml"))
    return is_path or names.known_spelling(text, shipped()) in shipped()


def _find(name_or_path: str, folder: Path) -> Path:
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = folder / name_or_path
        if not _is_file(path):
            raise UsageError(
                f"there is no definition '{name_or_path}'; give a file, or a name of"
                " 'gnnbench list experiments' or 'gnnbench list figures'"
            )
        if path.suffix != ".toml":
            raise UsageError(
                f"'{name_or_path}' is no definition (.toml); for a graph, 'gnnbench data import"
                f" {name_or_path} --name NAME', then 'gnnbench run breakdown --datasets NAME'"
            )
        return path
    known = shipped()
    if name_or_path not in known and _is_file(own := folder / f"{name_or_path}.toml"):
        return own
    name = names.known_spelling(name_or_path, known)
    names.check("experiment", name, known)
    return known[name]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def files(name_or_path: str) -> Iterator[tuple[Path, dict[str, JsonValue]]]:
    """The files of a definition: its own, then those it extends, settings written by paths.

    Raises ``UsageError``.
    """
    path, seen = _find(name_or_path, Path()), set[Path]()
    while True:
        if path.resolve() in seen:
            raise UsageError(f"'{path.name}' extends itself through 'extends'")
        seen.add(path.resolve())
        raw = _read(path)
        yield path, raw
        if (parent := raw.get("extends")) is None:
            return
        if not isinstance(parent, str):
            raise UsageError(f"'extends' in '{path.name}' must be a name or a path")
        path = _find(parent, path.parent)


_tables = lru_cache(16)(tomllib.loads)  # a large definition takes 0.1 s; others extend it


def _parsed(path: Path) -> dict[str, JsonValue]:
    """The tables of a file, with or without a byte-order mark. Raises ``UsageError``."""
    try:
        with path.open("rb") as file:
            content = file.read(limits.MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {(error.strerror or '').lower()}") from None
    if len(content) > limits.MAX_BYTES:
        raise UsageError(f"'{path.name}' is larger than {limits.MAX_BYTES >> 20} MiB; shorten it")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UsageError(f"'{path.name}' is UTF-16; save it as UTF-8")
    if (at := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise UsageError(f"'{path.name}' has a NUL byte in line {line}; save it as text in UTF-8")
    try:
        return deepcopy(_tables(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"'{path.name}' is not TOML: byte 0x{content[error.start]:02x} in line {line} is not"
            " UTF-8; save the file as UTF-8"
        ) from None
    except RecursionError:
        raise UsageError(f"'{path.name}' nests lists or tables too deeply; use fewer") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        raise UsageError(f"'{path.name}' is not TOML: {error}") from None


def _read(path: Path) -> dict[str, JsonValue]:
    raw = _parsed(path)
    try:
        limits.check_values(raw)
    except UsageError as error:
        raise UsageError(f"'{path.name}': {error}") from None
    if "schema_version" not in raw:
        raise UsageError(f"'{path.name}' says no schema_version; add 'schema_version = 2'")
    if raw["schema_version"] == 1 and raw["schema_version"] is not True:
        raise UsageError(
            f"'{path.name}' is of schema_version 1: name whose an option is ('baseline.sampler'),"
            " write until = [\"sample\"] for the model 'none', and schema_version = 2"
        )
    return with_paths(raw)


def merged(name_or_path: str) -> tuple[Path, dict[str, JsonValue]]:
    """The file of a definition, and its content merged over what it extends."""
    chain = list(files(name_or_path))
    result: dict[str, JsonValue] = {}
    for path, own in reversed(chain):
        own = {"name": path.stem, **{k: v for k, v in own.items() if k != "extends"}}
        result = merge(laid_on_default(result, own), own) if result else own
    return chain[0][0], result
