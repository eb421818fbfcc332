"""The fixed set of numbers that a claim may be judged by, each with its interval.

Counts differ from epoch to epoch, by the draws alone: their unit is an epoch. Shares of time differ
from process to process: theirs is a life. A ratio of times is the one that the run itself judged,
pair by pair; none is made of times that did not run beside one another.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import PHASES
from gnnbench.core.counters import (
    FEATURE_BYTES,
    MATCH_DEGREE,
    MATCH_LEAST,
    MATCH_MOST,
    STORED_MOST,
    Measure,
)
from gnnbench.reproduction import cell_internals
from gnnbench.reproduction.cell_internals import or_nan, told
from gnnbench.reproduction.evidence import Opened, scale_of
from gnnbench.statistics.estimates import NOTHING, Estimate, mean_interval

Row = dict[str, Any]
Number = Callable[[Opened, Row], Estimate]
APART = 0.02
"""Overlap over an epoch's time up to which its phases follow each other."""


def over_epochs(opened: Opened, row: Row, of: Callable[[dict[str, float]], float]) -> Estimate:
    """Mean over epochs of different numbers of what is made of feature bytes by where they were."""
    values: dict[int, float] = {}
    for epoch in opened.epochs.get(row["id"], []):
        served = {
            where: float(value)
            for stage, name, where, value in epoch["counts"]
            if (stage, name) == ("features", FEATURE_BYTES.name)
        }
        if sum(served.values()):
            values.setdefault(epoch["epoch"], of(served))
    return mean_interval(list(values.values()))


def hit_ratio(opened: Opened, row: Row) -> Estimate:
    """Rows found in a cache over all that an epoch needs."""
    return over_epochs(opened, row, lambda at: at.get("cache", 0.0) / sum(at.values()))


def rows_loaded(opened: Opened, row: Row) -> Estimate:
    """Rows that were neither kept from an earlier batch nor cached, over all that were needed."""
    there = ("reused", "cache")
    return over_epochs(
        opened, row, lambda at: 1 - sum(at.get(w, 0.0) for w in there) / sum(at.values())
    )


def input_nodes(opened: Opened, row: Row) -> Estimate:
    """Nodes that a batch meets with its last hop, mean over an epoch's batches."""
    values: dict[int, float] = {}
    for epoch in opened.epochs.get(row["id"], []):
        if epoch["unique_nodes"] and epoch["batches"]:
            values.setdefault(epoch["epoch"], epoch["unique_nodes"] / epoch["batches"])
    return mean_interval(list(values.values()))


def reached(opened: Opened, row: Row) -> Estimate:
    """Of the graph's nodes those that a batch meets, mean over an epoch's batches."""
    found, nodes = input_nodes(opened, row), row["nodes"]
    return Estimate(found.value / nodes, found.low / nodes, found.high / nodes, found.n)


def loaded_rows(opened: Opened, row: Row) -> Estimate:
    """Rows of a batch that were neither kept nor cached.

    Of a twin at scale s, whose batches have s times as many seeds, they are told over s.
    """
    share, nodes = rows_loaded(opened, row), input_nodes(opened, row)
    scale = scale_of(row["dataset"])
    if not share.n or not nodes.n:
        return NOTHING
    value, low, high = (
        getattr(share, end) * getattr(nodes, end) / scale for end in ("value", "low", "high")
    )
    return Estimate(value, low, high, min(share.n, nodes.n))


def over_best_order(opened: Opened, row: Row) -> Estimate:
    """Share of rows loaded less the least of any order: each batch after the one most like it."""
    found = rows_loaded(opened, row)
    most = opened.metrics.value(row["id"], "order", MATCH_MOST)
    if not found.n or most is None:
        return NOTHING
    least = 1 - most
    return Estimate(found.value - least, found.low - least, found.high - least, found.n)


def peak_memory(opened: Opened, row: Row) -> Estimate:
    """Peak of the device's allocator (B), mean over lives of each one's highest."""
    lives: dict[tuple[str, int], list[float]] = {}
    for epoch in opened.epochs.get(row["id"], []):
        if epoch["peak_alloc_bytes"]:
            key = (epoch["pair"], epoch["life"])
            lives.setdefault(key, []).append(float(epoch["peak_alloc_bytes"]))
    return mean_interval([max(peaks) for peaks in lives.values()])


def stored_bytes(opened: Opened, row: Row) -> Estimate:
    """Bytes of samples that wait in an epoch until they are trained on, the most at a time.

    ``NOTHING`` of an epoch that was cut to its first batches: those of a whole one are more.
    """
    if row["batches"] != row["epoch_batches"]:
        return NOTHING
    values: dict[int, float] = {}
    for epoch in opened.epochs.get(row["id"], []):
        for _, name, _, value in epoch["counts"]:
            if name == STORED_MOST.name:
                values.setdefault(epoch["epoch"], float(value))
    return mean_interval(list(values.values()))


def match_degree(opened: Opened, row: Row) -> Estimate:
    """Mean over pairs of an epoch's batches, between the least and the most of any pair.

    Pairs share batches and are no sample of independent ones: the mean of any epoch like it lies
    between its extremes, which is all that is claimed.
    """
    ident = row["id"]
    found = [opened.metrics.row(ident, "order", w) for w in (MATCH_DEGREE, MATCH_LEAST, MATCH_MOST)]
    if any(f is None for f in found):
        return NOTHING
    mean, least, most = (float(f["value"]) for f in found if f is not None)
    return Estimate(mean, least, most, 1)


def _requests(where: str) -> Number:
    def find(opened: Opened, row: Row) -> Estimate:
        value = opened.metrics.value(row["id"], "features", m.REQUESTS, where)
        return NOTHING if value is None else Estimate(value, value, value, 1)

    return find


def over_lives(
    opened: Opened,
    row: Row,
    of: Callable[[dict[str, float]], float],
    needs: Collection[str] = (),
) -> Estimate:
    """Mean over lives of each one's median of what is made of an epoch's times: phases, `wall`
    and `overlap`. Of epochs in which a phase that it ``needs`` was not timed there is nothing."""
    lives: dict[tuple[str, int], list[float]] = {}
    for epoch in opened.epochs.get(row["id"], []):
        times = {p: epoch[f"{p}_time_s"] for p in PHASES if epoch[f"{p}_time_s"] is not None}
        if len(times) > 1 and times.keys() >= set(needs) and epoch["wall_s"]:
            made = of({**times, "wall": epoch["wall_s"], "overlap": epoch["overlap_s"] or 0.0})
            lives.setdefault((epoch["pair"], epoch["life"]), []).append(made)
    return mean_interval([statistics.median(values) for values in lives.values()])


def overlaps(opened: Opened, row: Row) -> bool:
    """Whether phases of a cell's epochs run beside one another: each is then slowed by the others,
    and parts of an epoch come to more than the whole."""
    share = overlap_share(opened, row)
    return share.n > 0 and share.value > APART


def _phases_apart(
    opened: Opened, row: Row, needs: Collection[str], of: Callable[[dict[str, float]], float]
) -> Estimate:
    """``over_lives`` where phases follow each other."""
    return NOTHING if overlaps(opened, row) else over_lives(opened, row, of, needs)


def _share(phase: str) -> Number:
    """A phase's time over the epoch's wall time."""

    def find(opened: Opened, row: Row) -> Estimate:
        return _phases_apart(opened, row, [phase], lambda at: at[phase] / at["wall"])

    return find


def _requests_of(made_of: Callable[[float, float, float], float]) -> Number:
    def find(opened: Opened, row: Row) -> Estimate:
        asked = [
            opened.metrics.value(row["id"], "features", m.REQUESTS, where)
            for where in ("naive", "aligned", "lines")
        ]
        if any(value is None for value in asked):
            return NOTHING
        found = made_of(*(float(value) for value in asked if value is not None))
        return Estimate(found, found, found, 1)

    return find


def _lead(phase: str) -> Number:
    """A phase's time over the longest of the others'."""

    def find(opened: Opened, row: Row) -> Estimate:
        return _phases_apart(opened, row, [phase], lambda at: at[phase] / max(_others(at, phase)))

    return find


def _others(at: Mapping[str, float], phase: str) -> list[float]:
    return [at[name] for name in PHASES if name in at and name != phase]


def _over_phase(phase: str, other: str) -> Number:
    """A phase's time over another's."""

    def find(opened: Opened, row: Row) -> Estimate:
        return _phases_apart(opened, row, [phase, other], lambda at: at[phase] / at[other])

    return find


def _gain(phase: str) -> Number:
    """A phase's time of the cell's reference over its own, as the run tells it of the pair."""

    def find(opened: Opened, row: Row) -> Estimate:
        if row["work_class"] == "different" or row["reference_id"] == row["id"]:
            return NOTHING
        return told(opened.metrics.row(row["id"], phase, m.SPEEDUP))

    return find


def gain_over_sampling(opened: Opened, row: Row) -> Estimate:
    """The reference's epoch over the cell's, over the same of sampling alone; end against end."""
    sampling = _gain("sample")(opened, row)
    if not sampling.n or row["ratio"] is None or row["judged"] != "epoch_wall_s":
        return NOTHING
    low, high = or_nan(row["ratio_ci_low"]), or_nan(row["ratio_ci_high"])
    return Estimate(
        row["ratio"] / sampling.value, low / sampling.high, high / sampling.low, sampling.n
    )


def overlap_share(opened: Opened, row: Row) -> Estimate:
    """Time of an epoch in which phases overlap, over its wall time."""
    return over_lives(opened, row, lambda at: at["overlap"] / at["wall"])


def _aggregate_rate(direction: str) -> Number:
    """The rate of the fastest of the cell's aggregations of a direction (flop/s)."""

    def find(opened: Opened, row: Row) -> Estimate:
        found = _kernels(opened, row, "value", "low", "high", direction=direction)
        return max(found, key=lambda f: f.value, default=NOTHING)

    return find


def same_edges(opened: Opened, row: Row) -> Estimate:
    """1 where the gate found the reference's very edges (equal digests), else 0: exact."""
    del opened
    if row["id"] == row["reference_id"] or not row["work_class"]:
        return NOTHING
    found = float(row["work_class"] == "identical")
    return Estimate(found, found, found, 1)


def of_ceiling(opened: Opened, row: Row) -> Estimate:
    """Of the cell's kernels the one nearest its ceiling: rate over ceiling."""
    found = _kernels(opened, row, "of_ceiling", "of_ceiling_low", "of_ceiling_high")
    return max(found, key=lambda f: f.value, default=NOTHING)


def of_peak(opened: Opened, row: Row) -> Estimate:
    """Of the cell's forward aggregations the fastest: its rate over that of multiply-adds."""
    peaks = [
        r
        for r in opened.run.roofline
        if (r["kind"], r["name"], r["device"]) == ("ceiling", "fma", row["device"])
    ]
    found = _kernels(opened, row, "value", "low", "high", direction="forward")
    if not peaks or not found:
        return NOTHING
    best, peak = max(found, key=lambda f: f.value), max(peaks, key=lambda r: r["value"])
    low, high = best.low / or_nan(peak["high"]), best.high / or_nan(peak["low"])
    return Estimate(best.value / peak["value"], low, high, best.n)


def _level(faster: str, slower: str) -> Number:
    """The rate of reading one level of memory over that of another, end against end."""

    def find(opened: Opened, row: Row) -> Estimate:
        rates = {
            r["level"]: r
            for r in opened.run.roofline
            if (r["kind"], r["name"], r["device"]) == ("ceiling", "read", row["device"])
        }
        if not {faster, slower} <= rates.keys():
            return NOTHING
        top, below = rates[faster], rates[slower]
        low = or_nan(top["low"]) / or_nan(below["high"])
        high = or_nan(top["high"]) / or_nan(below["low"])
        return Estimate(top["value"] / below["value"], low, high, top["n"] or 1)

    return find


def _kernels(
    opened: Opened, row: Row, value: str, low: str, high: str, **wanted: str
) -> list[Estimate]:
    """Numbers of a cell's kernels that have operations."""
    return [
        Estimate(r[value], or_nan(r[low]), or_nan(r[high]), r["n"] or 1)
        for r in opened.run.roofline
        if (r["kind"], r["id"], r["unit"]) == ("kernel", row["id"], "flop/s")
        and r[value] is not None
        and all(r[key] == is_ for key, is_ in wanted.items())
    ]


def _metric(stage: str, what: Measure) -> Number:
    def find(opened: Opened, row: Row) -> Estimate:
        return told(opened.metrics.row(row["id"], stage, what))

    return find


# Exact: every request of the run's ids is counted by the model, nothing is sampled.
MEASURES: Mapping[str, Number] = MappingProxyType(
    {
        "hit_ratio": hit_ratio,
        "rows_loaded": rows_loaded,
        "loaded_rows": loaded_rows,
        "over_best_order": over_best_order,
        "input_nodes": input_nodes,
        "reached": reached,
        "peak_memory": peak_memory,
        "stored_bytes": stored_bytes,
        "match_degree": match_degree,
        "match_spread": cell_internals.match_spread,
        "hot_similarity": cell_internals.hot_similarity,
        "mapping_share": cell_internals.mapping_share,
        "rounds": cell_internals.rounds,
        "loss_apart": cell_internals.loss_apart,
        "launches": cell_internals.launches,
        "launches_a_hop": cell_internals.launches_a_hop,
        "id_map_s": cell_internals.stage_time("id_map"),
        "prepare_s_spread": cell_internals.stage_spread("prepare"),
        "pick_s": cell_internals.stage_time("pick"),
        "pick_s_growth": cell_internals.stage_growth("pick"),
        "pick_rate_growth": cell_internals.pick_rate_growth,
        "prepare_over_pick_1": cell_internals.prepare_over_pick(1),
        "prepare_over_pick_2": cell_internals.prepare_over_pick(2),
        "prepare_over_pick_3": cell_internals.prepare_over_pick(3),
        "memory_left": cell_internals.memory_left,
        "memory_of_rows": cell_internals.memory_of("features", "rows"),
        "memory_of_all_epochs": cell_internals.memory_of("topology", "features"),
        "requests_naive": _requests("naive"),
        "requests_aligned": _requests("aligned"),
        "requests_lines": _requests("lines"),
        "requests_ratio": _requests_of(lambda naive, aligned, lines: naive / aligned),
        "requests_extra": _requests_of(lambda naive, aligned, lines: aligned - lines),
        "same_edges": same_edges,
        "of_ceiling": of_ceiling,
        "of_peak": of_peak,
        "aggregate_rate": _aggregate_rate("forward"),
        "aggregate_backward_rate": _aggregate_rate("backward"),
        "shared_over_l2": _level("shared", "L2"),
        "l2_over_memory": _level("L2", "memory"),
        "sample_share": _share("sample"),
        "memory_io_share": _share("memory_io"),
        "compute_share": _share("compute"),
        "sample_lead": _lead("sample"),
        "memory_io_lead": _lead("memory_io"),
        "compute_lead": _lead("compute"),
        "overlap_share": overlap_share,
        "memory_io_over_compute": _over_phase("memory_io", "compute"),
        "memory_io_gain": _gain("memory_io"),
        "gain_over_sampling": gain_over_sampling,
        "presampling_epochs": cell_internals.presampling_epochs,
        "groups_of_compute": cell_internals.groups_of_compute,
        "of_copy": _metric("features", m.OF_COPY),
        "val_accuracy": _metric(m.LEARNING, m.VAL_ACCURACY),
    }
)
# Of phases that follow one another: cells in which they overlap are passed over.
OF_PHASES = frozenset(
    f"{phase}_{of}" for phase in PHASES for of in ("share", "lead", "over_compute")
) & frozenset(MEASURES)
# Doubts of a row are of its times: work that is wrong makes it `incorrect`. What is counted stays.
TIMED = frozenset(
    name
    for name in MEASURES
    if name.endswith(("_share", "_lead", "_rate", "_gain", "presampling_epochs", "_of_compute"))
    or name.startswith(("of_", "gain_"))
    or "_over_" in name
    or name.startswith(("id_map_", "prepare_", "pick_"))
)
# Made of the ratio that the run tells of a cell and its reference: of too few pairs it is none.
GAINS = frozenset({"memory_io_gain", "gain_over_sampling"})
