"""Measures that are counted: feature rows by source, input nodes, requests, memory, match degrees.

Counts vary from epoch to epoch only because the sampler draws other neighbours, so the unit of an
interval is an epoch. Each function returns ``NOTHING`` for a cell without the number.
"""

from __future__ import annotations

from collections.abc import Callable

from gnnbench.analysis import metrics as m
from gnnbench.core.counters import (
    FEATURE_BYTES,
    MATCH_DEGREE,
    MATCH_LEAST,
    MATCH_MOST,
    STORED_MOST,
)
from gnnbench.reproduction.evidence import MeasureFunction, RunEvidence, scale_of
from gnnbench.reproduction.interval_arithmetic import exact
from gnnbench.schema import CellRow
from gnnbench.statistics.estimates import NOTHING, Estimate, mean_interval


def over_epochs(
    evidence: RunEvidence, row: CellRow, statistic: Callable[[dict[str, float]], float]
) -> Estimate:
    """Mean over epochs of a statistic of the feature bytes by source (``cache``, ``host``, ...).

    An epoch that several processes ran counts once.
    """
    values: dict[int, float] = {}
    for epoch in evidence.epochs.get(row["id"], []):
        bytes_by_source = {
            source: float(value)
            for stage, name, source, value in epoch.counts
            if (stage, name) == ("features", FEATURE_BYTES.name)
        }
        if sum(bytes_by_source.values()):
            values.setdefault(epoch.sample.epoch, statistic(bytes_by_source))
    return mean_interval(list(values.values()))


def hit_ratio(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Feature rows found in a cache / all rows that an epoch needs."""
    return over_epochs(evidence, row, lambda size: size.get("cache", 0.0) / sum(size.values()))


def rows_loaded(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Feature rows neither reused from the previous batch nor cached / all rows needed."""
    on_device = ("reused", "cache")
    return over_epochs(
        evidence,
        row,
        lambda size: 1 - sum(size.get(s, 0.0) for s in on_device) / sum(size.values()),
    )


def input_nodes(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Input nodes of a batch, mean over an epoch's batches."""
    values: dict[int, float] = {}
    for epoch in evidence.epochs.get(row["id"], []):
        if epoch.sample.unique_nodes and epoch.sample.batches:
            values.setdefault(epoch.sample.epoch, epoch.sample.unique_nodes / epoch.sample.batches)
    return mean_interval(list(values.values()))


def loaded_rows(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Rows of a batch that were neither reused nor cached.

    A twin at scale s has batches with s times as many seeds, so its number is divided by s.
    """
    share, nodes = rows_loaded(evidence, row), input_nodes(evidence, row)
    scale = scale_of(row["dataset"])
    if not share.n or not nodes.n:
        return NOTHING
    value, low, high = (
        getattr(share, end) * getattr(nodes, end) / scale for end in ("value", "low", "high")
    )
    return Estimate(value, low, high, min(share.n, nodes.n))


def over_best_order(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Share of rows loaded, less the lower bound for any order of the batches.

    The bound lets every batch follow the one that is most similar to it.
    """
    share = rows_loaded(evidence, row)
    most = evidence.metrics.value(row["id"], "order", MATCH_MOST)
    if not share.n or most is None:
        return NOTHING
    least = 1 - most
    return Estimate(share.value - least, share.low - least, share.high - least, share.n)


def peak_memory(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Peak of the device's allocator in bytes: the maximum of each trial, mean over trials."""
    trials = evidence.by_trial(row, lambda epoch: epoch.sample.peak_alloc_bytes or None)
    return mean_interval([float(max(peaks)) for peaks in trials])


def stored_bytes(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Largest number of bytes of samples that wait to be trained on, mean over epochs.

    ``NOTHING`` for an epoch cut to its first batches, which stores less than a whole one.
    """
    if row["batches"] != row["epoch_batches"]:
        return NOTHING
    values: dict[int, float] = {}
    for epoch in evidence.epochs.get(row["id"], []):
        for _, name, _, value in epoch.counts:
            if name == STORED_MOST.name:
                values.setdefault(epoch.sample.epoch, float(value))
    return mean_interval(list(values.values()))


def match_degree(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Mean match degree over pairs of an epoch's batches; the ends are those of any pair.

    Pairs share batches, so they are no independent sample. The mean of any similar epoch lies
    between the extremes, which is all that is claimed.
    """
    metrics = [
        evidence.metrics.row(row["id"], "order", name)
        for name in (MATCH_DEGREE, MATCH_LEAST, MATCH_MOST)
    ]
    if any(metric is None for metric in metrics):
        return NOTHING
    mean, least, most = (float(metric["value"]) for metric in metrics if metric is not None)
    return Estimate(mean, least, most, 1)


def match_degree_most(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Largest match degree of an epoch's pairs; exact."""
    most = evidence.metrics.value(row["id"], "order", MATCH_MOST)
    return NOTHING if most is None else exact(most)


def match_spread(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Largest less smallest match degree of an epoch's pairs (FastGL, Table 4); exact."""
    ends = [evidence.metrics.value(row["id"], "order", end) for end in (MATCH_MOST, MATCH_LEAST)]
    return NOTHING if None in ends else exact(float(ends[0] or 0) - float(ends[1] or 0))


def requests(pattern: str) -> MeasureFunction:
    """Requests per feature row by the address model, for an access pattern.

    Exact: the model counts every request of the run's ids and samples nothing.
    """

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        value = evidence.metrics.value(row["id"], "features", m.REQUESTS, pattern)
        return NOTHING if value is None else exact(value)

    return measure


def requests_combined(formula: Callable[[float, float, float], float]) -> MeasureFunction:
    """A formula of the requests per row: ``formula(naive, aligned, lines)``."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        counts = [
            evidence.metrics.value(row["id"], "features", m.REQUESTS, pattern)
            for pattern in ("naive", "aligned", "lines")
        ]
        if any(count is None for count in counts):
            return NOTHING
        return exact(formula(*(float(count) for count in counts if count is not None)))

    return measure


def trains(evidence: RunEvidence, row: CellRow) -> Estimate:
    """1 where a cell trained at least one measured epoch; exact."""
    trained = row["until"] == "compute" and bool(evidence.epochs.get(row["id"]))
    return exact(1.0) if trained else NOTHING


def same_edges(evidence: RunEvidence, row: CellRow) -> Estimate:
    """1 where the gate found the edges of the reference (equal digests), else 0; exact."""
    del evidence
    if row["id"] == row["reference_id"] or not row["work_class"]:
        return NOTHING
    return exact(float(row["work_class"] == "identical"))
