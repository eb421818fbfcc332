"""Find and read what a run left on disk."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gnnbench.core import names
from gnnbench.core.cell import PHASES, flat
from gnnbench.core.errors import UsageError
from gnnbench.schema import (
    STATUSES,
    VERSION,
    CellRow,
    ConvergenceRow,
    CurveRow,
    KernelRow,
    MachineRow,
    MetricRow,
    RatioRow,
    Record,
    RooflineRow,
    SampleRow,
    StageRow,
    raw,
    run_record,
)
from gnnbench.schema.run_json import RunJson
from gnnbench.schema.run_record import RunRecord

RecordT = TypeVar("RecordT", bound=Record)
Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Run:
    """The tables of a run and its ``run.json``."""

    path: Path
    cells: list[CellRow]
    samples: list[SampleRow]
    record: RunRecord
    ratios: list[RatioRow] = field(default_factory=list)
    stages: list[StageRow] = field(default_factory=list)
    kernels: list[KernelRow] = field(default_factory=list)
    metrics: list[MetricRow] = field(default_factory=list)
    curves: list[CurveRow] = field(default_factory=list)
    roofline: list[RooflineRow] = field(default_factory=list)
    convergence: list[ConvergenceRow] = field(default_factory=list)
    machines: list[MachineRow] = field(default_factory=list)
    failed_lives: list[MachineRow] = field(default_factory=list)  # failed process runs


def run_folders(out: Path, experiment: str | None = None) -> list[Path]:
    """Run folders below ``out``, the oldest first. Raises ``UsageError`` for no legal path."""
    pattern = f"{experiment or '*'}/run-*"
    out = names.typed_path(str(out))
    return sorted((p for p in out.glob(pattern) if p.is_dir()), key=lambda p: (p.name, str(p)))


def read_csv(path: Path, record: type[RecordT]) -> list[RecordT]:
    """Read a table, plain or packed.

    Columns that an older table lacks are empty. Raises ``UsageError``, which names the line, for
    a file that is not of this table.
    """
    types = {c.name: c.dtype for c in record.columns()}
    line = 1
    try:
        with raw.opened(path) as content:
            file = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            _check_header(path, header, types)
            rows, others = [], [(n, types[n]) for n in header if types[n] != "str"]
            for fields in reader:
                line = reader.line_num
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise ValueError(f"{len(fields)} fields, the first line has {len(header)}")
                texts = dict(zip(header, fields, strict=True))
                typed = {name: _typed(name, texts[name], dtype) for name, dtype in others}
                rows.append(record(**(texts | typed)))
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


def _typed(name: str, text: str, dtype: str) -> Scalar:
    try:
        return _value(text, dtype)
    except (ValueError, KeyError):
        raise ValueError(f"{name} is {text[:60]!r}, expected {_KINDS[dtype]}") from None


_KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number"}
_FANOUTS = re.compile(r"(-?\d{1,10}(/-?\d{1,10})*)?")
_LARGEST = 1 << 64  # of a whole number: counts and seeds are of 64 bits


def _value(text: str, dtype: str) -> Scalar:
    if text == "":
        return None
    if dtype == "bool":
        return {"true": True, "false": False}[text]
    number = int(text) if dtype == "int" else float(text)
    if number != number or (dtype == "int" and abs(number) > _LARGEST):
        raise ValueError(text)
    return number


def _check_cells(path: Path, rows: Iterable[CellRow]) -> None:
    """Raise ``UsageError`` for a cell that no table can show."""
    for row in rows:
        where = f"cell {row.id[:60]!r}"
        for name, value, known in (("until", row.until, PHASES), ("status", row.status, STATUSES)):
            if value not in known:
                expected = ", ".join(known)
                raise _damaged(path, f"{where}: {name} is {value[:60]!r}, expected {expected}")
        if not _FANOUTS.fullmatch(row.fanouts):
            message = f"fanouts is {row.fanouts[:60]!r}, expected numbers as in '15/10/5'"
            raise _damaged(path, f"{where}: {message}")
        try:
            flat(json.loads(row.recipe or "{}"))
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            raise _damaged(path, f"{where}: its recipe is no JSON object of stages") from None


def read_machines(folder: Path) -> Run:
    """Read the folder of a run of several machines, which has no cells. Raises as ``read``."""
    if not (folder / "machines.csv").exists():
        raise UsageError(f"'{folder}' holds no machines.csv; give the folder of such a run")
    rows = _table(folder / "machines.csv", MachineRow)
    for row in rows:
        row.status = row.status or "ok"  # older tables have rows of successful epochs alone
    succeeded = [row for row in rows if row.status == "ok"]
    failed = [row for row in rows if row.status != "ok"]
    return Run(folder, [], [], read_record(folder), machines=succeeded, failed_lives=failed)


def read(folder: Path) -> Run:
    """Read a run folder. Raises ``UsageError`` where it has no ``cells.csv`` or is damaged."""
    path = folder / "cells.csv"
    if not path.exists():
        raise UsageError(f"'{folder}' holds no cells.csv; give the folder of a run")
    record = read_record(folder) if (folder / "run.json").exists() else RunRecord()
    cells = _table(path, CellRow)
    metrics = _table(folder / "metrics.csv", MetricRow)
    ratios = _table(folder / "ratios.csv", RatioRow)
    stages = _table(folder / "stages.csv", StageRow)
    kernels = _table(folder / "kernels.csv", KernelRow)
    curves = _table(folder / "curves.csv", CurveRow)
    roofline = _table(folder / "roofline.csv", RooflineRow)
    convergence = _table(folder / "convergence.csv", ConvergenceRow)
    if any(row.schema_version != VERSION for row in cells):
        raise UsageError(
            f"'{folder}' was written by another version of gnnbench; read it with that one"
        )
    _check_cells(path, cells)
    return Run(
        folder, cells, _samples(folder), record, ratios, stages, kernels, metrics, curves,
        roofline, convergence,
    )  # fmt: skip


def _samples(folder: Path) -> list[SampleRow]:
    """Rows of ``samples.csv``, plain or packed; without it those of the run's journals."""
    path = folder / raw.SAMPLE_TABLE
    return read_csv(path, SampleRow) if raw.exists(path) else raw.samples_of_journals(folder)


def _table(path: Path, record: type[RecordT]) -> list[RecordT]:
    return read_csv(path, record) if raw.exists(path) else []


def read_record(folder: Path) -> RunRecord:
    """``run.json`` of a folder. Raises ``UsageError`` where it is damaged."""
    path = folder / "run.json"
    return run_record.parse(_json_object(path), path)


def read_json_record(folder: Path) -> RunJson:
    """``run.json`` of a folder as it is on disk, to be written again. Raises as ``read_record``."""
    path = folder / "run.json"
    content = _json_object(path)
    run_record.parse(content, path)
    return content


def _json_object(path: Path) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _damaged(path, (error.strerror or str(error)).lower()) from None
    except RecursionError:
        raise _damaged(path, "its values are nested too deeply") from None
    except ValueError as error:
        raise UsageError(
            f"'{path}' is damaged ({error}); remove its folder or take another run"
        ) from None
    if not isinstance(content, dict):
        raise UsageError(f"'{path}' is not the record of a run; give the folder of another run")
    return content
