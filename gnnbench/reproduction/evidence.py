"""Runs opened for judging, and the selection of rows that a claim is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path

from gnnbench.analysis.labels import Labels, fits, labels, parse_label, paths_of
from gnnbench.analysis.metrics import Metrics
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError
from gnnbench.datasets.manifest import manifests
from gnnbench.reproduction.planned import unmeasured_rows
from gnnbench.schema import CellRow, SampleRow, reader
from gnnbench.schema.raw import SAMPLE_JOURNAL, records
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import GpuRecord
from gnnbench.statistics.estimates import Estimate

# Fields that two compared cells must have in common, unless a label names them.
COMMON_FIELDS = tuple(
    f.name for f in fields(Cell) if f.name not in ("system", "recipe", "composed", "experiment")
)
MEASURED = ("ok", "unstable")
Count = tuple[str, str, str, float]  # stage, name, where, value


@dataclass(frozen=True)
class EpochCounts:
    """A measured epoch and its counts."""

    sample: SampleRow
    counts: list[Count]


@dataclass(frozen=True)
class RunEvidence:
    """A run with the look-ups that judging needs."""

    run: Run
    _by_label: dict[str, list[CellRow]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def metrics(self) -> Metrics:
        """Rows of ``metrics.csv``."""
        return Metrics(self.run.metrics)

    @property
    def table(self) -> Path:
        """The file with the run's rows."""
        return self.run.path / ("machines.csv" if self.run.machines else "cells.csv")

    @cached_property
    def labels(self) -> Labels:
        """Labels of the run's cells, measured or planned."""
        return labels(self.planned)

    @cached_property
    def planned(self) -> list[CellRow]:
        """Rows of ``cells.csv``, then those of planned cells that were never reached."""
        return [*self.run.cells, *self._unmeasured[0]]

    @cached_property
    def experiments(self) -> set[str]:
        """Experiments of the planned rows."""
        return {row["experiment"] for row in self.planned}

    def labelled(self, label: str) -> list[CellRow]:
        """The planned rows that match a label."""
        if label not in self._by_label:
            self._by_label[label] = [row for row in self.planned if fits(row, label)]
        return self._by_label[label]

    @property
    def unplanned(self) -> str:
        """Why the remaining cells of an interrupted run are unknown, or ""."""
        return self._unmeasured[1]

    @cached_property
    def _unmeasured(self) -> tuple[list[CellRow], str]:
        try:
            return unmeasured_rows(self.run), ""
        except UsageError as error:
            return [], str(error)

    @cached_property
    def machine(self) -> str:
        """Identifies the machine."""
        return str(self.run.record.get("machine_id", ""))

    @property
    def gpus(self) -> list[GpuRecord]:
        """The machine's GPUs as ``run.json`` describes them."""
        return self.run.record.machine.gpus or []

    @cached_property
    def epochs(self) -> dict[str, list[EpochCounts]]:
        """Measured epochs by cell id, with their counts.

        Warm-up, void and incorrect epochs are left out.
        """
        counts = {_key(r): r.get("counts", []) for r in records(self.run.path / SAMPLE_JOURNAL)}
        by_cell: dict[str, list[EpochCounts]] = {}
        for sample in self.run.samples:
            if sample.warmup or sample.void or sample.ok is False:
                continue
            epoch = EpochCounts(sample, counts.get(_key(sample), []))
            by_cell.setdefault(sample.id, []).append(epoch)
        return by_cell

    def by_trial(
        self, row: CellRow, value: Callable[[EpochCounts], float | None]
    ) -> list[list[float]]:
        """Values of a cell's measured epochs, trial by trial; None is left out."""
        trials: dict[tuple[str, int], list[float]] = {}
        for epoch in self.epochs.get(row["id"], []):
            if (known := value(epoch)) is not None:
                trials.setdefault((epoch.sample.pair, epoch.sample.life), []).append(known)
        return list(trials.values())


MeasureFunction = Callable[[RunEvidence, CellRow], Estimate]


def _key(sample: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(sample.get(k) for k in ("id", "pair", "life", "worker", "round", "epoch"))


def open_runs(
    folders: Sequence[Path], on_unreadable: Callable[[str], None] | None = None
) -> list[RunEvidence]:
    """Open all runs at or below the folders, the oldest first.

    A run that cannot be read is reported to ``on_unreadable``; without it the error is raised.
    Raises ``UsageError`` where there is no run.
    """
    by_path: dict[Path, RunEvidence] = {}
    for folder in folders:
        if not folder.is_dir():
            fault = f"'{folder}' is a file" if folder.exists() else f"there is no folder '{folder}'"
            raise UsageError(
                f"{fault}; give the folder of a run or of runs, or a paper or figure of"
                " 'gnnbench list figures'"
            )
        for table in sorted([*folder.rglob("cells.csv"), *folder.rglob("machines.csv")]):
            read = reader.read if table.name == "cells.csv" else reader.read_machines
            try:
                run = read(table.parent)
            except UsageError as error:
                if on_unreadable is None:
                    raise
                on_unreadable(f"skipped '{table.parent}': {error}")
                continue
            by_path.setdefault(table.parent.resolve(), RunEvidence(run))
    if not by_path:
        names = ", ".join(f"'{f}'" for f in folders)
        raise UsageError(f"no results in {names}; 'gnnbench reproduce' makes some")
    return sorted(
        by_path.values(), key=lambda e: (str(e.run.record.get("started", "")), e.run.path)
    )


def graph_of(dataset: str) -> str:
    """``papers100m`` of ``papers100m~twin@0.2+sym``; of a variant the dataset that it varies."""
    for mark in "~@+":
        dataset = dataset.partition(mark)[0]
    manifest = manifests().get(dataset)
    return dataset if manifest is None else manifest.variant_of or dataset


def scale_of(dataset: str) -> float:
    """0.2 of ``papers100m~twin@0.2+sym``; 1 of a real graph and of a full-size twin."""
    if "~twin@" not in dataset:
        return 1.0
    return float(dataset.partition("~twin@")[2].partition("+")[0])


def select(
    evidence: RunEvidence,
    label: str,
    wanted: Mapping[str, object],
    nodes: int = 0,
    full_batch: int = 0,
) -> list[CellRow]:
    """Rows (measured, failed or planned) that match a label and the values of ``wanted``.

    ``nodes`` is the smallest number of nodes of the graph; ``full_batch`` the batch size at scale
    1, 0 for any. A column that is empty until a cell has run matches any value. Raises
    ``UsageError`` for an unknown column.
    """
    return [
        row
        for row in evidence.labelled(label)
        if (_is_unknown(row, "nodes") or (row.get("nodes") or 0) >= nodes)
        and full_batch in (0, round(row["batch_size"] / scale_of(row["dataset"])))
        and all(_matches(row, key, value) for key, value in wanted.items())
    ]


def _is_unknown(row: CellRow, key: str) -> bool:
    """Whether a column is empty because the cell was not measured."""
    return row["status"] not in MEASURED and row.get(key) in (None, "")


def _matches(row: CellRow, key: str, value: object) -> bool:
    if key not in row:
        raise UsageError(f"a claim asks for a column '{key}', which no table of results has")
    actual = graph_of(row[key]) if key == "dataset" else row[key]
    if _is_unknown(row, key):
        return True
    return actual in value if isinstance(value, list) else bool(actual == value)


def comparable_pairs(
    first: Sequence[CellRow],
    second: Sequence[CellRow],
    labels: Sequence[str],
    free: Iterable[str] = (),
) -> list[tuple[CellRow, CellRow]]:
    """Pairs of rows that agree in everything that neither the labels nor ``free`` name."""
    named = {*free, *(key for label in labels for key in parse_label(label)[1])}
    return [(a, b) for a in first for b in second if a["id"] != b["id"] and alike(a, b, named)]


def alike(a: CellRow, b: CellRow, named: Collection[str]) -> bool:
    """Whether two rows agree in all fields and recipe paths except ``named``."""
    if any(a.get(key) != b.get(key) for key in COMMON_FIELDS if key not in named):
        return False
    if a["system"] != b["system"]:
        return True
    first, second = paths_of(a), paths_of(b)
    below = tuple(f"{key}." for key in named)
    shared = [p for p in first.keys() & second.keys() if p not in named and not p.startswith(below)]
    return all(first[p] == second[p] for p in shared)


def steps(
    rows: Sequence[CellRow], axis: str, free: Iterable[str] = ()
) -> list[tuple[CellRow, CellRow]]:
    """Neighbours along an axis (``SYSTEM.PATH`` or a column), as (later, earlier).

    The rows of a step agree in everything else, except the columns in ``free``.
    """
    system, dot, path = axis.partition(".")
    key = path if dot else axis
    on_axis = [
        (value, row)
        for row in rows
        if (not dot or row.system == system)
        and isinstance(value := row[key] if key in row else paths_of(row).get(key), int | float)
    ]
    ordered = sorted(on_axis, key=lambda place: place[0])
    result = []
    for nth, (value, row) in enumerate(ordered):
        later = (r for v, r in ordered[nth + 1 :] if v != value and alike(row, r, {key, *free}))
        if (following := next(later, None)) is not None:
            result.append((following, row))
    return result


def pools(rows: Sequence[CellRow], column: str) -> list[list[CellRow]]:
    """Rows grouped by everything except a column."""
    result: list[list[CellRow]] = []
    for row in rows:
        for pool in result:
            if pool[0]["system"] == row["system"] and alike(pool[0], row, {column}):
                pool.append(row)
                break
        else:
            result.append([row])
    return result
