"""Seal a graph after its checksums agreed, so that later runs need not read all of it again.

``seal.json`` records device, inode, size and change times of every file, and the digest of
``meta.json``. A graph with an unchanged seal is trusted. A seal is not a signature: anyone
who can write to the store can also write a seal.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from gnnbench.core.errors import DataError
from gnnbench.core.files import write_json
from gnnbench.datasets.store import layout

SEAL = "seal.json"
VERSION = 1
# File times have a resolution of at most 10 ms; two changes within it get the same time.
STEP_NS = 20_000_000

Stamp = dict[str, list[int]]


def stamp(path: str | Path) -> Stamp:
    """Device, inode, size, mtime and ctime (ns) of each file of a prepared graph, by file name.

    Two equal stamps, before and after reading, prove that no file changed in between. Raises
    ``DataError`` if a file is missing.
    """
    folder = Path(path)
    entries = layout.read_meta(folder)["arrays"]
    names = [layout.file_of(folder, a) for a, e in entries.items() if not layout.is_generated(e)]
    stamps = {}
    for file in (folder / layout.META, *names):
        try:
            stat = file.stat()
        except OSError as error:
            raise DataError(f"cannot read {file} ({error.strerror}); prepare it again") from None
        times = [stat.st_mtime_ns, stat.st_ctime_ns]
        stamps[file.name] = [stat.st_dev, stat.st_ino, stat.st_size, *times]
    return stamps


def settled_stamp(path: str | Path) -> Stamp:
    """:func:`stamp` after a wait of at most one time step, so that any later change alters it."""
    newest = max(times[-1] for times in stamp(path).values())
    wait_ns = newest + STEP_NS - time.time_ns()
    time.sleep(min(max(wait_ns, 0), STEP_NS) / 1e9)  # bounded even if the disk's clock is wrong
    return stamp(path)


def seal(path: str | Path, checked: Stamp) -> str:
    """Record that the files with the stamp ``checked`` agreed with their checksums.

    ``checked`` is the :func:`settled_stamp` from before the files were read. Returns why the seal
    could not be written, or an empty text.
    """
    folder = Path(path)
    try:
        write_json(folder / SEAL, {"version": VERSION, "meta": _meta(folder), "files": checked})
    except OSError as error:
        return error.strerror or str(error)
    return ""


def break_seal(path: str | Path) -> None:
    """Remove the seal, so that the next run checks the graph again."""
    try:
        (Path(path) / SEAL).unlink()
    except OSError:
        return


def sealed_stamp(path: str | Path) -> Stamp | None:
    """The stamp of a graph that has not changed since it was sealed, else None."""
    folder = Path(path)
    if not (folder / SEAL).is_file():
        return None
    try:
        recorded = json.loads((folder / SEAL).read_bytes())
        now = stamp(folder)
        if recorded == {"version": VERSION, "meta": _meta(folder), "files": now}:
            return now
    except (OSError, ValueError, RecursionError, DataError):
        return None
    return None


def _meta(folder: Path) -> str:
    return hashlib.sha256((folder / layout.META).read_bytes()).hexdigest()
