"""Measures of GPU memory, of similar epochs, of communication and of losses.

Each function returns ``NOTHING`` for a cell without the number.
"""

from __future__ import annotations

import statistics

from gnnbench.core.counters import HOT_SIMILARITY, MEMORY_BYTES, ROUNDS
from gnnbench.reproduction.evidence import EpochCounts, MeasureFunction, RunEvidence
from gnnbench.reproduction.interval_arithmetic import exact
from gnnbench.schema import CellRow
from gnnbench.statistics.estimates import NOTHING, Estimate


def memory_of(*components: str) -> MeasureFunction:
    """Bytes of components at the peak of an epoch, from the experiment `memory`."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        sizes = [evidence.metrics.value(row["id"], name, MEMORY_BYTES) for name in components]
        known = [float(size) for size in sizes if size is not None]
        return exact(sum(known)) if known else NOTHING

    return measure


def memory_left(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Bytes of the GPU's memory that are free at the peak of an epoch."""
    peak = memory_of("epoch")(evidence, row)
    if not peak.n or row["device"] != "cuda" or not evidence.gpus:
        return NOTHING
    return exact(float(evidence.gpus[0]["memory_bytes"]) - peak.value)


def hot_similarity(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Similarity of the most accessed tenth of nodes of two epochs (GNNLab, Table 2); exact.

    Nothing where epochs were cut: parts of epochs are less similar.
    """
    if row["max_batches"] and row["max_batches"] < (row["epoch_batches"] or 0):
        return NOTHING
    similarity = evidence.metrics.value(row["id"], "features", HOT_SIMILARITY)
    return NOTHING if similarity is None else exact(similarity)


def rounds(evidence: RunEvidence, row: CellRow) -> Estimate:
    """All-to-all exchanges per batch between ranks with a partition each.

    Exact: the ends are the epochs with the fewest and the most.
    """
    per_batch = []
    for epoch in evidence.epochs.get(row["id"], []):
        counts = [float(c[3]) for c in epoch.counts if c[1] == ROUNDS.name]
        if counts and epoch.sample.batches:
            per_batch.append(sum(counts) / epoch.sample.batches)
    if not per_batch:
        return NOTHING
    return Estimate(statistics.mean(per_batch), min(per_batch), max(per_batch), len(per_batch))


def loss_apart(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Largest relative difference between a cell's loss and the reference's loss of an epoch.

    Only epochs in which both trained from the same weights count.
    """
    reference = {_epoch_key(e): e.sample.loss for e in evidence.epochs.get(row["reference_id"], [])}
    differences = [
        abs(epoch.sample.loss / loss - 1)
        for epoch in evidence.epochs.get(row["id"], [])
        if row["id"] != row["reference_id"]
        and epoch.sample.loss
        and (loss := reference.get(_epoch_key(epoch)))
    ]
    return exact(max(differences)) if differences else NOTHING


def _epoch_key(epoch: EpochCounts) -> tuple[str, int, int, int]:
    return epoch.sample.pair, epoch.sample.life, epoch.sample.round, epoch.sample.epoch
