"""``metrics.csv``, ``samples.csv`` and ``ratios.csv``."""

from __future__ import annotations

from gnnbench.core.cell import PHASES
from gnnbench.schema.cells import CELLS, RATIO
from gnnbench.schema.column import Column

METRICS: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column(
        "stage",
        "str",
        "",
        "phase or stage; epoch: all of it; open, setup, check: before it; learning: all epochs; of "
        "memory: what holds it",
    ),
    Column("name", "str", "", "what it is: see below; a stage from elsewhere may have its own"),
    Column("where", "str", "", "where the data were, for bytes and calls: see below"),
    Column(
        "value",
        "float",
        "",
        "median over the measured epochs; of wall_s and ratios the mean over lives or pairs",
    ),
    Column("low", "float", "", "lower end of its 95 % interval"),
    Column("high", "float", "", "upper end of its 95 % interval"),
    Column("n", "int", "", "epochs, lives or pairs behind it"),
    Column("unit", "str", "", "s, B, 1 (a ratio), cores ...; empty for a count"),
    Column("description", "str", "", "what it is, in words"),
)

SAMPLES: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("system", "str", "", "system of the cell"),
    Column("dataset", "str", "", "dataset of the cell"),
    Column("model", "str", "", "model of the cell"),
    Column("pair", "str", "", "reference id and system id, joined by '-'"),
    Column("life", "int", "", "which pair of fresh processes of this comparison, from 0"),
    Column("worker", "int", "", "process id of the worker"),
    Column("round", "int", "", "round of the life; warm-up rounds count from 0 as well"),
    Column("order", "int", "", "0 if measured first in its round, else 1"),
    Column("warmup", "bool", "", "taken before measuring began; in no statistic"),
    Column("epoch", "int", "", "epoch number given to the system (decides its random numbers)"),
    Column("wall_s", "float", "s", "wall time by the harness's clock"),
    Column("outer_s", "float", "s", "the same until the worker is quiet"),
    Column("parent_s", "float", "s", "from the command to its end, by the runner's own clock"),
    *(Column(f"{phase}_time_s", "float", "s", f"{phase} phase, busy time") for phase in PHASES),
    *(Column(f"{p}_alone_s", "float", "s", f"{p} phase, no other beside it") for p in PHASES),
    Column("overlap_s", "float", "s", "two phases or more at once"),
    Column("idle_s", "float", "s", "no phase busy: wall_s less overlap_s and the phases alone"),
    Column("batches", "int", "", "batches run"),
    Column("seeds", "int", "", "seeds used"),
    Column("sampled_edges", "int", "", "edges drawn"),
    Column("unique_nodes", "int", "", "input nodes of all batches"),
    Column("loss", "float", "", "mean training loss; empty without compute"),
    Column(
        "param_norm", "float", "", "norm of all parameters after the epoch; empty without compute"
    ),
    Column("val_accuracy", "float", "1", "accuracy on validation nodes after the epoch"),
    Column("test_accuracy", "float", "1", "accuracy on test nodes after the epoch"),
    Column("evaluate_s", "float", "s", "time that finding both took: in no other time"),
    Column("peak_alloc_bytes", "int", "B", "peak of the device's allocator"),
    Column(
        "peak_rss_bytes",
        "int",
        "B",
        "peak resident memory of the worker so far, evaluation included",
    ),
    Column("block_s", "float", "s", "length of the round's part for which CPU use was taken"),
    Column("idle_cpu_s", "float", "s", "CPU time that the other, idle worker used meanwhile"),
    Column("rest_cpu_s", "float", "s", "CPU time that the worker used between its commands"),
    Column("rest_s", "float", "s", "time between its commands, since the sample before"),
    Column("isolation", "str", "", "cores or priority of a thread changed around it; empty if not"),
    Column("cpu_s", "float", "s", "CPU time that the worker itself used meanwhile"),
    Column("foreign_cpu_s", "float", "s", "the same of other programs; ticks may put it below 0"),
    Column("sm_clock_mhz", "int", "MHz", "the GPU's clock right after the epoch"),
    Column("power_w", "float", "W", "the GPU's power draw right after the epoch"),
    Column("temperature_c", "int", "°C", "the GPU's temperature right after the epoch"),
    Column("throttle", "str", "", "why the GPU was slowed down around the epoch; empty if not"),
    Column("void", "bool", "", "of a life that was not finished or is void; in no statistic"),
    Column("ok", "bool", "", "edge counts of all batches were right"),
)

# What a couple is: the second's, where a label does not say it of the first.
COUPLE = (
    "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden", "learning_rate",
    "threads", "seed", "max_batches",
)  # fmt: skip
RATIOS: tuple[Column, ...] = (
    Column("pair", "str", "", "id of first and id of second, joined by '-'"),
    Column("first", "str", "", "the cell whose time is divided: system and what sets it apart"),
    Column("second", "str", "", "the cell that it is divided by"),
    *(c for c in CELLS if c.name in COUPLE),
    Column("work_class", "str", "", "work of the second compared with the first's: see below"),
    Column("judged", "str", "", "as in cells.csv"),
    *RATIO,
    Column("device_ratio", "float", "1", "the same of device_time_s; empty where that is unknown"),
    Column("doubtful", "str", "", "why not to trust the ratio; empty if nothing was found"),
)
