"""``metrics.csv``, ``samples.csv`` and ``ratios.csv``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnnbench.schema.cells import CellRow, RatioColumns
from gnnbench.schema.column import Record, column, same_as

# Settings of the compared cells; where both differ, the label of the first says so.
COUPLE = (
    "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden", "learning_rate",
    "precision", "threads", "seed", "max_batches",
)  # fmt: skip


@dataclass(slots=True, kw_only=True, eq=False)
class MetricRow(Record):
    """A number of a cell: a row of ``metrics.csv``."""

    id: str = column("", "cell")
    stage: str = column(
        "",
        "phase or stage; epoch: the whole epoch; open, setup, check: before it; learning: over all "
        "epochs; for memory: its owner",
    )
    name: str = column("", "name of the metric, see below; stages of other packages may add names")
    where: str = column("", "location of the data, for bytes and calls: see below")
    value: float = column(
        "",
        "median over the measured epochs; for wall_s and ratios the mean over processes or pairs",
    )
    low: float | None = column("", "lower end of its 95 % interval")
    high: float | None = column("", "upper end of its 95 % interval")
    n: int | None = column("", "number of epochs, processes or pairs")
    unit: str = column("", "s, B, 1 (a ratio), cores ...; empty for a count")
    description: str = column("", "description of the metric")


@dataclass(slots=True, kw_only=True, eq=False)
class SampleRow(Record):
    """A measured epoch: a row of ``samples.csv``."""

    id: str = column("", "cell")
    system: str = column("", "system of the cell")
    dataset: str = column("", "dataset of the cell")
    model: str = column("", "model of the cell")
    pair: str = column("", "reference id and system id, joined by '-'")
    life: int = column("", "number of the pair of fresh processes in this comparison, from 0")
    worker: int = column("", "process id of the worker")
    round: int = column("", "number of the round in this pair; warm-up rounds also count from 0")
    order: int = column("", "0 if measured first in its round, else 1")
    warmup: bool = column("", "warm-up: measured before the first round, in no statistic")
    epoch: int = column(
        "", "epoch number passed to the system (part of the key of its random numbers)"
    )
    wall_s: float = column("s", "wall time, clock of the worker's harness")
    outer_s: float = column("s", "the same, until all threads and streams of the worker are idle")
    parent_s: float = column("s", "from the command to its reply, clock of the runner")
    sample_time_s: float | None = column("s", "sample phase, busy time")
    memory_io_time_s: float | None = column("s", "memory_io phase, busy time")
    compute_time_s: float | None = column("s", "compute phase, busy time")
    sample_alone_s: float | None = column("s", "sample phase while no other is active")
    memory_io_alone_s: float | None = column("s", "memory_io phase while no other is active")
    compute_alone_s: float | None = column("s", "compute phase while no other is active")
    overlap_s: float = column("s", "time with two or more busy phases")
    idle_s: float = column("s", "time without a busy phase: wall_s - overlap_s - phases alone")
    batches: int = column("", "batches run")
    seeds: int = column("", "seeds used")
    sampled_edges: int = column("", "edges sampled")
    unique_nodes: int = column("", "input nodes of all batches")
    loss: float | None = column("", "mean training loss; empty without compute")
    param_norm: float | None = column(
        "", "norm of all parameters after the epoch; empty without compute"
    )
    val_accuracy: float | None = column("1", "accuracy on validation nodes after the epoch")
    test_accuracy: float | None = column("1", "accuracy on test nodes after the epoch")
    evaluate_s: float | None = column("s", "duration of the evaluation, in no other time")
    peak_alloc_bytes: int | None = column("B", "peak of the device's allocator")
    peak_rss_bytes: int | None = column(
        "B", "peak resident memory of the worker so far, evaluation included"
    )
    block_s: float | None = column("s", "interval for which the CPU time of this round was read")
    idle_cpu_s: float | None = column("s", "CPU time of the other, idle worker in that interval")
    rest_cpu_s: float | None = column("s", "CPU time of the worker between its commands")
    rest_s: float | None = column("s", "time between its commands, since the previous sample")
    isolation: str = column(
        "",
        "changes of the affinity, priority, debugger or control group of a thread around the"
        " epoch; empty: none",
    )
    cpu_s: float | None = column("s", "CPU time of the worker in that interval")
    foreign_cpu_s: float | None = column(
        "s", "CPU time of other programs in that interval; clock ticks can make it negative"
    )
    sm_clock_mhz: int | None = column("MHz", "SM clock right after the epoch")
    power_w: float | None = column("W", "the GPU's power draw right after the epoch")
    temperature_c: int | None = column("°C", "the GPU's temperature right after the epoch")
    throttle: str = column("", "why the GPU was throttled around the epoch; empty if it was not")
    void: bool = column("", "true for a pair that was not finished or is void: in no statistic")
    ok: bool = column("", "edge counts of all batches were correct")


@dataclass(slots=True, kw_only=True, eq=False)
class RatioRow(RatioColumns):
    """A ratio of two cells: a row of ``ratios.csv``."""

    INHERITED_BEFORE: ClassVar[str] = "device_ratio"

    pair: str = column("", "id of first and id of second, joined by '-'")
    first: str = column("", "cell whose time is the numerator: system and distinguishing settings")
    second: str = column("", "cell whose time is the denominator")
    dataset: str = same_as(CellRow, "dataset")
    until: str = same_as(CellRow, "until")
    model: str = same_as(CellRow, "model")
    device: str = same_as(CellRow, "device")
    batch_size: int = same_as(CellRow, "batch_size")
    fanouts: str = same_as(CellRow, "fanouts")
    hidden: int = same_as(CellRow, "hidden")
    learning_rate: float = same_as(CellRow, "learning_rate")
    precision: str = same_as(CellRow, "precision")
    threads: int = same_as(CellRow, "threads")
    seed: int = same_as(CellRow, "seed")
    max_batches: int = same_as(CellRow, "max_batches")
    work_class: str = column("", "work of the second compared with the first, see cells.csv")
    judged: str = column("", "as in cells.csv")
    device_ratio: float | None = column("1", "ratio of device_time_s; empty where that is unknown")
    doubtful: str = column("", "why the ratio is unreliable; empty if it is reliable")


METRICS = MetricRow.columns()
SAMPLES = SampleRow.columns()
RATIOS = RatioRow.columns()
