"""Find runs by name, and list them."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader
from gnnbench.schema.run_record import RunRecord

LATEST = "latest"
_BACK = re.compile(r"(?P<name>.+?)(?:~(?P<back>\d+))?", re.DOTALL)
_STAMP = "%Y%m%dT%H%M%SZ"


class ListedRun(TypedDict):
    """A run in the table of ``gnnbench runs``.

    ``state`` is ``finished``, ``running`` (a process has the lock of its folder), ``interrupted``
    or ``damaged``. ``failed`` counts the cells without a result; while a run is ``running``, it
    excludes ``unstable`` ones, which more pairs may settle.
    """

    run: str
    profile: str
    when: str
    datasets: list[str]
    machine: str
    ok: int | None
    failed: int | None
    state: str
    where: str


def find(name: str, out: Path) -> Path:
    """The folder of a run.

    ``name`` is a run's folder or a file in it, a folder of runs (the newest is taken), the last
    part of a run's path below ``out``, an experiment (its newest run with results) or ``latest``. A
    suffix selects earlier runs of the last two: ``breakdown~1`` is the run before the newest.
    Raises ``UsageError`` for anything else.
    """
    path = names.typed_path(name)
    if path.is_file():
        path = path.parent
    if (path / "cells.csv").exists():
        return path
    match = re.fullmatch(_BACK, name or LATEST)
    assert match is not None
    experiment, back = match["name"], int(match["back"] or 0)
    runs = [p for p in reader.run_folders(out) if _has_rows(p)]
    if not match["back"]:
        for run in reader.run_folders(out):
            if run.name == experiment and (run / "cells.csv").exists():
                return run
    if experiment != LATEST and path.is_dir() and (runs_below := _runs_below(path)):
        return runs_below[-1]
    if experiment != LATEST:
        runs = [p for p in runs if p.parent.name == experiment]
    if back < len(runs):
        return runs[-1 - back]
    raise UsageError(_no_such_run(name, experiment, len(runs), out))


def _has_rows(folder: Path) -> bool:
    """Whether a run has results: one that was interrupted before its first has none."""
    try:
        with (folder / "cells.csv").open("rb") as file:
            return bool(file.readline() and file.readline())
    except OSError:
        return False


def _runs_below(folder: Path) -> list[Path]:
    paths = [*folder.glob("run-*"), *folder.glob("*/run-*")]
    return sorted((p for p in paths if (p / "cells.csv").exists()), key=lambda p: p.name)


def find_all(typed: Iterable[str], out: Path) -> list[Path]:
    """The folders of several runs, each once.

    A name is one that ``find`` takes. A folder of runs and an experiment are all their runs. Raises
    ``UsageError`` as ``find``.
    """
    folders = [folder for name in typed for folder in _all(name, out)]
    return list({folder.resolve(): folder for folder in folders}.values())


def _all(name: str, out: Path) -> list[Path]:
    path = names.typed_path(name)
    if path.is_dir() and not (path / "cells.csv").exists():
        tables = [*path.glob("*/cells.csv"), *path.glob("*/*/cells.csv")]
        if tables:
            return sorted(table.parent for table in tables)
    runs = [p for p in reader.run_folders(out) if p.parent.name == name]
    return [p for p in runs if (p / "cells.csv").exists()] or [find(name, out)]


def _no_such_run(name: str, experiment: str, count: int, out: Path) -> str:
    if count:
        several = f"{count} runs" if count > 1 else "one run"
        of = "" if experiment == LATEST else f" of '{experiment}'"
        return f"'{out}' has {several}{of}, so no '{name}'; 'gnnbench runs' lists them"
    if experiment == LATEST:
        return f"no results in '{out}'; 'gnnbench run breakdown' makes some"
    return (
        f"'{name}' is no run: neither a folder with cells.csv, nor an experiment with a run in"
        f" '{out}'; 'gnnbench runs' lists all runs"
    )


def is_running(path: Path) -> bool:
    """Whether a process has locked a run's folder to write to it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def listed(out: Path) -> list[ListedRun]:
    """Runs below ``out``, the newest first. A damaged run is listed by its folder's name."""
    runs = []
    count_by_name: dict[str, int] = {}
    for path in reversed(reader.run_folders(out)):
        if not (path / "cells.csv").exists():
            continue
        name = path.parent.name
        if not _has_rows(path):
            runs.append(_listed(path, path.name))
            continue
        back = count_by_name[name] = count_by_name.get(name, -1) + 1
        runs.append(_listed(path, f"{name}~{back}" if back else name))
    return runs


def _listed(path: Path, name: str) -> ListedRun:
    row: ListedRun = {
        "run": name, "profile": "", "when": _when(path), "datasets": [], "machine": "damaged",
        "ok": None, "failed": None, "state": "damaged", "where": str(path),
    }  # fmt: skip
    try:
        run = reader.read(path)
    except UsageError:
        return row
    row["profile"] = run.record.profile or ""
    row["datasets"] = list(dict.fromkeys(r["dataset"] for r in run.cells))
    row["machine"] = _machine(run.record)
    row["state"] = _state(path, run.record)
    valid = {"ok", "unstable"} if row["state"] == "running" else {"ok"}
    row["ok"] = sum(r["status"] == "ok" for r in run.cells)
    row["failed"] = sum(r["status"] not in valid for r in run.cells)
    return row


def _state(path: Path, record: RunRecord) -> str:
    """State of a run that can be read. Older records without ``finished`` are finished."""
    if record.finished is not False:
        return "finished"
    return "running" if is_running(path) else "interrupted"


def _when(path: Path) -> str:
    try:
        return datetime.strptime(path.name.split("-")[1], _STAMP).strftime("%Y-%m-%d %H:%M")
    except (ValueError, IndexError):
        return ""


def _machine(record: RunRecord) -> str:
    """The GPUs of a machine, or the cores of its CPU."""
    gpus = [gpu.name.removeprefix("NVIDIA ") for gpu in record.machine.gpus or []]
    if gpus:
        return ", ".join(f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus))
    cores = record.machine.cores_usable
    return f"{cores} CPU cores" if cores else ""
