"""``stages.csv``, ``kernels.csv``, ``curves.csv``, ``convergence.csv``: details of a cell."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.schema.column import Record, column

STAGE_NAMES = {
    "batch": "the whole call: until the sizes are known on the host (host_s) and on the GPU "
    "(device_s); measured without the events of the other stages",
    "prepare": "degrees, offsets, allocation, clearing tables, reading sizes",
    "pick": "the sampling kernel",
    "id_map": "insertion and local ids",
    "block": "the remaining work for the block",
}


@dataclass(slots=True, kw_only=True, eq=False)
class StageRow(Record):
    """A stage of a sampler: a row of ``stages.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and distinguishing settings")
    stage: str = column("", "stage of a native sampler, see below; `batch` for every sampler")
    hop: int | None = column("", "from 1 at the seeds; empty for a stage of all hops")
    batches: int | None = column("", "batches over which the medians are taken")
    host_s: float | None = column("s", "host time per batch")
    device_s: float | None = column("s", "time between events on the GPU's stream per batch")
    looks: int | None = column("", "profiling runs over which the medians are averaged; empty: one")
    host_low_s: float | None = column(
        "s", "lower end of the interval of host_s, over profiling runs"
    )
    host_high_s: float | None = column("s", "upper end")
    device_low_s: float | None = column(
        "s", "lower end of the interval of device_s, over profiling runs"
    )
    device_high_s: float | None = column("s", "upper end")
    nodes: int | None = column("", "destinations of the hop; input nodes of the batch")
    edges: int | None = column("", "edges sampled")
    block_bytes: int | None = column("B", "the blocks returned: offsets, columns, nodes")
    extra_bytes: int | None = column(
        "B",
        "peak of device memory without the graph, the batch order and the blocks, including "
        "the state of the sampler between batches; empty on a CPU",
    )
    extra_ratio: float | None = column("1", "extra_bytes / block_bytes")


@dataclass(slots=True, kw_only=True, eq=False)
class KernelRow(Record):
    """A GPU kernel of a cell: a row of ``kernels.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and distinguishing settings")
    kernel: str = column("", "name of the kernel, from the CUDA profiling interface")
    calls: float = column("1", "launches per batch")
    device_s: float = column("s", "time on the GPU per batch, all launches")
    grid: str = column("", "grid of a launch, most frequent shape")
    block: str = column("", "block of a launch, most frequent shape")
    registers: int | None = column("", "registers per thread")
    shared_bytes: int | None = column("B", "shared memory per block")
    occupancy: float | None = column(
        "1",
        "theoretical occupancy, median: resident warps by the launch's shape and resources / "
        "maximum of the GPU; empty: unknown",
    )


@dataclass(slots=True, kw_only=True, eq=False)
class CurveRow(Record):
    """The hit ratio of a cache of one size: a row of ``curves.csv``."""

    id: str = column("", "cell that defines the sampler and the ranking")
    cell: str = column("", "system and distinguishing settings")
    policy: str = column("", "cache policy; sieve: simulated after a warm-up epoch")
    ratio: float = column("1", "cached rows / rows of the feature table")
    hit_ratio: float = column(
        "1", "rows served by such a cache / rows that the batches need (exact)"
    )
    missed_bytes: float = column("B", "bytes of missed rows per batch, mean")


@dataclass(slots=True, kw_only=True, eq=False)
class ConvergenceRow(Record):
    """A model after one epoch: a row of ``convergence.csv``."""

    id: str = column("", "cell")
    cell: str = column("", "system and distinguishing settings")
    pair: str = column("", "reference id and system id, joined by '-'")
    life: int = column("", "number of the pair of fresh processes in this comparison, from 0")
    epoch: int = column("", "epochs trained so far, including warm-up, from 1")
    elapsed_s: float = column("s", "wall time of these epochs without evaluation")
    loss: float | None = column("", "mean training loss of the epoch")
    val_accuracy: float = column("1", "accuracy on validation nodes after the epoch")
    test_accuracy: float = column("1", "accuracy on test nodes after the epoch")


STAGES = StageRow.columns()
KERNELS = KernelRow.columns()
CURVES = CurveRow.columns()
CONVERGENCE = ConvergenceRow.columns()
