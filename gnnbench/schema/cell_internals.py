"""``stages.csv``, ``kernels.csv``, ``curves.csv`` and ``convergence.csv``: a look inside a cell."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.schema.column import Record, column

STAGE_NAMES = {
    "batch": "the whole call, until the sizes are known on the host (host_s), and its work "
    "(device_s); measured without the marks of the others",
    "prepare": "degrees, offsets, allocation, clearing of tables, reading sizes",
    "pick": "the sampling kernel",
    "id_map": "insertion and local ids",
    "block": "what is left to do until the block is there",
}


@dataclass(slots=True, kw_only=True, eq=False)
class StageRow(Record):
    """A stage of a sampler: a row of ``stages.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and what sets it apart in the run")
    stage: str = column("", "see below; a native sampler's, and `batch` for any")
    hop: int | None = column("", "from 1 at the seeds; empty where it serves all hops")
    batches: int | None = column("", "batches behind the medians")
    host_s: float | None = column("s", "time of the host's clock, per batch")
    device_s: float | None = column("s", "time between events on the GPU's stream, per batch")
    looks: int | None = column("", "processes behind the means of medians; empty: one")
    host_low_s: float | None = column("s", "lower end of host_s, over looks")
    host_high_s: float | None = column("s", "upper end")
    device_low_s: float | None = column("s", "lower end of device_s, over looks")
    device_high_s: float | None = column("s", "upper end")
    nodes: int | None = column("", "destinations of the hop; input nodes of the batch")
    edges: int | None = column("", "edges drawn")
    block_bytes: int | None = column("B", "the blocks returned: offsets, columns, nodes")
    extra_bytes: int | None = column(
        "B",
        "peak of device memory beyond the graph, the batch order and the blocks, with what "
        "the sampler keeps between batches; empty on a CPU",
    )
    extra_ratio: float | None = column("1", "extra_bytes over block_bytes")


@dataclass(slots=True, kw_only=True, eq=False)
class KernelRow(Record):
    """A GPU kernel of a cell: a row of ``kernels.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and what sets it apart in the run")
    kernel: str = column("", "name, as the CUDA profiling interface gives it")
    calls: float = column("1", "launches per batch")
    device_s: float = column("s", "time on the GPU per batch, all launches")
    grid: str = column("", "blocks of a launch, the most frequent shape")
    block: str = column("", "threads of a block, likewise")
    registers: int | None = column("", "registers per thread")
    shared_bytes: int | None = column("B", "shared memory per block")
    occupancy: float | None = column(
        "1",
        "warps that the launch can keep resident over what the GPU has room for, median; "
        "from the launch's shape and resources, not from counters; empty: unknown",
    )


@dataclass(slots=True, kw_only=True, eq=False)
class CurveRow(Record):
    """The hit ratio of a cache of one size: a row of ``curves.csv``."""

    id: str = column("", "cell whose sampler and ranking it is of")
    cell: str = column("", "system and what sets it apart in the run")
    policy: str = column("", "policy of the cache; sieve: simulated, after an epoch that warmed it")
    ratio: float = column("1", "cached rows over all rows of the feature table")
    hit_ratio: float = column(
        "1", "rows found in such a cache over all that the batches need: exact"
    )
    missed_bytes: float = column("B", "bytes of rows that a batch would have fetched, mean")


@dataclass(slots=True, kw_only=True, eq=False)
class ConvergenceRow(Record):
    """A model after one epoch: a row of ``convergence.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and what sets it apart in the run")
    pair: str = column("", "reference id and system id, joined by '-'")
    life: int = column("", "which pair of fresh processes of this comparison, from 0")
    epoch: int = column("", "epochs trained so far, warm-up among them, from 1")
    elapsed_s: float = column("s", "wall time of these epochs; evaluation is no part of it")
    loss: float | None = column("", "mean training loss of the epoch")
    val_accuracy: float = column("1", "share of validation nodes answered right after it")
    test_accuracy: float = column("1", "share of test nodes answered right after it")


STAGES = StageRow.columns()
KERNELS = KernelRow.columns()
CURVES = CurveRow.columns()
CONVERGENCE = ConvergenceRow.columns()
