"""Numbers from inside a cell: launches of kernels, memory by component, what came before an epoch.

Every one is of a table beside ``cells.csv``; one that a run does not have gives ``NOTHING``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from gnnbench.core.counters import (
    GROUPS_TIME,
    HOT_SIMILARITY,
    HOTNESS_TIME,
    MAPPING_SHARE,
    MATCH_LEAST,
    MATCH_MOST,
    MEMORY_BYTES,
    ROUNDS,
)
from gnnbench.reproduction.evidence import Opened
from gnnbench.statistics.estimates import NOTHING, Estimate, mean_interval

PIECE = 2**21  # bytes; what a driver takes of a GPU's memory at least

Row = dict[str, Any]
Number = Callable[[Opened, Row], Estimate]


def exact(value: float) -> Estimate:
    """A number that is counted, not estimated."""
    return Estimate(value, value, value, 1)


def match_spread(opened: Opened, row: Row) -> Estimate:
    """Most less least match degree of an epoch's pairs (FastGL, Table 4): exact of this epoch."""
    ends = [opened.metrics.value(row["id"], "order", what) for what in (MATCH_MOST, MATCH_LEAST)]
    return NOTHING if None in ends else exact(float(ends[0] or 0) - float(ends[1] or 0))


def hot_similarity(opened: Opened, row: Row) -> Estimate:
    """Likeness of the hottest tenth of two epochs (GNNLab, Table 2): exact of these epochs."""
    found = opened.metrics.value(row["id"], "features", HOT_SIMILARITY)
    return NOTHING if found is None else exact(found)


def mapping_share(opened: Opened, row: Row) -> Estimate:
    """GPU memory that mapping a table took over its bytes, by what the driver had free.

    That is the GPU's, and what the life beside mapped, made or gave back meanwhile is in it: told
    is the least share that two of the run's cells over the same table agree in. The driver takes
    memory by pieces, one more or less of them is the interval.
    """
    told = {
        one["id"]: opened.metrics.value(one["id"], "features", MAPPING_SHARE)
        for one in opened.run.cells
        if (one["dataset"], _dtype(one)) == (row["dataset"], _dtype(row))
    }
    piece = PIECE / (row["nodes"] * row["feature_dim"] * (4 if _dtype(row) == "float32" else 2))
    # 0: out of a piece that the driver had
    found = sorted(share for share in told.values() if share is not None and share > 0)
    agreed = [low for low, high in pairwise(found) if high - low <= piece]
    if not agreed or told[row["id"]] is None:
        return NOTHING
    return Estimate(agreed[0], agreed[0] - piece, agreed[0] + piece, len(found))


def _dtype(row: Row) -> str:
    """Of the feature rows that a cell's table has."""
    return str(json.loads(row["recipe"]).get("dtype", "float32"))


def launches(opened: Opened, row: Row) -> Estimate:
    """Launches a batch of the kernel that takes longest on the GPU: in a sampler the one that
    draws. A batch's launches are counted, and are the same for all."""
    kernels = [k for k in opened.run.kernels if k["id"] == row["id"] and k["device_s"]]
    if not kernels:
        return NOTHING
    return exact(float(max(kernels, key=lambda k: float(k["device_s"]))["calls"]))


def launches_a_hop(opened: Opened, row: Row) -> Estimate:
    """The same for each hop."""
    found = launches(opened, row)
    return exact(found.value / (row["fanouts"].count("/") + 1)) if found.n else NOTHING


def stage_time(stage: str) -> Number:
    """Seconds a batch of a native sampler's stage, all hops, ends added: between events on a GPU's
    stream, else by the host's clock."""

    def find(opened: Opened, row: Row) -> Estimate:
        hops = _stage_times(opened, row, stage)
        if not hops:
            return NOTHING
        value, low, high = (sum(getattr(h, e) for h in hops) for e in ("value", "low", "high"))
        return Estimate(value, low, high, min(h.n for h in hops))

    return find


def stage_spread(stage: str) -> Number:
    """The same of the slowest hop over that of the fastest, end against end."""

    def find(opened: Opened, row: Row) -> Estimate:
        hops = _stage_times(opened, row, stage)
        if len(hops) < 2:
            return NOTHING
        slow, fast = max(hops, key=lambda h: h.value), min(hops, key=lambda h: h.value)
        return _over(slow, fast)

    return find


def stage_growth(stage: str) -> Number:
    """The least that a hop takes over the hop before it, end against end."""

    def find(opened: Opened, row: Row) -> Estimate:
        hops = _stage_times(opened, row, stage)
        grown = [_over(b, a) for a, b in pairwise(hops)]
        return min(grown, key=lambda g: g.value, default=NOTHING)

    return find


def _over(a: Estimate, b: Estimate) -> Estimate:
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low, min(a.n, b.n))


def _stage_times(opened: Opened, row: Row, stage: str) -> list[Estimate]:
    """Of each hop, from the seeds outwards. A single look has no interval."""
    time = "device" if row["device"] == "cuda" else "host"
    return [
        Estimate(r[f"{time}_s"], or_nan(r[f"{time}_low_s"]), or_nan(r[f"{time}_high_s"]),
                 r["looks"] or 1)
        for r in _stages(opened, row, stage) if r[f"{time}_s"]
    ]  # fmt: skip


def _stages(opened: Opened, row: Row, stage: str) -> list[Row]:
    """Rows of ``stages.csv`` of a stage, from the seeds outwards."""
    rows = [r for r in opened.run.stages if (r["id"], r["stage"]) == (row["id"], stage)]
    return sorted(rows, key=lambda r: r["hop"] or 0)


def prepare_over_pick(hop: int) -> Number:
    """Time that preparing a hop takes over that of its picks, end against end."""

    def find(opened: Opened, row: Row) -> Estimate:
        prepare, pick = (_stage_times(opened, row, stage) for stage in ("prepare", "pick"))
        if min(len(prepare), len(pick)) < hop:
            return NOTHING
        return _over(prepare[hop - 1], pick[hop - 1])

    return find


def pick_rate_growth(opened: Opened, row: Row) -> Estimate:
    """The least that a hop's rate, nodes picked for a second, is over that of the hop before."""
    times = _stage_times(opened, row, "pick")
    nodes = [r["nodes"] for r in _stages(opened, row, "pick")]
    if len(times) != len(nodes) or not all(nodes):
        return NOTHING
    rates = [
        Estimate(n / t.value, n / t.high, n / t.low, t.n) for n, t in zip(nodes, times, strict=True)
    ]
    grown = [_over(b, a) for a, b in pairwise(rates)]
    return min(grown, key=lambda g: g.value, default=NOTHING)


def told(row: Row | None) -> Estimate:
    """The number of a row of ``metrics.csv``; ``NOTHING`` where there is none."""
    if row is None:
        return NOTHING
    return Estimate(row["value"], or_nan(row["low"]), or_nan(row["high"]), row["n"] or 1)


def or_nan(value: float | None) -> float:
    """A number that a table lacks, as none that can be compared."""
    return math.nan if value is None else value


def memory_of(*components: str) -> Number:
    """Bytes that components hold at the moment of an epoch's peak, by the experiment `memory`."""

    def find(opened: Opened, row: Row) -> Estimate:
        held = [opened.metrics.value(row["id"], name, MEMORY_BYTES) for name in components]
        there = [float(size) for size in held if size is not None]
        return exact(sum(there)) if there else NOTHING

    return find


def memory_left(opened: Opened, row: Row) -> Estimate:
    """Bytes of the GPU's memory that an epoch's peak leaves."""
    peak = memory_of("epoch")(opened, row)
    gpus = opened.run.record.get("machine", {}).get("gpus") or []
    if not peak.n or row["device"] != "cuda" or not gpus:
        return NOTHING
    return exact(float(gpus[0]["memory_bytes"]) - peak.value)


def presampling_epochs(opened: Opened, row: Row) -> Estimate:
    """Time of counting what a cache ranks by, over an epoch's, mean over lives."""
    before = opened.metrics.value(row["id"], "features", HOTNESS_TIME)
    walls: dict[tuple[str, int], list[float]] = {}
    for epoch in opened.epochs.get(row["id"], []):
        if epoch["wall_s"]:
            walls.setdefault((epoch["pair"], epoch["life"]), []).append(epoch["wall_s"])
    if before is None:
        return NOTHING
    return mean_interval([before / statistics.median(times) for times in walls.values()])


def groups_of_compute(opened: Opened, row: Row) -> Estimate:
    """Time that making neighbour groups takes of computing, mean over lives of the median epoch."""
    lives: dict[tuple[str, int], list[float]] = {}
    for epoch in opened.epochs.get(row["id"], []):
        spent = sum(float(c[3]) for c in epoch["counts"] if c[1] == GROUPS_TIME.name)
        if spent and epoch["compute_time_s"]:
            share = spent / epoch["compute_time_s"]
            lives.setdefault((epoch["pair"], epoch["life"]), []).append(share)
    return mean_interval([statistics.median(shares) for shares in lives.values()])


def rounds(opened: Opened, row: Row) -> Estimate:
    """All-to-alls of ids, neighbours or rows a batch, of ranks that have a partition each: exact,
    from the epoch that had fewest to the one that had most."""
    found = []
    for epoch in opened.epochs.get(row["id"], []):
        counted = [float(c[3]) for c in epoch["counts"] if c[1] == ROUNDS.name]
        if counted and epoch["batches"]:
            found.append(sum(counted) / epoch["batches"])
    if not found:
        return NOTHING
    return Estimate(statistics.mean(found), min(found), max(found), len(found))


def loss_apart(opened: Opened, row: Row) -> Estimate:
    """How far a cell's loss of an epoch is from the reference's of that epoch, over the latter: the
    largest of all epochs that both trained on from the same weights."""
    right = {_epoch(e): e["loss"] for e in opened.epochs.get(row["reference_id"], [])}
    apart = [
        abs(epoch["loss"] / right[_epoch(epoch)] - 1)
        for epoch in opened.epochs.get(row["id"], [])
        if row["id"] != row["reference_id"] and epoch["loss"] and right.get(_epoch(epoch))
    ]
    return exact(max(apart)) if apart else NOTHING


def _epoch(sample: Row) -> tuple[Any, ...]:
    return tuple(sample[key] for key in ("pair", "life", "round", "epoch"))


def pooled(numbers: Sequence[Estimate]) -> Estimate:
    """Of cells that differ in their seed alone, say: their mean, and Student's interval of it."""
    return mean_interval([number.value for number in numbers if number.n])
