"""Runs opened for judging, and the rows in them that a label names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from gnnbench.analysis.labels import Labels, fits, labels, parse_label, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.planned import unmeasured
from gnnbench.schema import reader
from gnnbench.schema.raw import SAMPLE_JOURNAL, records
from gnnbench.schema.reader import Run

Row = dict[str, Any]

# What two cells share that are held against one another, unless a label names it.
ALIKE = tuple(
    f.name for f in fields(Cell) if f.name not in ("system", "recipe", "composed", "experiment")
)
MEASURED = ("ok", "unstable")


@dataclass(frozen=True)
class Opened:
    """A run and what is looked up in it."""

    run: Run

    @cached_property
    def metrics(self) -> Metrics:
        """Rows of ``metrics.csv``."""
        return Metrics(self.run.metrics)

    @property
    def table(self) -> Path:
        """The file that its rows are of."""
        return self.run.path / ("machines.csv" if self.run.machines else "cells.csv")

    @cached_property
    def named(self) -> Labels:
        """What its cells are called, those that it did not get to among them."""
        return labels(self.planned)

    @property
    def planned(self) -> list[Row]:
        """Rows of all cells that it was to measure, those of ``cells.csv`` first."""
        return [*self.run.cells, *self._left[0]]

    @property
    def unplanned(self) -> str:
        """Why it cannot be told what a run that was stopped was still to measure, or ""."""
        return self._left[1]

    @cached_property
    def _left(self) -> tuple[list[Row], str]:
        try:
            return unmeasured(self.run), ""
        except UsageError as error:
            return [], str(error)

    @cached_property
    def machine(self) -> str:
        """What tells one machine from another."""
        return str(self.run.record.get("machine_id", ""))

    @property
    def gpus(self) -> int:
        """How many GPUs its machine has."""
        return len(self.run.record.get("machine", {}).get("gpus") or [])

    @cached_property
    def epochs(self) -> dict[str, list[Row]]:
        """Measured epochs of each cell, with all that was counted in them.

        None is of a warm-up, void or wrong; of a number that came twice the first.
        """
        counts = {_key(r): r.get("counts", []) for r in records(self.run.path / SAMPLE_JOURNAL)}
        found: dict[str, list[Row]] = {}
        for sample in self.run.samples:
            if sample["warmup"] or sample["void"] or sample["ok"] is False:
                continue
            known = counts.get(_key(sample), sample.get("counts", []))
            found.setdefault(sample["id"], []).append({**sample, "counts": known})
        return found


def _key(sample: Row) -> tuple[Any, ...]:
    return tuple(sample.get(k) for k in ("id", "pair", "life", "worker", "round", "epoch"))


def open_runs(
    folders: Sequence[Path], pass_over: Callable[[str], None] | None = None
) -> list[Opened]:
    """All runs at or below the folders, the oldest first. Raises ``UsageError`` without any.

    What is wrong with one that cannot be read is told to ``pass_over``; raised, if not given.
    """
    found: dict[Path, Opened] = {}
    for folder in folders:
        if not folder.is_dir():
            what = f"'{folder}' is a file" if folder.exists() else f"there is no folder '{folder}'"
            raise UsageError(f"{what}; give the folder of a run or of runs")
        for table in sorted([*folder.rglob("cells.csv"), *folder.rglob("machines.csv")]):
            read = reader.read if table.name == "cells.csv" else reader.read_machines
            try:
                run = read(table.parent)
            except UsageError as error:
                if pass_over is None:
                    raise
                pass_over(f"passed over '{table.parent}': {error}")
                continue
            found.setdefault(table.parent.resolve(), Opened(run))
    if not found:
        told = ", ".join(f"'{f}'" for f in folders)
        raise UsageError(f"no results in {told}; 'gnnbench reproduce' makes some")
    return sorted(found.values(), key=lambda o: (str(o.run.record.get("started", "")), o.run.path))


def graph_of(dataset: str) -> str:
    """``papers100m`` of ``papers100m~twin@0.2+sym``."""
    for mark in "~@+":
        dataset = dataset.partition(mark)[0]
    return dataset


def scale_of(dataset: str) -> float:
    """0.2 of ``papers100m~twin@0.2+sym``; 1 of what is no twin, or a whole one."""
    if "~twin@" not in dataset:
        return 1.0
    return float(dataset.partition("~twin@")[2].partition("+")[0])


def select(
    opened: Opened, label: str, wanted: Mapping[str, Any], nodes: int = 0, full_batch: int = 0
) -> list[Row]:
    """Rows, measured, failed or planned, that a label names and that are as wanted.

    ``nodes``: the least that the graph has; ``full_batch``: seeds of a batch at scale 1, 0 any.
    A column that a cell has only once it has run is taken as wanted before.
    """
    return [
        row
        for row in opened.planned
        if fits(row, label)
        and (_open(row, "nodes") or (row.get("nodes") or 0) >= nodes)
        and full_batch in (0, round(row["batch_size"] / scale_of(row["dataset"])))
        and all(_is(row, key, value) for key, value in wanted.items())
    ]


def _open(row: Row, key: str) -> bool:
    """Whether a value is not known, for nothing of the cell was measured."""
    return row["status"] not in MEASURED and row.get(key) in (None, "")


def _is(row: Row, key: str, value: Any) -> bool:
    if key not in row:
        raise UsageError(f"a claim asks for a column '{key}', which no table of results has")
    have = graph_of(row[key]) if key == "dataset" else row[key]
    if _open(row, key):
        return True
    return have in value if isinstance(value, list) else bool(have == value)


def couples(
    first: list[Row], second: list[Row], labels: Sequence[str], but: Iterable[str] = ()
) -> list[tuple[Row, Row]]:
    """Rows of two labels that are alike in whatever neither names, nor ``but`` does."""
    named = {*but, *(key for label in labels for key in parse_label(label)[1])}
    return [(a, b) for a in first for b in second if a["id"] != b["id"] and alike(a, b, named)]


def alike(a: Row, b: Row, named: Collection[str]) -> bool:
    """Whether two rows agree in all that sets cells apart, but for what is ``named``."""
    if any(a.get(key) != b.get(key) for key in ALIKE if key not in named):
        return False
    if a["system"] != b["system"]:
        return True
    mine, other = paths_of(a), paths_of(b)
    within = tuple(f"{key}." for key in named)
    common = [p for p in mine.keys() & other.keys() if p not in named and not p.startswith(within)]
    return all(mine[p] == other[p] for p in common)


def steps(rows: list[Row], axis: str, but: Iterable[str] = ()) -> list[tuple[Row, Row]]:
    """Neighbours along an axis (``SYSTEM.PATH`` or a column) among rows alike in all else.

    Columns named in ``but`` may change with it.
    The one with the larger value is first: it over the other is what a step makes of it.
    """
    system, dot, path = axis.partition(".")
    key = path if dot else axis
    having = [r for r in rows if (not dot or r["system"] == system) and _at(r, key) is not None]
    ordered = sorted(having, key=lambda r: float(_at(r, key)))
    found = []
    for place, low in enumerate(ordered):
        later = [r for r in ordered[place + 1 :] if alike(low, r, {key, *but})]
        later = [r for r in later if _at(r, key) != _at(low, key)]
        if later:
            found.append((later[0], low))
    return found


def _at(row: Row, key: str) -> Any:
    return row[key] if key in row else paths_of(row).get(key)


def pools(rows: list[Row], column: str) -> list[list[Row]]:
    """Rows that are alike in all but a column, together."""
    found: list[list[Row]] = []
    for row in rows:
        for pool in found:
            if pool[0]["system"] == row["system"] and alike(pool[0], row, {column}):
                pool.append(row)
                break
        else:
            found.append([row])
    return found
