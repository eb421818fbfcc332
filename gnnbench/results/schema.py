"""Every column of every table of a run: the single source of names and meanings.

``results/SCHEMA.md`` is printed from here (``python -m gnnbench.results.schema``).
"""

from __future__ import annotations

from dataclasses import dataclass

STATUSES = {
    "ok": "measured",
    "oom_gpu": "the GPU's memory was exhausted",
    "oom_host": "the host's memory was exhausted",
    "timeout": "a command took longer than cell_timeout_s",
    "crash": "the worker died by a signal or raised an error",
    "unsupported": "the system cannot do what the cell asks",
    "missing_dep": "a backend or a dataset is not there",
    "incorrect": "the correctness gate failed; takes part in no ratio",
    "unstable": "measured, but the interval is wider than unstable_half_width or the GPU was "
    "throttled twice",
}
WORK_CLASSES = {
    "identical": "the same sampled edges as the reference (equal digests)",
    "equivalent": "same frontier and inclusion law, edges and nodes per seed within 1 %",
    "different": "other work; no plain ratio is given, only per edge and per batch",
}
PHASES = ("sample", "memory_io", "compute")
FEATURE_PATHS = ("host_copy", "zero_copy", "cache", "reused", "peer")


@dataclass(frozen=True)
class Column:
    """``dtype`` is str, int, float or bool; an empty field of the CSV means unknown."""

    name: str
    dtype: str
    unit: str
    description: str


def _speedup(name: str, what: str) -> tuple[Column, ...]:
    return (
        Column(
            name, "float", "1",
            f"median over paired rounds of reference {what} / this system's; above 1 is faster; "
            "empty for different work",
        ),
        Column(f"{name}_ci_low", "float", "1", f"lower end of the 95 % interval of {name}"),
        Column(f"{name}_ci_high", "float", "1", f"upper end of the 95 % interval of {name}"),
    )  # fmt: skip


CELLS: tuple[Column, ...] = (
    Column("id", "str", "", "content hash of the cell"),
    Column("experiment", "str", "", "name of the definition"),
    Column("system", "str", "", "registered name of the system"),
    Column("reference", "str", "", "system it was interleaved with; its own name if it is the one"),
    Column("dataset", "str", "", "dataset, with ~twin and @scale where they apply"),
    Column("model", "str", "", "model; none: sampling alone"),
    Column("device", "str", "", "cpu or cuda"),
    Column("pick", "str", "", "pick in use, as the gate reported it"),
    Column("frontier", "str", "", "frontier in use, as the gate reported it"),
    Column("law", "str", "", "inclusion law of the pick, as the gate reported it"),
    Column("batch_size", "int", "seeds", "seeds per batch"),
    Column("fanouts", "str", "", "fanouts from the seeds outwards, joined by '/'"),
    Column("hidden", "int", "", "hidden width of the model"),
    Column("learning_rate", "float", "", "learning rate"),
    Column("threads", "int", "", "threads given to each worker"),
    Column("seed", "int", "", "seed of sampling, order and weights"),
    Column("options", "str", "", "the system's own settings as JSON"),
    Column("nodes", "int", "", "nodes of the graph"),
    Column("edges", "int", "", "directed edges of the graph"),
    Column("train_nodes", "int", "", "size of the training set"),
    Column("feature_dim", "int", "", "width of a feature row"),
    Column("features", "str", "", "where the features come from, as the store says"),
    Column("batches", "int", "", "batches of a measured epoch"),
    Column("epoch_batches", "int", "", "batches that a whole epoch has"),
    Column("seeds", "int", "", "seeds of a measured epoch"),
    Column("sampled_edges", "int", "", "edges drawn in a measured epoch, median"),
    Column("unique_nodes", "int", "", "input nodes of all batches of an epoch, median"),
    *(
        Column(f"feature_bytes_{path}", "int", "B", f"feature bytes of an epoch by {path}, median")
        for path in FEATURE_PATHS
    ),
    Column("h2d_bytes", "int", "B", "bytes copied from host to device in an epoch, median"),
    Column("peak_alloc_bytes", "int", "B", "peak of the device's allocator, maximum"),
    Column("peak_rss_bytes", "int", "B", "peak resident memory of the worker, maximum"),
    *(
        Column(f"{phase}_time_s", "float", "s", f"{phase} phase of an epoch, median")
        for phase in PHASES
    ),
    Column(
        "device_time_s",
        "float",
        "s",
        "model none on a GPU: time between events around an epoch's samples, median",
    ),
    Column("residual_s", "float", "s", "wall time of an epoch less its phases, median"),
    Column("epoch_wall_s", "float", "s", "measured wall time of an epoch, median"),
    Column("ci_low_s", "float", "s", "lower end of the bootstrap 95 % interval of epoch_wall_s"),
    Column("ci_high_s", "float", "s", "upper end of the bootstrap 95 % interval of epoch_wall_s"),
    Column("outer_s", "float", "s", "the same by the harness's own clock, median"),
    Column("first_epoch_s", "float", "s", "longest warm-up epoch: in no other statistic"),
    Column("n", "int", "epochs", "measured epochs (those of all pairs for a reference)"),
    Column("setup_time_s", "float", "s", "building sampler, feature store and model"),
    Column("check_time_s", "float", "s", "correctness gate"),
    Column("digest", "str", "", "SHA-256 of the gate's sampled edges; empty for a foreign sampler"),
    Column("work_class", "str", "", "work compared with the reference's: see below"),
    *_speedup("speedup", "epoch wall time"),
    *(c for p in PHASES for c in _speedup(f"{p}_speedup", f"{p} time")),
    Column("speedup_per_edge", "float", "1", "the same ratio per sampled edge, any work class"),
    Column("speedup_per_batch", "float", "1", "the same ratio per batch, any work class"),
    Column("sample_speedup_per_edge", "float", "1", "sampling ratio per sampled edge"),
    Column("sample_speedup_per_batch", "float", "1", "sampling ratio per batch"),
    Column("rounds", "int", "", "paired rounds behind the ratios"),
    Column(
        "noise_floor",
        "float",
        "1",
        "largest difference that equal systems show here, as calibrated; empty if never calibrated",
    ),
    Column(
        "verdict",
        "str",
        "",
        "faster, slower or tie (the interval holds 1 or reaches into noise_floor), by speedup, or "
        "by sample_speedup where the model is none; empty without a ratio",
    ),
    Column(
        "loss", "float", "", "mean training loss of the last measured epoch; empty without a model"
    ),
    Column("stopped", "str", "", "why measuring ended: precise, budget or max_rounds"),
    Column("throttled", "int", "epochs", "measured epochs around which the GPU was throttled"),
    Column("idle_cpu_share", "float", "cores", "CPU use while the other worker was measured"),
    Column("foreign_cpu_share", "float", "cores", "CPU use of other programs while measured"),
    Column("doubtful", "str", "", "why the row should not be trusted as it is; empty if nothing"),
    Column("remark", "str", "", "worth knowing, no reason for doubt"),
    Column("stand_in_for", "str", "", "missing system that this row stands in for"),
    Column("status", "str", "", "see below"),
    Column("reason", "str", "", "one sentence for a status other than ok, with the fix"),
)

SAMPLES: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("system", "str", "", "system of the cell"),
    Column("dataset", "str", "", "dataset of the cell"),
    Column("model", "str", "", "model of the cell"),
    Column("pair", "str", "", "reference id and system id, joined by '-'"),
    Column("attempt", "int", "", "how often the pair was started (resumed runs)"),
    Column("worker", "int", "", "process id of the worker: one life of a system"),
    Column("round", "int", "", "round of the pair; warm-up rounds count from 0 as well"),
    Column("order", "int", "", "0 if measured first in its round, else 1"),
    Column("warmup", "bool", "", "taken before measuring began; in no statistic"),
    Column("epoch", "int", "", "epoch number given to the system (decides its random numbers)"),
    Column("wall_s", "float", "s", "measured wall time"),
    Column("outer_s", "float", "s", "the same epoch by the harness's clock, until all is quiet"),
    *(Column(f"{phase}_time_s", "float", "s", f"{phase} phase") for phase in PHASES),
    Column("device_time_s", "float", "s", "model none on a GPU: between events around the samples"),
    Column("batches", "int", "", "batches run"),
    Column("seeds", "int", "", "seeds used"),
    Column("sampled_edges", "int", "", "edges drawn"),
    Column("unique_nodes", "int", "", "input nodes of all batches"),
    *(
        Column(f"feature_bytes_{path}", "int", "B", f"feature bytes by {path}")
        for path in FEATURE_PATHS
    ),
    Column("h2d_bytes", "int", "B", "bytes copied from host to device"),
    Column("loss", "float", "", "mean training loss"),
    Column("peak_alloc_bytes", "int", "B", "peak of the device's allocator"),
    Column("peak_rss_bytes", "int", "B", "peak resident memory of the worker so far"),
    Column("idle_cpu_s", "float", "s", "CPU time that the other, idle worker used meanwhile"),
    Column("foreign_cpu_s", "float", "s", "CPU time that other programs used meanwhile"),
    Column("sm_clock_mhz", "int", "MHz", "the GPU's clock right after the epoch"),
    Column("power_w", "float", "W", "the GPU's power draw right after the epoch"),
    Column("temperature_c", "int", "°C", "the GPU's temperature right after the epoch"),
    Column("throttle", "str", "", "why the GPU was slowed down around the epoch; empty if not"),
    Column("void", "bool", "", "replaced by a later attempt; in no statistic"),
    Column("ok", "bool", "", "edge counts of all batches were right"),
)

RATIOS: tuple[Column, ...] = (
    Column("pair", "str", "", "id of first and id of second, joined by '-'"),
    Column("first", "str", "", "the cell whose time is divided: system and what sets it apart"),
    Column("second", "str", "", "the cell that it is divided by"),
    *(c for c in CELLS if c.name in ("dataset", "model", "device", "batch_size", "fanouts")),
    Column("rounds", "int", "", "rounds in which both were measured, in turn"),
    Column("work_class", "str", "", "work of the second compared with the first's: see below"),
    Column(
        "ratio",
        "float",
        "1",
        "median over rounds of first / second: wall time of the samples without a model, else of "
        "the epoch; above 1 the second is faster; for different work per sampled edge",
    ),
    Column("ratio_ci_low", "float", "1", "lower end of its 95 % interval"),
    Column("ratio_ci_high", "float", "1", "upper end of its 95 % interval"),
    Column("device_ratio", "float", "1", "the same of device_time_s; empty on a CPU"),
    Column("noise_floor", "float", "1", "as in cells.csv"),
    Column("verdict", "str", "", "faster, slower or tie: the second against the first"),
)

STAGES: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("cell", "str", "", "system and settings"),
    Column("stage", "str", "", "see below; a native sampler's, and `batch` for any"),
    Column("hop", "int", "", "from 1 at the seeds; empty where it serves all hops"),
    Column("batches", "int", "", "batches behind the medians"),
    Column("host_s", "float", "s", "time of the host's clock, per batch"),
    Column("device_s", "float", "s", "time between events on the GPU's stream, per batch"),
    Column("nodes", "int", "", "destinations of the hop; input nodes of the batch"),
    Column("edges", "int", "", "edges drawn"),
    Column("block_bytes", "int", "B", "the blocks returned: offsets, columns, nodes"),
    Column(
        "extra_bytes",
        "int",
        "B",
        "peak of device memory beyond the graph, the batch order and the blocks, with what the "
        "sampler keeps between batches; empty on a CPU",
    ),
    Column("extra_ratio", "float", "1", "extra_bytes over block_bytes"),
)

KERNELS: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("cell", "str", "", "system and settings"),
    Column("kernel", "str", "", "name, as the CUDA profiling interface gives it"),
    Column("calls", "float", "1", "launches per batch"),
    Column("device_s", "float", "s", "time on the GPU per batch, all launches"),
    Column("grid", "str", "", "blocks of a launch, the most frequent shape"),
    Column("block", "str", "", "threads of a block, likewise"),
    Column("registers", "int", "", "registers per thread"),
    Column("shared_bytes", "int", "B", "shared memory per block"),
    Column(
        "occupancy",
        "float",
        "1",
        "warps that the launch can keep resident over what the GPU has room for, median; from the "
        "launch's shape and resources, not from counters; empty: unknown",
    ),
)

STAGE_NAMES = {
    "batch": "the whole call, until the sizes are known on the host (host_s), and its work "
    "(device_s); measured without the marks of the others",
    "prepare": "degrees, offsets, allocation, clearing of tables, reading sizes",
    "pick": "the sampling kernel",
    "id_map": "insertion and local ids",
    "block": "what is left to do until the block is there",
}


def column_names(columns: tuple[Column, ...]) -> list[str]:
    """Names in file order."""
    return [c.name for c in columns]


def markdown() -> str:
    """The schema as a document."""
    lines = [
        "# Columns of the results",
        "",
        "Printed by `python -m gnnbench.results.schema`; do not edit by hand.",
        "Times in seconds, sizes in bytes; an empty field means unknown or not applicable.",
    ]
    for title, columns in (
        ("`cells.csv`: one row per cell", CELLS),
        ("`samples.csv`: one row per epoch run", SAMPLES),
        ("`ratios.csv`: one row per couple that the definition compares directly", RATIOS),
        ("`stages.csv`: stages of sampling cells, by hop", STAGES),
        ("`kernels.csv`: kernels of sampling cells on a GPU", KERNELS),
    ):
        lines += ["", f"## {title}", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{c.name}` | {c.dtype} | {c.unit} | {c.description} |" for c in columns]
    for title, terms in (
        ("`status`", STATUSES),
        ("`work_class`", WORK_CLASSES),
        ("`stage`", STAGE_NAMES),
    ):
        lines += ["", f"## {title}", "", "| value | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in terms.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
