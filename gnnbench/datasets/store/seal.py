"""A graph whose checksums agreed is sealed: read whole once, trusted as long as no file changes.

The seal is a file beside ``meta.json`` with what the file system tells of every file, and the
digest of ``meta.json``. It is no signature: whoever may write the store may write a seal, too.
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
# Times of files go on in steps, of 10 ms at most: a change within one step has the time before it.
STEP_NS = 20_000_000

Stamp = dict[str, list[int]]


def stamp(path: str | Path) -> Stamp:
    """Device, inode, size and times of the last change (of content, of anything; ns) of each file
    of a prepared graph.

    Taken before it is read, it tells later that nothing has been touched since. Raises
    ``DataError`` where a file is missing.
    """
    folder = Path(path)
    entries = layout.read_meta(folder)["arrays"]
    names = [layout.file_of(folder, a) for a, e in entries.items() if not layout.is_made(e)]
    found = {}
    for file in (folder / layout.META, *names):
        try:
            stat = file.stat()
        except OSError as error:
            raise DataError(f"cannot read {file} ({error.strerror}); prepare it again") from None
        times = [stat.st_mtime_ns, stat.st_ctime_ns]
        found[file.name] = [stat.st_dev, stat.st_ino, stat.st_size, *times]
    return found


def settled(path: str | Path) -> Stamp:
    """:func:`stamp` once a later change of any file must show in it. Raises as that."""
    newest = max(times[-1] for times in stamp(path).values())
    left = newest + STEP_NS - time.time_ns()
    time.sleep(min(max(left, 0), STEP_NS) / 1e9)  # at most a step, whatever the clock of the disk
    return stamp(path)


def seal(path: str | Path, seen: Stamp) -> str:
    """Write that the files of ``seen`` were checked; why that cannot be, empty where it was.

    ``seen`` is :func:`settled` from before they were read.
    """
    folder = Path(path)
    try:
        write_json(folder / SEAL, {"version": VERSION, "meta": _meta(folder), "files": seen})
    except OSError as error:
        return error.strerror or str(error)
    return ""


def break_seal(path: str | Path) -> None:
    """Have a graph checked again before it is used; one that cannot be written has no seal."""
    try:
        (Path(path) / SEAL).unlink()
    except OSError:
        return


def sealed(path: str | Path) -> Stamp | None:
    """The stamp of a graph that is as it was when it was sealed; None of any other."""
    folder = Path(path)
    if not (folder / SEAL).is_file():
        return None
    try:
        found = json.loads((folder / SEAL).read_bytes())
        now = stamp(folder)
        if found == {"version": VERSION, "meta": _meta(folder), "files": now}:
            return now
    except (OSError, ValueError, RecursionError, DataError):
        return None
    return None


def _meta(folder: Path) -> str:
    return hashlib.sha256((folder / layout.META).read_bytes()).hexdigest()
