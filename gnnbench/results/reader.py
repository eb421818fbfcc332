"""Find and read what a run left on disk."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnnbench.errors import UsageError
from gnnbench.results import upgrade
from gnnbench.results.schema import (
    CELLS,
    CONVERGENCE,
    CURVES,
    KERNELS,
    MACHINES,
    METRICS,
    RATIOS,
    ROOFLINE,
    SAMPLES,
    STAGES,
    VERSION,
    Column,
)


@dataclass(frozen=True)
class Run:
    """A run read back: typed rows (empty fields are None) and ``run.json``.

    Rows are of this version of the schema, whichever wrote them. Samples of version 1 have their
    ``counts``, as ``samples.jsonl`` has them.
    """

    path: Path
    cells: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    record: dict[str, Any]
    ratios: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    curves: list[dict[str, Any]] = field(default_factory=list)
    roofline: list[dict[str, Any]] = field(default_factory=list)
    convergence: list[dict[str, Any]] = field(default_factory=list)
    machines: list[dict[str, Any]] = field(default_factory=list)
    failed_lives: list[dict[str, Any]] = field(default_factory=list)  # rows of machines.csv


def run_folders(out: Path, experiment: str | None = None) -> list[Path]:
    """Run folders below ``out``, the oldest first."""
    pattern = f"{experiment or '*'}/run-*"
    return sorted((p for p in out.glob(pattern) if p.is_dir()), key=lambda p: (p.name, str(p)))


def read_csv(path: Path, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Typed rows. Raises ``UsageError`` for a file that is not of this schema."""
    types = {c.name: c.dtype for c in columns}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        try:
            header = reader.fieldnames or []
            unknown = [name for name in header if name not in types]
            if not header:
                raise UsageError(f"'{path}' is empty; give the folder of another run")
            if unknown:
                raise UsageError(f"'{path}' is not a table of this schema (column {unknown[0]!r})")
            # A table of an earlier day lacks the columns that came later.
            earlier = {k: _value("", dtype) for k, dtype in types.items() if k not in header}
            return [earlier | {k: _value(v, types[k]) for k, v in row.items()} for row in reader]
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise UsageError(
                f"'{path}' is damaged ({error}); give the folder of another run"
            ) from None


def _value(text: str, dtype: str) -> Any:
    if dtype == "str":
        return text
    if text == "":
        return None
    if dtype == "bool":
        return {"true": True, "false": False}[text]
    return int(text) if dtype == "int" else float(text)


def read_machines(folder: Path) -> Run:
    """Read the folder of a run of several machines, which has no cells. Raises as ``read``."""
    if not (folder / "machines.csv").exists():
        raise UsageError(f"'{folder}' holds no machines.csv; give the folder of such a run")
    rows = _table(folder, "machines", MACHINES)
    for row in rows:
        row["status"] = row["status"] or "ok"  # earlier tables have rows of what ended well alone
    well, failed = ([r for r in rows if (r["status"] == "ok") == ok] for ok in (True, False))
    return Run(folder, [], [], read_record(folder), machines=well, failed_lives=failed)


def read(folder: Path) -> Run:
    """Read a run folder. Raises ``UsageError`` where there is none."""
    if not (folder / "cells.csv").exists():
        raise UsageError(f"'{folder}' holds no cells.csv; give the folder of a run")
    record = read_record(folder) if (folder / "run.json").exists() else {}
    if _is_first_version(folder / "cells.csv"):
        first = {name: _table(folder, name, columns) for name, columns in upgrade.FIRST.items()}
        return Run(folder, record=record, **upgrade.upgrade(first, record))
    now = {"cells": CELLS, "samples": SAMPLES, "metrics": METRICS, "ratios": RATIOS}
    now |= {"stages": STAGES, "kernels": KERNELS, "curves": CURVES, "roofline": ROOFLINE}
    now |= {"convergence": CONVERGENCE}
    found = {name: _table(folder, name, columns) for name, columns in now.items()}
    if any(r["schema_version"] != VERSION for r in found["cells"]):
        raise UsageError(
            f"'{folder}' was written by another version of gnnbench; read it with that one"
        )
    return Run(folder, record=record, **found)


def _is_first_version(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return "schema_version" not in file.readline().rstrip("\n").split(",")


def _table(folder: Path, name: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    path = folder / f"{name}.csv"
    return read_csv(path, columns) if path.exists() else []


def read_record(folder: Path) -> dict[str, Any]:
    """``run.json``. Raises ``UsageError`` where it is damaged."""
    path = folder / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(
            f"'{path}' is damaged ({error}); remove its folder or take another run"
        ) from None
    if not isinstance(found, dict):
        raise UsageError(f"'{path}' is not the record of a run; give the folder of another run")
    return found
