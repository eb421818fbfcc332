"""``stages.csv``, ``kernels.csv``, ``curves.csv`` and ``convergence.csv``: a look inside a cell."""

from __future__ import annotations

from gnnbench.schema.column import Column

STAGES: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("cell", "str", "", "system and what sets it apart in the run"),
    Column("stage", "str", "", "see below; a native sampler's, and `batch` for any"),
    Column("hop", "int", "", "from 1 at the seeds; empty where it serves all hops"),
    Column("batches", "int", "", "batches behind the medians"),
    Column("host_s", "float", "s", "time of the host's clock, per batch"),
    Column("device_s", "float", "s", "time between events on the GPU's stream, per batch"),
    Column("looks", "int", "", "processes behind the means of medians; empty: one"),
    Column("host_low_s", "float", "s", "lower end of host_s, over looks"),
    Column("host_high_s", "float", "s", "upper end"),
    Column("device_low_s", "float", "s", "lower end of device_s, over looks"),
    Column("device_high_s", "float", "s", "upper end"),
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
    Column("cell", "str", "", "system and what sets it apart in the run"),
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

CURVES: tuple[Column, ...] = (
    Column("id", "str", "", "cell whose sampler and ranking it is of"),
    Column("cell", "str", "", "system and what sets it apart in the run"),
    Column(
        "policy", "str", "", "policy of the cache; sieve: simulated, after an epoch that warmed it"
    ),
    Column("ratio", "float", "1", "cached rows over all rows of the feature table"),
    Column(
        "hit_ratio",
        "float",
        "1",
        "rows found in such a cache over all that the batches need: exact",
    ),
    Column("missed_bytes", "float", "B", "bytes of rows that a batch would have fetched, mean"),
)

CONVERGENCE: tuple[Column, ...] = (
    Column("id", "str", "", "cell"),
    Column("cell", "str", "", "system and what sets it apart in the run"),
    Column("pair", "str", "", "reference id and system id, joined by '-'"),
    Column("life", "int", "", "which pair of fresh processes of this comparison, from 0"),
    Column("epoch", "int", "", "epochs trained so far, warm-up among them, from 1"),
    Column("elapsed_s", "float", "s", "wall time of these epochs; evaluation is no part of it"),
    Column("loss", "float", "", "mean training loss of the epoch"),
    Column("val_accuracy", "float", "1", "share of validation nodes answered right after it"),
    Column("test_accuracy", "float", "1", "share of test nodes answered right after it"),
)

STAGE_NAMES = {
    "batch": "the whole call, until the sizes are known on the host (host_s), and its work "
    "(device_s); measured without the marks of the others",
    "prepare": "degrees, offsets, allocation, clearing of tables, reading sizes",
    "pick": "the sampling kernel",
    "id_map": "insertion and local ids",
    "block": "what is left to do until the block is there",
}
