"""Counters of stages, and the declared metrics of ``metrics.csv``.

``measure`` declares a metric: name, unit and description. Metrics of gnnbench's stages are declared
here, those that the harness computes in ``gnnbench.analysis.metrics``; a plug-in declares its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Meaning of the values in the column ``where``.
WHERE = {
    "host": "read from host memory by the CPU",
    "host_copy": "copied over the link: gathered by the CPU before, or row by row",
    "zero_copy": "read over the link by a GPU kernel",
    "disk": "read from a file",
    "device": "in device memory",
    "cache": "in a cache on the device",
    "reused": "kept on the device from an earlier batch",
    "peer": "in the memory of another device",
    "network": "sent by the rank that owns the row",
    "naive": "requests of a warp: 128 bytes at a time from the start of the row",
    "aligned": "requests of a warp, shifted to whole cache lines (PyTorch-Direct)",
    "lines": "requests: each cache line that a row touches, once",
    "sampler": "the process that samples (schedule=producer-consumer)",
    "producer": "the process that gathers feature rows (schedule=producer-consumer)",
    "consumer": "the process that trains (schedule=producer-consumer)",
    "samplers": "ranks that sample for others (schedule=factored)",
    "trainers": "ranks that gather features and train (schedule=factored)",
    "held": "host memory that the run shares with all trials of a GPU; otherwise device memory",
    "0.9": "target of the validation accuracy, as the definition states it",
}


@dataclass(frozen=True)
class Metric:
    """A declared metric; ``unit`` is ``B``, ``s``, ``1``, ... or ``""`` for a count."""

    name: str
    unit: str
    description: str


METRICS: dict[str, Metric] = {}


def declare(name: str, unit: str, description: str) -> Metric:
    """Declare a metric; an equal declaration returns the first one.

    Raises ``ValueError`` where the name has another declaration.
    """
    declared = Metric(name, unit, description)
    existing = METRICS.setdefault(name, declared)
    if existing != declared:
        raise ValueError(f"metric '{name}' is already declared as {existing}; use another name")
    return existing


class Counts:
    """Sums by (stage, metric, where). ``add`` costs one dictionary look-up."""

    __slots__ = ("_settle", "_sums")

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], float] = {}
        self._settle: list[Callable[[], None]] = []

    def settled_by(self, settle: Callable[[], None]) -> None:
        """Call ``settle`` before sums are read or cleared.

        It adds counts that are still on a device, so that no batch waits for them.
        """
        self._settle.append(settle)

    def add(self, stage: str, metric: Metric, value: float, where: str = "") -> None:
        """Add ``value`` to the sum of ``metric`` in ``stage``, ``where``; an int stays an int."""
        key = (stage, metric.name, where)
        sums = self._sums
        sums[key] = sums.get(key, 0) + value

    def rows(self) -> list[list[str | float]]:
        """``[stage, name, where, value]`` in the order of the first ``add``."""
        for settle in self._settle:
            settle()
        return [[*key, value] for key, value in self._sums.items()]

    def clear(self) -> None:
        """Reset all sums."""
        for settle in self._settle:
            settle()
        self._sums.clear()


# Metrics of several stages, and of older results.
BLOCK_BYTES = declare("block_bytes", "B", "blocks copied from the host to the device")
FEATURE_BYTES = declare("feature_bytes", "B", "bytes of feature rows read, by location")
TOPOLOGY_BYTES = declare("topology_bytes", "B", "bytes of graph topology read, by location")
CALLS = declare("calls", "", "calls that read or moved data, by location")
DEVICE_TIME = declare("device_time_s", "s", "sampling time of an epoch between CUDA events")
# Parts of a Sampler's phase in an epoch (GNNLab, Table 5: G, M and C); ``where`` is the rank.
SAMPLE_PARTS = {
    part: declare(f"sample_{part}_s", "s", f"time of a sampling rank to {does}, part of sample")
    for part, does in (
        ("draw", "draw batches"), ("mark", "mark the nodes that trainers cache"),
        ("copy", "copy batches into the queue"),
    )
}  # fmt: skip
# A cache before the first epoch.
HOTNESS_TIME = declare(
    "hotness_time_s", "s", "time to compute the scores that a cache policy ranks by"
)
RANK_TIME = declare("rank_time_s", "s", "time to rank all nodes by score")
FILL_TIME = declare("fill_time_s", "s", "time to copy rows into the cache")
CACHE_ROWS = declare("cache_rows", "", "capacity of the cache in feature rows")
CACHE_RATIO = declare("cache_ratio", "1", "capacity / number of nodes, where derived (ratio=auto)")
PEAK_WITHOUT = declare(
    "uncached_peak_bytes",
    "B",
    "peak device memory of batches with an empty cache",
)
PEAK_TIME = declare("uncached_time_s", "s", "time of these batches, before the first epoch")
LOCK_TIME = declare("lock_time_s", "s", "time to page-lock the table for a GPU, including a copy")
WRITE_TIME = declare(
    "write_time_s", "s", "time to write the table to a file that rows are read from"
)
MAPPING_SHARE = declare(
    "mapping_share", "1", "GPU memory used to map the table / bytes of the table"
)
KERNEL_TIME = declare(
    "kernel_time_s", "s",
    "time with a kernel of this process in a traced epoch",
)  # fmt: skip
KERNEL_OVERLAP = declare(
    "kernel_overlap", "1",
    "share of a gather's time with kernels of the consumer; mean of a traced epoch's gathers",
)  # fmt: skip
HOT_SIMILARITY = declare(
    "hot_similarity",
    "1",
    "share of visits to the hottest tenth of nodes common to two epochs",
)
GROUPS_TIME = declare(
    "groups_time_s", "s", "time to make neighbour groups in an epoch (GNNAdvisor), part of compute"
)
# A window of batches, in an epoch.
WINDOW_BYTES = declare(
    "window_bytes", "B", "peak memory of a window of batches: rows and their positions"
)
# Memory by component (``gnnbench.systems.runtime.memory``).
MEMORY_BYTES = declare(
    "memory_bytes",
    "B",
    "memory of a component at the peak of an epoch; `epoch` is the sum",
)
MEMORY_MOST = declare("memory_most_bytes", "B", "peak memory of the component itself")
# A gather alone, measured after each epoch.
COPY_TIME = declare(
    "copy_time_s", "s", "time to copy as many bytes contiguously over the same path"
)
# Overlap between batches of an epoch (match).
MATCH_DEGREE = declare(
    "match_degree", "1", "nodes shared by two batches / nodes of the smaller batch, mean over pairs"
)
MATCH_LEAST = declare("match_degree_least", "1", "match degree, minimum over pairs")
MATCH_LOWER = declare("match_degree_lower", "1", "match degree, lower quartile over pairs")
MATCH_MEDIAN = declare("match_degree_median", "1", "match degree, median over pairs")
MATCH_UPPER = declare("match_degree_upper", "1", "match degree, upper quartile over pairs")
MATCH_MOST = declare("match_degree_most", "1", "match degree, maximum over pairs")
MATCH_DRAWN = declare(
    "match_degree_drawn", "1", "match degree of consecutive batches in the default order, mean"
)
MATCH_RUN = declare(
    "match_degree_run", "1", "match degree of consecutive batches in the executed order, mean"
)
# Shared buffers between producer and consumer processes.
HANDED_BYTES = declare("handed_bytes", "B", "bytes of batches and rows written to shared buffers")
COPIED_BYTES = declare(
    "copied_bytes", "B", "bytes of rows that were gathered elsewhere, then copied to shared buffers"
)
SYNCHRONISATIONS = declare(
    "synchronisations", "",
    "messages about a batch that a process took in from others in an epoch, by process",
)  # fmt: skip
BUFFER_BYTES = declare("buffer_bytes", "B", "size of the shared buffers")
BUFFERS_GROWN = declare(
    "buffers_grown", "", "number of times a shared buffer was created or enlarged"
)
# Training steps on batches that are padded to one shape.
CAPTURE_TIME = declare(
    "capture_time_s", "s",
    "time to prepare the padded shape before the first epoch; step=graph: to capture it",
)  # fmt: skip
RECAPTURES = declare(
    "recaptures", "", "number of batches in an epoch that did not fit and caused a new capture"
)
RECAPTURE_TIME = declare("recapture_time_s", "s", "time of these captures, part of compute")
PADDED_ROWS = declare("padded_rows", "", "padding rows, all layers")
PADDED_EDGES = declare("padded_edges", "", "padding edges, all layers")
ROW_PADDING = declare("row_padding", "1", "padding rows / real rows")
EDGE_PADDING = declare("edge_padding", "1", "padding edges / real edges")
# Samples stored until they are trained on.
STORED_BYTES = declare("stored_bytes", "B", "bytes of samples stored until they are trained on")
STORED_MOST = declare("stored_most_bytes", "B", "peak of stored_bytes")
# Data-parallel ranks, each with a seed shard of every batch; ``where`` is the rank.
RANK_BUSY = {
    phase: declare(f"rank_{phase}_s", "s", f"time of one rank in {name}, in an epoch")
    for phase, name in (
        ("sample", "sampling"), ("memory_io", "memory IO"),
        ("compute", "compute, including waits for gradients of other ranks"),
    )
}  # fmt: skip
IMBALANCE = declare(
    "rank_imbalance", "1",
    "sampling and memory IO of the slowest rank / mean over all ranks (of a role)",
)  # fmt: skip
REDUCE_BYTES = declare("reduce_bytes", "B", "bytes of gradients passed to all-reduce by all ranks")
REDUCE_TIME = declare(
    "reduce_time_s", "s", "time of a rank in all-reduce, including waits for other ranks"
)
AGAIN_EDGES = declare("again_edges", "", "edges sampled again by a second or further rank")
AGAIN_NODES = declare("again_nodes", "", "rows gathered again by a second or further rank")
RANK_IDLE = declare("rank_idle_s", "s", "time of one rank outside of all phases, in an epoch")
RANK_PEAK = declare(
    "rank_peak_bytes", "B",
    "peak GPU memory of one rank so far, without checks and audits",
)  # fmt: skip
RANK_HELD = declare(
    "rank_held_bytes", "B",
    "on a CPU: private memory of one rank's process after an epoch; not a peak, because the kernel"
    " records none of private memory",
)  # fmt: skip
# Ranks that sample or train (``schedule=factored``); ``where`` is the rank.
RANK_DRAWN = declare("rank_drawn", "", "batches that a rank sampled for other ranks")
RANK_TRAINED = declare("rank_trained", "", "batches that a rank trained on")
RANK_CACHED = declare("rank_cached_rows", "", "capacity of a rank's feature cache in rows")
STALE_UPDATES = declare(
    "stale_updates", "",
    "updates of other ranks between two of a rank (asynchronous updates), sum of an epoch",
)  # fmt: skip
STALE_MOST = declare("stale_most", "", "the same, maximum of an epoch")
RANK_WAIT = declare(
    "rank_wait_s", "s", "host time of a rank spent waiting for the queue; part of no phase"
)
SAMPLERS = declare("samplers", "", "number of ranks that sample")
TRAINERS = declare("trainers", "", "number of ranks that train")
UPDATES = declare("updates", "", "weight updates in an epoch")
SWITCHES = declare("switches", "", "number of times a sampling rank became a training rank")
QUEUE_MOST = declare("queue_most", "", "peak number of batches in the queue")
MEASURED_PHASE = {
    phase: declare(
        f"measured_{phase}_s", "s", f"{name} of a batch in the epoch that set the roles of ranks"
    )
    for phase, name in (
        ("sample", "sampling"), ("memory_io", "memory IO"), ("compute", "compute"),
    )
}  # fmt: skip
# Ranks that own a partition of the graph each; ``where`` is the rank where values differ.
ROUNDS = declare("exchange_rounds", "", "all-to-all exchanges of ids, neighbours or rows")
SIZE_ROUNDS = declare(
    "exchange_sizes", "", "all-to-all exchanges of sizes before the others, 8 bytes per peer"
)
SENT_BYTES = declare("sent_bytes", "B", "bytes that a rank sends in all exchanges")
EXCHANGE_TIME = declare(
    "exchange_time_s", "s", "time of a rank in all exchanges, including waits for other ranks"
)
PARTITION_TIME = declare(
    "partition_time_s", "s", "time to make the partition, once; it is stored with the graph"
)
PART_TIME = declare(
    "part_time_s",
    "s",
    "time to open the partition and copy the part of rank 0 (setup)",
)
EDGES_CUT = declare("edges_cut", "", "edges between two parts, parallel edges counted each")
CUT_SHARE = declare("cut_share", "1", "edges between two parts / all edges")
PART_IMBALANCE = {
    kind: declare(f"part_{kind}_imbalance", "1", f"{name} of the largest part / mean over parts")
    for kind, name in (
        ("nodes", "nodes"), ("edges", "edges into nodes"), ("training", "training nodes")
    )
}  # fmt: skip
PART_BYTES = declare("part_bytes", "B", "bytes of the graph in the private memory of a rank")
REORDER_TIME = declare("reorder_time_s", "s", "time to reorder batches, a part of memory IO")
REORDERED = declare(
    "reordered", "", "batches executed at another position than in the default order"
)
# Deprecated: only in older results, of a scaling projection. ``where`` is the number of ranks that
# share a batch.
SPLIT_ROWS = declare("split_rows", "", "rows of a batch that the most loaded rank would gather")
SPLIT_EDGES = declare("split_edges", "", "edges of a batch that the most loaded rank would sample")
SPLIT_ALL_ROWS = declare("split_all_rows", "", "rows that all ranks together would gather")
SPLIT_ALL_EDGES = declare("split_all_edges", "", "edges that all ranks together would sample")
SPLIT_AWAY_ROWS = declare("split_away_rows", "", "rows of split_rows that another rank would own")
SPLIT_SENT = declare(
    "split_sent_bytes", "B", "bytes that all ranks would send in all-to-all exchanges"
)
# Deprecated: measured for the projection by one rank and by two.
REDUCE_LATENCY = declare("reduce_latency_s", "s", "time of an all-reduce of one number")
REDUCE_RATE = declare("reduce_rate", "B/s", "rate of a rank in an all-reduce of 16 MiB")
EXCHANGE_LATENCY = declare("exchange_latency_s", "s", "time of an all-to-all of one number a rank")
EXCHANGE_RATE = declare("exchange_rate", "B/s", "rate of a rank in an all-to-all of 16 MiB")
FLOOR = {
    phase: declare(f"floor_{phase}_s", "s", f"{name} of a batch of one seed, by one of two ranks")
    for phase, name in (
        ("sample", "sampling"), ("memory_io", "memory IO"), ("compute", "compute"),
    )
}  # fmt: skip
