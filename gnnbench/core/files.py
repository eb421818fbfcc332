"""Write files of a run: journals are synced record by record, other files replaced atomically."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import overload

from gnnbench.core.errors import UsageError

TEMPORARY = ".tmp-"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder, renamed to ``path`` if the block succeeds."""
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Replace a JSON file atomically; NaN and infinities become null."""
    write_text(path, json.dumps(plain(value), indent=2, allow_nan=False) + "\n")


@overload
def plain(value: Mapping[str, object]) -> dict[str, object]: ...
@overload
def plain(value: object) -> object: ...
def plain(value: object) -> object:
    """Convert to JSON values: NaN and infinities become null, paths become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


class Journal:
    """An append-only file of JSON lines; each line is on the disk when ``append`` returns.

    Opening a journal removes an incomplete last line.
    """

    def __init__(self, path: Path) -> None:
        if path.exists():
            _cut_torn_line(path)
        self._file = path.open("ab", buffering=0)

    def append(self, record: Mapping[str, object]) -> None:
        """Write one record and sync it, or leave the file as it was and raise ``OSError``."""
        line = json.dumps(plain(record), allow_nan=False).encode() + b"\n"
        before = self._file.tell()
        try:
            left = memoryview(line)
            while left:  # a nearly full disk accepts only a part
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(before)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cut_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        with path.open("r+b") as file:
            file.truncate(whole)


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed process left in ``folder``."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def ensure_folder(path: Path) -> None:
    """Create a folder and check that it is writable. Raises ``UsageError``."""
    with _writing_to(path):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


def check_folder(path: Path) -> None:
    """Check that ``ensure_folder`` would succeed, without creating it. Raises ``UsageError``."""
    with _writing_to(path):
        if path.exists():
            ensure_folder(path)
            return
        above = next(p for p in path.absolute().parents if p.exists())
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=above):
            pass


@contextmanager
def _writing_to(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into the ``UsageError`` of a folder for results."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(
            f"cannot write to '{path}' ({why}); give another folder with --out"
        ) from None
