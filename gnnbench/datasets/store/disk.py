"""Folders of the store on disk: locks, free space, errors of the file system, atomic renames."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from gnnbench.core.errors import UsageError

# Called after every chunk with the step's name, the bytes done and the total (0: unknown).
Progress = Callable[[str, int, int], None]

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Convert any ``OSError`` into a ``UsageError`` that names the folder and the fix."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise UsageError(
                f"the disk of {folder} is full; free some space or set GNNBENCH_DATA to a folder "
                "on another disk"
            ) from None
        raise UsageError(
            f"cannot write below {folder} ({error.strerror or error}); set GNNBENCH_DATA to a "
            "folder that you may write"
        ) from None


def folder_bytes(folder: Path) -> int:
    """Total size of the files in a folder; 0 if it does not exist."""
    return sum(p.stat().st_size for p in folder.iterdir()) if folder.is_dir() else 0


def free_disk_bytes(folder: Path) -> int:
    """Free bytes of the disk of a folder, which need not exist yet."""
    existing = next(f for f in (folder, *folder.parents) if f.exists())
    return shutil.disk_usage(existing).free


@contextlib.contextmanager
def graph_lock(final: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Lock a graph folder against other writing processes.

    Calls ``waiting`` once if another process has the lock.
    """
    from filelock import FileLock  # may be missing in environments of other systems

    with writing_to(final.parent):
        final.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(final.parent / f".{final.name}.lock")
        try:
            lock.acquire(blocking=False)
        except TimeoutError:
            if waiting is not None:
                waiting()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


class BackgroundSync:
    """Runs ``fsync`` on written files in threads while the next arrays are computed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(4)
        self._pending: list[Future[None]] = []

    def start(self, descriptor: int) -> None:
        """Sync an open file; the caller may close it at once."""
        self._pending.append(self._pool.submit(_sync_and_close, os.dup(descriptor)))

    def wait(self) -> None:
        """Block until all files are on disk. Raises the first ``OSError``."""
        for pending in self._pending:
            pending.result()

    def close(self) -> None:
        """Wait for the threads and ignore their errors."""
        self._pool.shutdown()


def _sync_and_close(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk."""
    _sync_and_close(os.open(folder, os.O_RDONLY))


def replace_folder(fresh: Path, final: Path) -> None:
    """Rename ``fresh`` to ``final``; an older ``final`` is deleted only after the rename."""
    old = final.parent / f".{final.name}.old"
    if old.exists():
        shutil.rmtree(old)
    if final.exists():
        final.rename(old)
    fresh.rename(final)
    sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)
