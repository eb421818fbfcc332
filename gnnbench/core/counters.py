"""What stages count where it happens: bytes, calls and whatever else is worth a row.

A measure is declared once, with unit and description, by the module that counts it; the result
tables take both from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

WHERE = {
    "host": "read on the host by the host",
    "host_copy": "gathered on the host, then copied over the link",
    "zero_copy": "read over the link by a kernel",
    "device": "in the device's memory",
    "cache": "in a cache of the device",
    "reused": "kept from an earlier batch",
    "peer": "in another device's memory",
    "network": "kept by another rank, and sent by it",
    "naive": "of requests: a warp's 128 bytes at a time from where a row begins",
    "aligned": "of requests: the same, shifted to whole lines (PyTorch-Direct)",
    "lines": "of requests: the lines that a row lies in, each asked for once",
    "samplers": "of ranks: those that sample for others (schedule=factored)",
    "trainers": "of ranks: those that fetch and train (schedule=factored)",
    "held": "of memory: the host's that a run holds for a GPU, for all lives; else the device's",
    "0.9": "of what was learnt: the validation accuracy that was to be reached, as it was stated",
}


@dataclass(frozen=True)
class Measure:
    """What a number is; ``unit`` is ``B``, ``s``, ``1`` ... or ``""`` for a bare count."""

    name: str
    unit: str
    description: str


MEASURES: dict[str, Measure] = {}


def measure(name: str, unit: str, description: str) -> Measure:
    """Declare a measure.

    The same declaration may stand twice; another one of that name raises ``ValueError``.
    """
    made = Measure(name, unit, description)
    known = MEASURES.setdefault(name, made)
    if known != made:
        raise ValueError(f"measure '{name}' is {known} already; give the other one its own name")
    return known


class Counts:
    """Sums by (stage, measure, where). ``add`` is one look-up in a dictionary."""

    __slots__ = ("_settle", "_sums")

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], float] = {}
        self._settle: list[Callable[[], None]] = []

    def settled_by(self, settle: Callable[[], None]) -> None:
        """Call ``settle`` before sums are read or forgotten: it adds what a device has counted,
        for which nobody is to wait in between."""
        self._settle.append(settle)

    def add(self, stage: str, measure: Measure, value: float, where: str = "") -> None:
        """Add ``value`` (an int stays one) to the sum of ``measure`` in ``stage``, ``where``."""
        key = (stage, measure.name, where)
        sums = self._sums
        sums[key] = sums.get(key, 0) + value

    def rows(self) -> list[list[str | float]]:
        """``[stage, name, where, value]`` in the order in which they were first counted."""
        for settle in self._settle:
            settle()
        return [[*key, value] for key, value in self._sums.items()]

    def clear(self) -> None:
        """Forget all sums."""
        for settle in self._settle:
            settle()
        self._sums.clear()


# What more than one stage, or the reader of older results, speaks of.
FEATURE_BYTES = measure("feature_bytes", "B", "bytes of feature rows read, by where they were")
TOPOLOGY_BYTES = measure("topology_bytes", "B", "bytes of the graph's structure read, likewise")
CALLS = measure("calls", "", "calls of the stage that read or moved something, likewise")
DEVICE_TIME = measure("device_time_s", "s", "time between events around an epoch's samples")
# Of a cache, before the first epoch: a runner has no torch and knows them by name.
HOTNESS_TIME = measure("hotness_time_s", "s", "counting what a cache's policy ranks by")
RANK_TIME = measure("rank_time_s", "s", "ranking all nodes by it")
FILL_TIME = measure("fill_time_s", "s", "copying the rows that a cache holds")
CACHE_ROWS = measure("cache_rows", "", "feature rows that a cache has room for")
CACHE_RATIO = measure("cache_ratio", "1", "the same over all rows, where derived (ratio=auto)")
PEAK_WITHOUT = measure(
    "uncached_peak_bytes",
    "B",
    "peak of the device's memory while batches are run with an empty cache",
)
PEAK_TIME = measure("uncached_time_s", "s", "running those batches before any epoch")
LOCK_TIME = measure("lock_time_s", "s", "locking the table for a GPU, making and filling a copy")
MAPPING_SHARE = measure(
    "mapping_share", "1", "memory of the GPU that mapping the table took, over the table's bytes"
)
HOT_SIMILARITY = measure(
    "hot_similarity", "1", "visits to the hottest tenth of nodes that two epochs have in common"
)
GROUPS_TIME = measure(
    "groups_time_s", "s", "making neighbour groups in an epoch (GNNAdvisor), a part of computing"
)
# Of a window, in an epoch.
WINDOW_BYTES = measure(
    "window_bytes", "B", "most memory that a window of batches held: rows, and where they are"
)
# Of a look at memory, by component (``gnnbench.systems.runtime.memory``).
MEMORY_BYTES = measure(
    "memory_bytes",
    "B",
    "memory held at the moment of an epoch's peak; of `epoch` that peak: the sum",
)
MEMORY_MOST = measure("memory_most_bytes", "B", "the most that it held at any moment")
# Of a gather alone, measured after each of its epochs.
COPY_TIME = measure("copy_time_s", "s", "copying as many bytes in one piece, the same way")
# What is known of an epoch's batches where overlap is made use of.
MATCH_DEGREE = measure(
    "match_degree", "1", "nodes shared by two batches over the smaller one's, mean over pairs"
)
MATCH_LEAST = measure("match_degree_least", "1", "the least of any pair")
MATCH_LOWER = measure("match_degree_lower", "1", "lower quartile over pairs")
MATCH_MEDIAN = measure("match_degree_median", "1", "median over pairs")
MATCH_UPPER = measure("match_degree_upper", "1", "upper quartile over pairs")
MATCH_MOST = measure("match_degree_most", "1", "the most of any pair")
MATCH_DRAWN = measure("match_degree_drawn", "1", "mean of neighbours in the order as drawn")
MATCH_RUN = measure("match_degree_run", "1", "mean of neighbours in the order as run")
# Of buffers through which a producer's process hands batches over.
HANDED_BYTES = measure("handed_bytes", "B", "bytes of batches and rows written to shared buffers")
BUFFER_BYTES = measure("buffer_bytes", "B", "size of these buffers")
BUFFERS_GROWN = measure("buffers_grown", "", "times that one of them was made, or made larger")
# Of a training step whose batches are padded to one shape.
CAPTURE_TIME = measure(
    "capture_time_s", "s",
    "making the shape that batches are padded to, before the first epoch; step=graph: captured",
)  # fmt: skip
RECAPTURES = measure(
    "recaptures", "", "times in an epoch that a batch did not fit: a larger shape, captured anew"
)
RECAPTURE_TIME = measure("recapture_time_s", "s", "these, within the epoch's compute")
PADDED_ROWS = measure("padded_rows", "", "rows that batches were padded with, of all layers")
PADDED_EDGES = measure("padded_edges", "", "edges that they were padded with, likewise")
ROW_PADDING = measure("row_padding", "1", "rows that batches were padded with over their own")
EDGE_PADDING = measure("edge_padding", "1", "the same of edges")
# Of samples that wait for their turn to be trained on.
STORED_BYTES = measure("stored_bytes", "B", "bytes of samples stored until they are trained on")
STORED_MOST = measure("stored_most_bytes", "B", "the most of them at a time")
# Of ranks that train together, each on a stretch of every batch; ``where`` is the rank.
RANK_BUSY = {
    phase: measure(f"rank_{phase}_s", "s", f"time of one rank in {words}, in an epoch")
    for phase, words in (
        ("sample", "sampling"), ("memory_io", "memory IO"),
        ("compute", "compute, waiting for the others' gradients in it"),
    )
}  # fmt: skip
IMBALANCE = measure(
    "rank_imbalance", "1",
    "the slowest rank's sampling and memory IO over the mean of all ranks, or of those of a role",
)  # fmt: skip
REDUCE_BYTES = measure("reduce_bytes", "B", "bytes of gradients given to all-reduces by all ranks")
REDUCE_TIME = measure(
    "reduce_time_s", "s", "a rank's time in all-reduces, waiting for the others in it"
)
AGAIN_EDGES = measure("again_edges", "", "edges that more than one rank drew, but for the first")
AGAIN_NODES = measure("again_nodes", "", "rows that more than one rank fetched, but for the first")
RANK_IDLE = measure("rank_idle_s", "s", "time of one rank in no phase, in an epoch")
RANK_PEAK = measure(
    "rank_peak_bytes", "B",
    "peak of a GPU's memory that one rank has held so far, without what checks and audits took",
)  # fmt: skip
RANK_HELD = measure(
    "rank_held_bytes", "B",
    "on a CPU: memory of one rank's process after an epoch, neither mapped from a file nor shared;"
    " no peak, for the kernel knows none of it",
)  # fmt: skip
# Of ranks that sample or train (``schedule=factored``); ``where`` is the rank.
RANK_DRAWN = measure("rank_drawn", "", "batches that a rank drew for others to train on")
RANK_TRAINED = measure("rank_trained", "", "batches that a rank trained on")
RANK_WAIT = measure(
    "rank_wait_s", "s", "a rank's host time until the queue had room, or a batch: no phase's"
)
SAMPLERS = measure("samplers", "", "ranks that sample")
TRAINERS = measure("trainers", "", "ranks that train")
UPDATES = measure("updates", "", "updates of the weights in an epoch")
SWITCHES = measure("switches", "", "times that a sampler became a trainer")
QUEUE_MOST = measure("queue_most", "", "most batches that waited in the queue at a time")
MEASURED_PHASE = {
    phase: measure(
        f"measured_{phase}_s", "s", f"a batch's {words} in the epoch that decided who samples"
    )
    for phase, words in (
        ("sample", "sampling"), ("memory_io", "memory IO"), ("compute", "compute"),
    )
}  # fmt: skip
# Of ranks that have a partition of the graph each; by rank, where it differs.
ROUNDS = measure(
    "exchange_rounds", "", "all-to-alls of ids, neighbours or rows that every rank takes part in"
)
SIZE_ROUNDS = measure(
    "exchange_sizes", "", "small all-to-alls ahead of them, 8 bytes a peer, that tell their sizes"
)
SENT_BYTES = measure("sent_bytes", "B", "bytes that a rank sends to others by these rounds")
EXCHANGE_TIME = measure(
    "exchange_time_s", "s", "a rank's time in all of these, waiting for the others in it"
)
PARTITION_TIME = measure(
    "partition_time_s", "s", "making the partition, once: it is stored beside the graph"
)
PART_TIME = measure(
    "part_time_s", "s", "opening the partition and copying rank 0's part, in a life's setup"
)
EDGES_CUT = measure("edges_cut", "", "edges between two parts, parallel ones counted each")
CUT_SHARE = measure("cut_share", "1", "the same over all edges")
PART_IMBALANCE = {
    what: measure(f"part_{what}_imbalance", "1", f"{words} of the largest part over the mean part")
    for what, words in (
        ("nodes", "nodes"), ("edges", "edges into nodes"), ("training", "training nodes")
    )
}  # fmt: skip
PART_BYTES = measure("part_bytes", "B", "bytes of the graph that a rank keeps for itself")
# Deprecated: in the tables of earlier runs, which had a projection to more ranks. ``where`` is the
# number of ranks that share a batch.
SPLIT_ROWS = measure(
    "split_rows", "", "rows that the rank with most of them would fetch of a batch"
)
SPLIT_EDGES = measure("split_edges", "", "edges that the rank with most of them would draw")
SPLIT_ALL_ROWS = measure("split_all_rows", "", "rows that all ranks together would fetch")
SPLIT_ALL_EDGES = measure("split_all_edges", "", "edges that all ranks together would draw")
SPLIT_AWAY_ROWS = measure("split_away_rows", "", "of these rows those that another rank would have")
SPLIT_SENT = measure("split_sent_bytes", "B", "bytes that all ranks would send by all-to-alls")
# Measured for it by one rank and by two.
REDUCE_LATENCY = measure("reduce_latency_s", "s", "an all-reduce of one number")
REDUCE_RATE = measure("reduce_rate", "B/s", "what a rank sends in an all-reduce of 16 MiB")
EXCHANGE_LATENCY = measure("exchange_latency_s", "s", "an all-to-all of one number a rank")
EXCHANGE_RATE = measure("exchange_rate", "B/s", "what a rank sends to others in one of 16 MiB")
FLOOR = {
    phase: measure(f"floor_{phase}_s", "s", f"{words} of a batch of one seed, by one of two ranks")
    for phase, words in (
        ("sample", "sampling"), ("memory_io", "memory IO"), ("compute", "compute"),
    )
}  # fmt: skip
REORDERED = measure("reordered", "", "batches that were run at another place than drawn")
