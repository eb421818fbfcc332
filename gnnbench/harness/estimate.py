"""A rough estimate of a run's time and memory, before anything is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell, Until, flat
from gnnbench.core.errors import DataError, GnnbenchError
from gnnbench.core.fanouts import at_most
from gnnbench.datasets.expected_batch import BatchSize, expected_batch
from gnnbench.harness.environment import facts
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.measure import machine
from gnnbench.statistics import noise
from gnnbench.statistics.stopping_rule import even_rounds, fitting_rounds

if TYPE_CHECKING:
    from gnnbench.datasets.cost import Cost


@dataclass(frozen=True)
class Rates:
    """Work per second: sampled edges, bytes of gathered rows, aggregated edges (forward and
    backward) and operations of dense layers.
    """

    sampled: float
    gathered_bytes: float
    aggregated: float
    flops: float


# Two cores of an EPYC or Xeon; an H100 or H200 with 16 cores. Of the committed cells, 849 and 511,
# the estimate is at the median 1.1, 0.5 and 2.3 times an epoch that samples, also loads, also
# trains on a CPU, and 1.0, 1.0 and 1.1 times on a GPU.
RATES = {"cpu": Rates(22e6, 3e9, 12e6, 50e9), "cuda": Rates(2.8e9, 37e9, 4e9, 13e12)}
SAMPLED_BY_A_CORE = 20e6  # edges per second, where the cores sample for a GPU
# Seconds of a cell's trials besides its epochs, by type of device.
START_S = {"cpu": 0.5, "cuda": 1.7}  # fork, open, set-up, end
# Of processes that are not forked, because their memory is measured: imports.
FRESH_S = {"cpu": 2.2, "cuda": 4.0}
# Once a run: the command's start, templates, machine checks and figures.
RUN_S = {"cpu": 8.0, "cuda": 12.0}
GATE_S = {"cpu": 1.0, "cuda": 3.0}  # of the first trial: gate, probe, recheck
PROFILE_S = {"cpu": 0.5, "cuda": 4.0}  # a process that looks at the stages of one sampler
EPOCH_S = {"cpu": 0.15, "cuda": 0.1}  # around each epoch, until devices and threads are quiet
# Of an evaluation (gnnbench.systems.runtime.evaluate, which imports torch).
EVALUATE_S = {"cpu": 0.4, "cuda": 0.1}  # besides its batches
SPLITS, EVALUATED_NODES, EVALUATED_BATCH = 2, 1 << 14, 2048
GATE_EPOCHS = 4  # that the checks of a first trial last
ROOFLINE_S = 4.0  # kernels and ceilings after an epoch, where they are requested
PROCESS_BYTES = 600 * 2**20  # torch and its friends


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of one pair; None while the dataset's size is unknown."""

    seconds: float | None
    bytes: int | None


UNKNOWN = Estimate(None, None)


def estimate(pair: CellPair, measure: MeasureLimits) -> Estimate:
    """Time of the pair and peak memory of its workers, the graph counted once."""
    cells = [c for c in (pair.reference, pair.system) if c is not None]
    size = _size(pair.system)
    if size is None:
        return Estimate(None, None)
    nodes, edges = size.nodes, size.edges
    device, n = pair.system.device, len(cells)
    epoch_s = sum(_epoch_seconds(c, size) for c in cells)
    a_start = START_S[device] + (FRESH_S[device] if measure.memory else 0.0)
    start_s = a_start * n + measure.warmup_epochs * epoch_s
    look, budget_s = measure.pairs[0], measure.time_budget_s
    evaluation_s = sum(_evaluation_seconds(c, size) for c in cells)
    around_s = n * (EPOCH_S[device] + ROOFLINE_S * measure.roofline)
    round_s = epoch_s + evaluation_s + around_s
    trial_s = (
        start_s + (measure.rounds or usual_rounds(device, measure, start_s, round_s)) * round_s
    )
    first_s = trial_s + GATE_S[device] * n + GATE_EPOCHS * epoch_s
    # Most comparisons end at their first look; a budget ends them between pairs.
    seconds = max(first_s, min(first_s + (look - 1) * trial_s, budget_s))
    if pair.system.until == Until.SAMPLE.word:
        seconds += measure.looks * (PROFILE_S[device] + _epoch_seconds(pair.system, size))
    row = 4 * size.width
    batch_rows = int(size.batch(pair.system.fanouts, pair.system.batch_size).nodes)
    graph = 8 * nodes + 4 * edges + nodes * (row + 8)
    return Estimate(seconds, graph + len(cells) * (PROCESS_BYTES + 3 * row * batch_rows))


def usual_rounds(device: str, measure: MeasureLimits, start_s: float, round_s: float) -> int:
    """Return the rounds of a trial on a machine without a calibration.

    ``start_s`` and ``round_s``: duration of a trial up to its first round, and of a round (s).
    """
    usual = noise.USUAL[device]
    best = even_rounds(start_s, round_s, usual.s_life, usual.s_round)
    return min(best, fitting_rounds(measure.pairs[0], measure.time_budget_s, start_s, round_s))


class DatasetSize(NamedTuple):
    """Upper limits of a dataset's counts."""

    nodes: int
    edges: int
    width: int  # of a row of features
    train: int  # nodes
    path: Path | None = None  # of the prepared graph

    def batch(self, fanouts: Sequence[int], seeds: int) -> BatchSize:
        """Return the size of a sampled batch.

        Without a prepared graph it is a tree of distinct nodes of mean degree, limited by the
        graph: an upper bound. Likewise with a damaged one, which the run reports as a row.
        """
        if self.path is not None:
            with suppress(DataError):
                return expected_batch(self.path, tuple(fanouts), seeds)
        edges, nodes = 0.0, float(seeds)
        for fanout in fanouts:
            drawn = nodes * at_most(fanout, self.edges / self.nodes)
            edges, nodes = edges + drawn, min(nodes + drawn, self.nodes)
        return BatchSize(edges, nodes)


def dataset_size(dataset: str) -> DatasetSize | None:
    """Return the size of a dataset, prepared or not; None where it is unknown."""
    from gnnbench.datasets import catalog, prepare

    try:
        s = catalog.info(dataset).summary
        if s.state != "prepared" and (shape := prepare.expected(dataset)) is not None:
            return DatasetSize(shape.nodes, shape.edges, shape.width, shape.train)
    except GnnbenchError:
        return None
    path = s.path if s.state == "prepared" and s.num_edges else None
    return DatasetSize(s.num_nodes, s.num_edges, s.feature_dim, s.train_size, path)


def _size(cell: Cell) -> DatasetSize | None:
    """Return the size of a cell's dataset; None where counts are missing. A gather needs no
    edges.
    """
    size = dataset_size(cell.dataset)
    if size is None or not (size.nodes and size.width and size.train):
        return None
    return size if size.edges or cell.gathers else None


def _epoch_seconds(cell: Cell, size: DatasetSize) -> float:
    """Return an upper bound of the time of an epoch."""
    batches = math.ceil(size.train / cell.batch_size)
    batches = min(batches, cell.max_batches) if cell.max_batches else batches
    return batches * _batch_seconds(cell, size, min(cell.batch_size, size.train))


def _evaluation_seconds(cell: Cell, size: DatasetSize) -> float:
    """Return an upper bound of the time of an evaluation over sampled neighbours."""
    if not cell.evaluate:
        return 0.0
    evaluated = min(SPLITS * EVALUATED_NODES, size.nodes - size.train)
    batches = math.ceil(evaluated / EVALUATED_BATCH)
    work_s = batches * _batch_seconds(cell, size, min(EVALUATED_BATCH, evaluated))
    return EVALUATE_S[cell.device] + work_s


def _batch_seconds(cell: Cell, size: DatasetSize, seeds: int) -> float:
    drawn, nodes = size.batch(cell.fanouts, seeds)
    rows, rates = nodes * size.width, RATES[cell.device]
    sampled = rates.sampled
    if cell.device == "cuda" and flat(cell.recipe).get("sampler.topology") == "cpu":
        sampled = SAMPLED_BY_A_CORE * machine.resolve_threads(cell.threads)
    seconds = drawn / sampled if cell.fanouts else 0.0
    if cell.until != Until.SAMPLE.word:
        seconds += rows * 4 / rates.gathered_bytes
    if cell.until == Until.COMPUTE.word:  # forward, and the weights' gradient
        seconds += drawn / rates.aggregated + rows * cell.hidden * 4 / rates.flops
    return seconds


def epoch_is_cut(cell: Cell) -> bool:
    """Whether ``max_batches`` ends an epoch early; True where the dataset's size is not known."""
    size = _size(cell) if cell.max_batches else None
    whole = math.inf if size is None else math.ceil(size.train / cell.batch_size)
    return 0 < cell.max_batches < whole


def preparations(plan: Plan) -> dict[str, Cost]:
    """Return the datasets to prepare before measuring, with the costs of each.

    A file that cannot be read is reported as a row when it is prepared.
    """
    from gnnbench.datasets.prepare import preparation

    needed = [p.system.dataset for p in plan.pairs if facts(p.system.system).needs_graph]
    costs = {}
    for dataset in dict.fromkeys(needed):
        with suppress(DataError):
            if (cost := preparation(dataset)) is not None:
                costs[dataset] = cost
    return costs


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a dry run: its state (``planned``, or why it cannot run) and its estimates."""

    cell: Cell
    names: list[str]
    stand_in_for: str
    status: str
    reason: str
    expected: Estimate = UNKNOWN

    def plain(self) -> dict[str, object]:
        """Convert to JSON values, with the fields of the cell."""
        return {
            **asdict(self.cell), "id": self.cell.id, "names": self.names,
            "stand_in_for": self.stand_in_for, "epoch_is_cut": epoch_is_cut(self.cell),
            "status": self.status, "reason": self.reason,
            "estimated_time_s": self.expected.seconds, "estimated_bytes": self.expected.bytes,
        }  # fmt: skip


@dataclass(frozen=True)
class DryRun:
    """A plan's cells, and estimates in total; ``preparations`` are costs by dataset.

    ``time_s`` and ``peak_bytes`` are None if no pair can run. ``unknown`` is the number of pairs
    whose dataset has an unknown size.
    """

    cells: list[PlannedCell]
    pairs: int
    unknown: int
    time_s: float | None
    peak_bytes: int | None
    notes: list[str]
    preparations: dict[str, Cost]

    def plain(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "cells": [cell.plain() for cell in self.cells], "pairs": self.pairs,
            "pairs_of_unknown_size": self.unknown, "estimated_time_s": self.time_s,
            "estimated_peak_bytes": self.peak_bytes, "notes": self.notes,
            "preparations": [
                {
                    "dataset": dataset, "estimated_time_s": cost.seconds,
                    "estimated_bytes": cost.memory_bytes, "estimated_disk_bytes": cost.disk_bytes,
                }
                for dataset, cost in self.preparations.items()
            ],
        }  # fmt: skip


def describe(plan: Plan, measure: MeasureLimits) -> DryRun:
    """Return the dry run of a plan: each cell, its state, estimates per pair and in total."""
    pairs = {p.system.id: p for p in plan.pairs if not p.direct}
    cells = []
    for cell in plan.cells:
        failure = plan.failures.get(cell.id)
        cells.append(
            PlannedCell(
                cell,
                plan.names.get(cell.id, [cell.system]),
                plan.stand_ins.get(cell.id, ""),
                failure.status if failure else "planned",
                failure.reason if failure else "",
                estimate(pairs[cell.id], measure) if cell.id in pairs else UNKNOWN,
            )
        )
    total = sum(cell.expected.seconds or 0.0 for cell in cells)
    total += sum(estimate(p, measure).seconds or 0.0 for p in plan.pairs if p.direct)
    total += RUN_S[plan.pairs[0].system.device] if plan.pairs else 0.0
    costs = preparations(plan)
    total += sum(cost.seconds for cost in costs.values())
    peak = max((cell.expected.bytes or 0 for cell in cells), default=0)
    notes = list(plan.notes)
    if peak > machine.memory_limit_bytes():
        notes.append("the largest pair may not fit into this machine's memory")
    return DryRun(
        cells=cells,
        pairs=len(plan.pairs),
        unknown=sum(c.cell.id in pairs and c.expected.seconds is None for c in cells),
        time_s=total if plan.pairs else None,
        peak_bytes=peak if plan.pairs else None,
        notes=notes,
        preparations=costs,
    )
