"""``roofline.csv``: kernels measured alone, alternating with the machine's peak rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from gnnbench.schema.column import Record, column


@dataclass(slots=True, kw_only=True, eq=False)
class RooflineRow(Record):
    """A kernel or a measured peak: a row of ``roofline.csv``."""

    kind: str = column(
        "", "ceiling: a measured peak of the machine; kernel: a kernel on a cell's batches"
    )
    id: str = column("", "cell; empty for a ceiling")
    cell: str = column("", "system and distinguishing settings")
    device: str = column("", "cpu or cuda")
    threads: int = column("", "CPU threads")
    name: str = column("", "fma, copy, read or rows (at random); sample, gather or aggregate")
    level: str = column("", "memory level of a ceiling's data: memory, L2, L3, shared")
    level_bytes: int | None = column(
        "B", "capacity of that level, all cores or multiprocessors together"
    )
    row_bytes: int | None = column("B", "bytes of a row of `rows`; 4: random reads of single words")
    direction: str = column(
        "",
        "forward; backward, including a transpose; backward, kept: again, transpose reused",
    )
    layer: int | None = column("", "layer of an aggregation, from 1 at the input")
    mode: str = column("", "sum, mean, gcn or attention")
    width: int | None = column("", "elements of a row, all heads together")
    heads: int | None = column("", "attention heads; 0 for other modes")
    unit: str = column("", "unit of value and ceiling: flop/s, B/s or read/s")
    value: float = column("", "rate: median in a process, geometric mean over processes")
    low: float | None = column("", "lower end of its 95 % interval")
    high: float | None = column("", "upper end of its 95 % interval")
    n: int = column("", "number of processes")
    spread: float = column("1", "relative standard deviation between repetitions, median")
    time_s: float = column("s", "time of one run with cold caches")
    flops: int | None = column("", "arithmetic operations (counted), median over batches")
    least_bytes: int | None = column(
        "B", "minimum traffic (counted): each row read once, each result written once"
    )
    asked_bytes: int | None = column("B", "requested traffic (counted): a row read for each edge")
    reads: int | None = column("", "random reads of the graph for sampling (counted)")
    intensity: float | None = column("", "flops / least_bytes, flop/B")
    asked_intensity: float | None = column("", "flops / asked_bytes, flop/B")
    bound: str = column(
        "",
        "ceiling that it is compared with: fma; memory (the faster of copy and read); rows",
    )
    ceiling: float | None = column(
        "", "highest rate of a kernel of this intensity under that ceiling"
    )
    of_ceiling: float | None = column("1", "value / ceiling in the same round, mean over processes")
    of_ceiling_low: float | None = column("1", "lower end of its 95 % interval")
    of_ceiling_high: float | None = column("1", "upper end of its 95 % interval")
    counters: str = column(
        "", "source of the hardware counters that follow: perf, ncu; or none, with the reason"
    )
    l1_hit: float | None = column("1", "hit rate of the L1 cache (measured)")
    l2_hit: float | None = column("1", "hit rate of the L2 cache (measured)")
    memory_bytes: float | None = column(
        "B", "bytes read from memory (measured); with ncu also bytes written"
    )
    flops_run: float | None = column("", "operations executed by the GPU (measured)")
    compute_throughput: float | None = column(
        "1", "share of the GPU's peak of computation (measured by ncu), of the longest kernel"
    )
    memory_throughput: float | None = column(
        "1", "share of the GPU's peak of memory throughput (measured by ncu), of the same"
    )
    memory_intensity: float | None = column("", "flops / memory_bytes, flop/B")
    doubtful: str = column("", "why the row is unreliable: it is above its ceiling")
    remark: str = column("", "why the ceiling may differ from the true peak")


ROOFLINE = RooflineRow.columns()


class KernelKey(TypedDict):
    """Fields that identify a kernel of a batch."""

    name: str
    direction: str
    layer: int
    mode: str
    width: int
    heads: int


class Rate(TypedDict):
    """An amount of work, the median of its times and the spread of their logarithms."""

    amount: float
    seconds: float
    spread: float


class CeilingRecord(Rate):
    """A measured peak."""

    kind: Literal["ceiling"]
    name: str
    level: str
    row_bytes: int
    level_bytes: int
    unit: str
    remark: str


class KernelRecord(KernelKey, Rate):
    """A measured kernel, and its work."""

    kind: Literal["kernel"]
    unit: str
    flops: int
    bytes: int
    asked: int
    reads: int


RooflineRecord = CeilingRecord | KernelRecord
