"""``metrics.csv``, ``samples.csv`` and ``ratios.csv``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnnbench.schema.cells import CellRow, RatioColumns
from gnnbench.schema.column import Record, column, same_as

# What a couple is: the second's, where a label does not say it of the first.
COUPLE = (
    "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden", "learning_rate",
    "threads", "seed", "max_batches",
)  # fmt: skip


@dataclass(slots=True, kw_only=True, eq=False)
class MetricRow(Record):
    """A number of a cell: a row of ``metrics.csv``."""

    id: str = column("", "cell")
    stage: str = column(
        "",
        "phase or stage; epoch: all of it; open, setup, check: before it; learning: all "
        "epochs; of memory: what holds it",
    )
    name: str = column("", "what it is: see below; a stage from elsewhere may have its own")
    where: str = column("", "where the data were, for bytes and calls: see below")
    value: float = column(
        "",
        "median over the measured epochs; of wall_s and ratios the mean over lives or pairs",
    )
    low: float | None = column("", "lower end of its 95 % interval")
    high: float | None = column("", "upper end of its 95 % interval")
    n: int | None = column("", "epochs, lives or pairs behind it")
    unit: str = column("", "s, B, 1 (a ratio), cores ...; empty for a count")
    description: str = column("", "what it is, in words")


@dataclass(slots=True, kw_only=True, eq=False)
class SampleRow(Record):
    """A measured epoch: a row of ``samples.csv``."""

    id: str = column("", "cell")
    system: str = column("", "system of the cell")
    dataset: str = column("", "dataset of the cell")
    model: str = column("", "model of the cell")
    pair: str = column("", "reference id and system id, joined by '-'")
    life: int = column("", "which pair of fresh processes of this comparison, from 0")
    worker: int = column("", "process id of the worker")
    round: int = column("", "round of the life; warm-up rounds count from 0 as well")
    order: int = column("", "0 if measured first in its round, else 1")
    warmup: bool = column("", "taken before measuring began; in no statistic")
    epoch: int = column("", "epoch number given to the system (decides its random numbers)")
    wall_s: float = column("s", "wall time by the harness's clock")
    outer_s: float = column("s", "the same until the worker is quiet")
    parent_s: float = column("s", "from the command to its end, by the runner's own clock")
    sample_time_s: float | None = column("s", "sample phase, busy time")
    memory_io_time_s: float | None = column("s", "memory_io phase, busy time")
    compute_time_s: float | None = column("s", "compute phase, busy time")
    sample_alone_s: float | None = column("s", "sample phase while no other is active")
    memory_io_alone_s: float | None = column("s", "memory_io phase while no other is active")
    compute_alone_s: float | None = column("s", "compute phase while no other is active")
    overlap_s: float = column("s", "two phases or more at once")
    idle_s: float = column("s", "no phase busy: wall_s less overlap_s and the phases alone")
    batches: int = column("", "batches run")
    seeds: int = column("", "seeds used")
    sampled_edges: int = column("", "edges drawn")
    unique_nodes: int = column("", "input nodes of all batches")
    loss: float | None = column("", "mean training loss; empty without compute")
    param_norm: float | None = column(
        "", "norm of all parameters after the epoch; empty without compute"
    )
    val_accuracy: float | None = column("1", "accuracy on validation nodes after the epoch")
    test_accuracy: float | None = column("1", "accuracy on test nodes after the epoch")
    evaluate_s: float | None = column("s", "time that finding both took: in no other time")
    peak_alloc_bytes: int | None = column("B", "peak of the device's allocator")
    peak_rss_bytes: int | None = column(
        "B", "peak resident memory of the worker so far, evaluation included"
    )
    block_s: float | None = column("s", "length of the round's part for which CPU use was taken")
    idle_cpu_s: float | None = column("s", "CPU time that the other, idle worker used meanwhile")
    rest_cpu_s: float | None = column("s", "CPU time that the worker used between its commands")
    rest_s: float | None = column("s", "time between its commands, since the sample before")
    isolation: str = column("", "cores or priority of a thread changed around it; empty if not")
    cpu_s: float | None = column("s", "CPU time that the worker itself used meanwhile")
    foreign_cpu_s: float | None = column(
        "s", "the same of other programs; ticks may put it below 0"
    )
    sm_clock_mhz: int | None = column("MHz", "the GPU's clock right after the epoch")
    power_w: float | None = column("W", "the GPU's power draw right after the epoch")
    temperature_c: int | None = column("°C", "the GPU's temperature right after the epoch")
    throttle: str = column("", "why the GPU was slowed down around the epoch; empty if not")
    void: bool = column("", "of a life that was not finished or is void; in no statistic")
    ok: bool = column("", "edge counts of all batches were right")


@dataclass(slots=True, kw_only=True, eq=False)
class RatioRow(RatioColumns):
    """A ratio of two cells: a row of ``ratios.csv``."""

    INHERITED_BEFORE: ClassVar[str] = "device_ratio"

    pair: str = column("", "id of first and id of second, joined by '-'")
    first: str = column("", "the cell whose time is divided: system and what sets it apart")
    second: str = column("", "the cell that it is divided by")
    dataset: str = same_as(CellRow, "dataset")
    until: str = same_as(CellRow, "until")
    model: str = same_as(CellRow, "model")
    device: str = same_as(CellRow, "device")
    batch_size: int = same_as(CellRow, "batch_size")
    fanouts: str = same_as(CellRow, "fanouts")
    hidden: int = same_as(CellRow, "hidden")
    learning_rate: float = same_as(CellRow, "learning_rate")
    threads: int = same_as(CellRow, "threads")
    seed: int = same_as(CellRow, "seed")
    max_batches: int = same_as(CellRow, "max_batches")
    work_class: str = column("", "work of the second compared with the first's: see below")
    judged: str = column("", "as in cells.csv")
    device_ratio: float | None = column(
        "1", "the same of device_time_s; empty where that is unknown"
    )
    doubtful: str = column("", "why not to trust the ratio; empty if nothing was found")


METRICS = MetricRow.columns()
SAMPLES = SampleRow.columns()
RATIOS = RatioRow.columns()
