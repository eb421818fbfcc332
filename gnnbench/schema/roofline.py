"""``roofline.csv``: kernels run by themselves, below the ceilings measured in turns with them."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.schema.column import Record, column


@dataclass(slots=True, kw_only=True, eq=False)
class RooflineRow(Record):
    """A kernel or a measured peak: a row of ``roofline.csv``."""

    kind: str = column("", "ceiling, of the machine; kernel, of a cell's batches")
    id: str = column("", "cell; empty for a ceiling, which belongs to all")
    cell: str = column("", "system and what sets it apart in the run")
    device: str = column("", "cpu or cuda")
    threads: int = column("", "threads of a CPU")
    name: str = column("", "fma, copy, read or rows (at random); sample, gather or aggregate")
    level: str = column("", "where a ceiling's data are: memory, L2, L3, shared")
    level_bytes: int | None = column("B", "what that level holds, of all cores or multiprocessors")
    row_bytes: int | None = column(
        "B", "bytes of a row of `rows`; 4 are random reads of single words"
    )
    direction: str = column(
        "",
        "forward; backward, with whatever transpose it makes; backward, kept: again on that block",
    )
    layer: int | None = column("", "of an aggregation, from 1 at the input")
    mode: str = column("", "sum, mean or gcn; attention")
    width: int | None = column("", "elements of a row, of all heads")
    heads: int | None = column("", "heads of an attention, else 0")
    unit: str = column("", "of value and ceiling: flop/s, B/s or read/s")
    value: float = column("", "rate: geometric mean over lives of each one's median")
    low: float | None = column("", "lower end of its 95 % interval")
    high: float | None = column("", "upper end of its 95 % interval")
    n: int = column("", "lives behind it")
    spread: float = column("1", "relative standard deviation from one turn to the next, median")
    time_s: float = column("s", "time of one run, from caches that hold nothing of it")
    flops: int | None = column("", "operations on elements, counted: median over batches")
    least_bytes: int | None = column("B", "counted: every row read once, every result written once")
    asked_bytes: int | None = column("B", "counted: a row read for every edge")
    reads: int | None = column("", "random reads of the graph that samples need, counted")
    intensity: float | None = column("", "flops over least_bytes, flop/B")
    asked_intensity: float | None = column("", "flops over asked_bytes, flop/B")
    bound: str = column(
        "",
        "the ceiling that it is held against: fma; memory, the faster of copy and read; rows",
    )
    ceiling: float | None = column("", "the most that it lets a kernel of this intensity reach")
    of_ceiling: float | None = column("1", "value over that ceiling in the same round, over lives")
    of_ceiling_low: float | None = column("1", "lower end of its 95 % interval")
    of_ceiling_high: float | None = column("1", "upper end of its 95 % interval")
    counters: str = column("", "whose hardware counters follow: perf, ncu; none, and why")
    l1_hit: float | None = column(
        "1", "measured: found in the first cache over all looked up there"
    )
    l2_hit: float | None = column("1", "the same of the second cache")
    memory_bytes: float | None = column(
        "B", "measured: read from memory, of ncu written to it, too"
    )
    flops_run: float | None = column("", "measured: operations that the GPU executed")
    memory_intensity: float | None = column("", "flops over memory_bytes, flop/B")
    doubtful: str = column("", "why it is not to be trusted: above its ceiling")
    remark: str = column("", "why a ceiling may be another than it says")


ROOFLINE = RooflineRow.columns()
