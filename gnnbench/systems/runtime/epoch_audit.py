"""Checks of a timed epoch: seeds and edges of every batch, rows of the last one.

Each check returns what is wrong, or "".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.minibatch import Sizes
from gnnbench.datasets.graph import Graph
from gnnbench.validation import gate
from gnnbench.validation.law import Law

REREAD_ROWS = 1024  # enough to detect a stale buffer, too few to matter in memory


def check_seeds(batches: Sequence[Tensor], train: Tensor) -> str:
    """Check that every seed of an epoch is a training node and occurs once.

    ``train`` are the training nodes in ascending order.
    """
    if not batches:
        return ""
    seeds = torch.cat(list(batches)).sort().values.cpu()
    if bool((seeds[1:] == seeds[:-1]).any()):
        return "the batch order holds a training node twice in an epoch"
    positions = torch.searchsorted(train, seeds).clamp_(max=train.numel() - 1)
    if not torch.equal(train[positions], seeds):
        return "the batch order holds a node that is none of the training set"
    return ""


def check_batch_order(
    executed: Sequence[tuple[int, Sizes]], window: int, own: range | None = None
) -> tuple[list[Sizes], str]:
    """Restore the order in which batches were sampled, and check the order in which they ran.

    ``executed`` are (batch number, sizes) as they ran; ``own`` are the numbers of the batches that
    this process runs, by default all. Batch reordering may move them within windows of ``window``;
    a window of 1 moves nothing. A wrong batch number is detected when the seeds are compared with
    the epoch's.
    """
    if window == 1:
        return [sizes for _, sizes in executed], ""
    numbers = [number for number, _ in executed]
    sampled = [sizes for _, sizes in sorted(executed, key=lambda batch: batch[0])]
    due = (range(len(executed)) if own is None else own)[: len(executed)]
    if sorted(numbers) != list(due):
        return sampled, "the order left out batches, or ran some of them twice"
    for position, number in enumerate(numbers):
        if position // window != due.index(number) // window:
            return sampled, (
                f"batch {number + 1} was run as the epoch's {position + 1}., outside its window of"
                f" {window}"
            )
    return sampled, ""


def check_batches(
    batches: Sequence[Sizes], seeds: Sequence[Tensor], law: Law, fanouts: Sequence[int]
) -> str:
    """Compare the seeds and edge counts of timed batches with the epoch's seeds and the law.

    Counts stay on the device of the batches: copying thousands of hops from a GPU is slow.
    """
    if len(batches) != len(seeds):
        return f"{len(batches)} batches were run where the epoch has {len(seeds)}"
    for index, (expected, batch) in enumerate(zip(seeds, batches, strict=True)):
        hops = batch.hops
        sampled = (hops[0][0] if hops else batch.seeds).long()
        if not torch.equal(sampled.sort().values, expected.long().sort().values):
            return (
                f"timed batch {index + 1} was drawn for other seeds than its own:"
                f" {sampled.numel()} where it has {expected.numel()}"
            )
        for number, ((dst, edges), fanout) in enumerate(zip(hops, fanouts, strict=True)):
            fault = law.count_fault(dst.long(), edges, fanout)
            if fault is not None:
                return f"timed batch {index + 1}, hop {number + 1}: {fault}"
    return ""


def mean_loss(losses: Sequence[float], seeds: Sequence[Tensor], labels: Tensor) -> float | None:
    """Return the mean loss of an epoch's batches.

    ``seeds`` are those of all batches, ``labels`` those of all nodes, on the host. The loss of a
    batch without a labelled seed is NaN and is left out; any other NaN makes the mean NaN. None
    where no batch has a labelled seed.
    """
    known = [loss for loss in losses if not math.isnan(loss)]
    num_nan = len(losses) - len(known)
    if num_nan > sum(not _has_label(batch, labels) for batch in seeds):
        return math.nan
    return float(np.mean(known)) if known else None


def _has_label(seeds: Tensor, labels: Tensor) -> bool:
    return bool((labels[seeds.cpu().long()] >= 0).any())


def check_last_rows(graph: Graph, ids: Tensor, rows: Tensor) -> str:
    """Compare about ``REREAD_ROWS`` rows of the last timed batch with the feature table.

    ``ids`` are the batch's input nodes.
    """
    if rows.shape[0] != ids.numel():
        return f"the last timed batch has {rows.shape[0]} feature rows for {ids.numel()} nodes"
    step = max(1, ids.numel() // REREAD_ROWS)
    try:
        gate.check_features(graph, ids[::step], rows[::step])
    except gate.Fault as fault:
        return f"last timed batch: {fault}"
    return ""
