"""Runs by name: what a command may say where it asks for one, and what there is."""

from __future__ import annotations

import fcntl
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader
from gnnbench.schema.run_record import RunRecord

LATEST = "latest"
_BACK = re.compile(r"(?P<name>.+?)(?:~(?P<back>\d+))?", re.DOTALL)
_STAMP = "%Y%m%dT%H%M%SZ"


def find(name: str, out: Path) -> Path:
    """The folder of a run.

    ``name`` is a run's folder or a file in it, a folder of runs (the newest of them), the last part
    of a run's path below ``out``, an experiment (its newest run) or ``latest``; the last two may go
    back: ``breakdown~1`` is the run before the newest. Raises ``UsageError`` for anything else.
    """
    path = names.typed_path(name)
    if path.is_file():
        path = path.parent
    if (path / "cells.csv").exists():
        return path
    found = re.fullmatch(_BACK, name or LATEST)
    assert found is not None
    asked, back = found["name"], int(found["back"] or 0)
    runs = [p for p in reader.run_folders(out) if (p / "cells.csv").exists()]
    if not found["back"] and (below := [p for p in runs if p.name == asked]):
        return below[-1]
    if asked != LATEST and path.is_dir() and (inside := _inside(path)):
        return inside[-1]
    if asked != LATEST:
        runs = [p for p in runs if p.parent.name == asked]
    if back < len(runs):
        return runs[-1 - back]
    raise UsageError(_absent(name, asked, len(runs), out))


def _inside(folder: Path) -> list[Path]:
    found = [*folder.glob("run-*"), *folder.glob("*/run-*")]
    return sorted((p for p in found if (p / "cells.csv").exists()), key=lambda p: p.name)


def _absent(name: str, asked: str, count: int, out: Path) -> str:
    if count:
        several = f"{count} runs" if count > 1 else "one run"
        of = "" if asked == LATEST else f" of '{asked}'"
        return f"'{out}' has {several}{of}, so no '{name}'; 'gnnbench runs' lists them"
    if asked == LATEST:
        return f"no results in '{out}'; 'gnnbench run breakdown' makes some"
    return (
        f"'{name}' is no run: neither a folder with cells.csv, nor an experiment with a run in"
        f" '{out}'; 'gnnbench runs' lists what is there"
    )


def is_running(path: Path) -> bool:
    """Whether a process writes to a run's folder now: it holds a lock on it."""
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


def listed(out: Path) -> list[dict[str, Any]]:
    """Runs below ``out``, the newest first, as the values of the table that lists them.

    ``state`` is ``finished``, ``running`` (a process holds the lock of its folder), ``interrupted``
    or ``damaged``. ``failed`` counts the cells without a sound result; of a running run it leaves
    out those that more pairs may still settle (``unstable``). A run whose files are damaged is
    listed with what its folder says.
    """
    found = []
    back: dict[str, int] = {}
    for path in reversed(reader.run_folders(out)):
        if not (path / "cells.csv").exists():
            continue
        name = path.parent.name
        nth = back[name] = back.get(name, -1) + 1
        row: dict[str, Any] = {
            "run": f"{name}~{nth}" if nth else name,
            "profile": "",
            "when": _when(path),
            "datasets": [],
        }
        try:
            run = reader.read(path)
        except UsageError:
            row |= {"machine": "damaged", "ok": None, "failed": None, "state": "damaged"}
        else:
            row["datasets"] = list(dict.fromkeys(r["dataset"] for r in run.cells))
            state = _state(path, run.record)
            sound = {"ok", "unstable"} if state == "running" else {"ok"}
            row |= {"profile": run.record.get("profile") or "", "machine": _machine(run.record)}
            row |= {
                "ok": sum(r["status"] == "ok" for r in run.cells),
                "failed": sum(r["status"] not in sound for r in run.cells),
                "state": state,
            }
        found.append({**row, "where": str(path)})
    return found


def _state(path: Path, record: RunRecord) -> str:
    """Whether a run is finished, running or interrupted; without a mark in its record: finished."""
    if record.get("finished") is not False:
        return "finished"
    return "running" if is_running(path) else "interrupted"


def _when(path: Path) -> str:
    try:
        return datetime.strptime(path.name.split("-")[1], _STAMP).strftime("%Y-%m-%d %H:%M")
    except (ValueError, IndexError):
        return ""


def _machine(record: RunRecord) -> str:
    """A machine in few words: its GPUs, or the cores of its CPU."""
    found = record.get("machine", {})
    gpus = [str(g["name"]).removeprefix("NVIDIA ") for g in found.get("gpus") or []]
    if gpus:
        return ", ".join(f"{gpus.count(g)} x {g}" for g in dict.fromkeys(gpus))
    cores = found.get("cores_usable")
    return f"{cores} CPU cores" if cores else ""
