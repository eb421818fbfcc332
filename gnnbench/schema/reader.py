"""Find and read what a run left on disk."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnnbench.core import names
from gnnbench.core.cell import PHASES, flat
from gnnbench.core.errors import UsageError
from gnnbench.schema import (
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
    STATUSES,
    VERSION,
    Column,
    raw,
)
from gnnbench.schema import run_record as record


@dataclass(frozen=True)
class Run:
    """A run read back: typed rows (empty fields are None) and ``run.json``."""

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
    """Run folders below ``out``, the oldest first. Raises ``UsageError`` for no legal path."""
    pattern = f"{experiment or '*'}/run-*"
    out = names.typed_path(str(out))
    return sorted((p for p in out.glob(pattern) if p.is_dir()), key=lambda p: (p.name, str(p)))


def read_csv(path: Path, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Typed rows. Raises ``UsageError``, which names the line, for a file not of this schema."""
    types = {c.name: c.dtype for c in columns}
    line = 1
    try:
        with raw.opened(path) as content:
            file = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            _check_header(path, header, types)
            # A table of an earlier day lacks the columns that came later.
            earlier = {k: _value("", dtype) for k, dtype in types.items() if k not in header}
            rows = []
            for fields in reader:
                line = reader.line_num
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise ValueError(f"{len(fields)} fields, the first line has {len(header)}")
                pairs = zip(header, fields, strict=True)
                rows.append(earlier | {name: _typed(name, v, types[name]) for name, v in pairs})
            return rows
    except UnicodeDecodeError:
        raise _damaged(path, "it is not UTF-8") from None
    except OSError as error:
        raise _damaged(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, csv.Error) as error:
        raise _damaged(path, f"line {line}: {error}") from None


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(f"'{path}' is damaged ({why}); give the folder of another run")


def _check_header(path: Path, header: list[str], types: Mapping[str, str]) -> None:
    if not header:
        raise UsageError(f"'{path}' is empty; give the folder of another run")
    for number, name in enumerate(header):
        if name not in types:
            raise UsageError(f"'{path}' is not a table of this schema (column {name[:60]!r})")
        if name in header[:number]:
            raise UsageError(f"'{path}' has two columns '{name}'; give the folder of another run")


def _typed(name: str, text: str, dtype: str) -> Any:
    try:
        return _value(text, dtype)
    except (ValueError, KeyError):
        raise ValueError(f"{name} is {text[:60]!r}, expected {_KINDS[dtype]}") from None


_KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number"}
_FANOUTS = re.compile(r"(-?\d{1,10}(/-?\d{1,10})*)?")
_LARGEST = 1 << 64  # of a whole number: counts and seeds are of 64 bits


def _value(text: str, dtype: str) -> Any:
    if dtype == "str":
        return text
    if text == "":
        return None
    if dtype == "bool":
        return {"true": True, "false": False}[text]
    number = int(text) if dtype == "int" else float(text)
    if number != number or (dtype == "int" and abs(number) > _LARGEST):
        raise ValueError(text)
    return number


def _check_cells(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``UsageError`` for a cell that no table can show."""
    for row in rows:
        where = f"cell {str(row['id'])[:60]!r}"
        for name, known in (("until", PHASES), ("status", STATUSES)):
            if row[name] not in known:
                told = f"{name} is {str(row[name])[:60]!r}, expected {', '.join(known)}"
                raise _damaged(path, f"{where}: {told}")
        if not _FANOUTS.fullmatch(row["fanouts"] or ""):
            told = f"fanouts is {str(row['fanouts'])[:60]!r}, expected numbers as in '15/10/5'"
            raise _damaged(path, f"{where}: {told}")
        try:
            flat(json.loads(row["recipe"] or "{}"))
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            raise _damaged(path, f"{where}: its recipe is no JSON object of stages") from None


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
    told = read_record(folder) if (folder / "run.json").exists() else {}
    now = {"cells": CELLS, "metrics": METRICS, "ratios": RATIOS}
    now |= {"stages": STAGES, "kernels": KERNELS, "curves": CURVES, "roofline": ROOFLINE}
    now |= {"convergence": CONVERGENCE}
    found = {name: _table(folder, name, columns) for name, columns in now.items()}
    if any(r["schema_version"] != VERSION for r in found["cells"]):
        raise UsageError(
            f"'{folder}' was written by another version of gnnbench; read it with that one"
        )
    _check_cells(folder / "cells.csv", found["cells"])
    return Run(folder, record=told, samples=_samples(folder), **found)


def _samples(folder: Path) -> list[dict[str, Any]]:
    """Rows of ``samples.csv``, plain or packed; without it those of the run's journals."""
    path = folder / raw.SAMPLE_TABLE
    return read_csv(path, SAMPLES) if raw.exists(path) else raw.samples_of_journals(folder)


def _table(folder: Path, name: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    path = folder / f"{name}.csv"
    return read_csv(path, columns) if raw.exists(path) else []


def read_record(folder: Path) -> dict[str, Any]:
    """``run.json``. Raises ``UsageError`` where it is damaged."""
    path = folder / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _damaged(path, (error.strerror or str(error)).lower()) from None
    except RecursionError:
        raise _damaged(path, "its values are nested too deeply") from None
    except ValueError as error:
        raise UsageError(
            f"'{path}' is damaged ({error}); remove its folder or take another run"
        ) from None
    if not isinstance(found, dict):
        raise UsageError(f"'{path}' is not the record of a run; give the folder of another run")
    record.check(found, path)
    return found
