"""What was timed, looked at again: seeds and edges of every batch, rows of the last one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, Sizes
from gnnbench.datasets.graph import Graph
from gnnbench.validation import gate
from gnnbench.validation.law import Law

REREAD_ROWS = 1024  # enough to find a stale buffer, too few to count in memory


def misordered(batches: Sequence[Tensor], train: Tensor) -> str:
    """What is wrong with an epoch's order, or nothing: each seed is a training node, and once.

    ``train`` is sorted.
    """
    if not batches:
        return ""
    seeds = torch.cat(list(batches)).sort().values.cpu()
    if bool((seeds[1:] == seeds[:-1]).any()):
        return "the batch order holds a training node twice in an epoch"
    at = torch.searchsorted(train, seeds).clamp_(max=train.numel() - 1)
    if not torch.equal(train[at], seeds):
        return "the batch order holds a node that is none of the training set"
    return ""


def as_drawn(run: Sequence[tuple[int, Sizes]], window: int) -> tuple[list[Sizes], str]:
    """The timed batches in the order in which they were drawn, and what is wrong with the other.

    ``run`` has them as they were run, each with the number that it gives itself. An order without a
    window has them in place already; another may move them within its windows. Who lies about a
    number is found when the seeds are held against the epoch's.
    """
    if window == 1:
        return [sizes for _, sizes in run], ""
    numbers = [number for number, _ in run]
    kept = [sizes for _, sizes in sorted(run, key=lambda one: one[0])]
    if sorted(numbers) != list(range(len(run))):
        return kept, "the order left out batches, or ran some of them twice"
    for place, number in enumerate(numbers):
        if place // window != number // window:
            return kept, (
                f"batch {number + 1} was run as the epoch's {place + 1}., outside its window of"
                f" {window}"
            )
    return kept, ""


def recount(
    batches: Sequence[Sizes], seeds: Sequence[Tensor], law: Law, fanouts: Sequence[int]
) -> str:
    """What is wrong with the timed batches' seeds or edge counts, or nothing.

    Counted where the batches are: on a GPU thousands of hops would be long on their way.
    """
    if len(batches) != len(seeds):
        return f"{len(batches)} batches were run where the epoch has {len(seeds)}"
    for nth, (right, batch) in enumerate(zip(seeds, batches, strict=True)):
        hops = batch.hops
        drawn_for = (hops[0][0] if hops else batch.seeds).long()
        if not torch.equal(drawn_for.sort().values, right.long().sort().values):
            return (
                f"timed batch {nth + 1} was drawn for other seeds than its own:"
                f" {drawn_for.numel()} where it has {right.numel()}"
            )
        for number, ((dst, drawn), fanout) in enumerate(zip(hops, fanouts, strict=True)):
            fault = law.count_fault(dst.long(), drawn, fanout)
            if fault is not None:
                return f"timed batch {nth + 1}, hop {number + 1}: {fault}"
    return ""


def mean_loss(losses: Sequence[float], seeds: Sequence[Tensor], labels: Tensor) -> float | None:
    """The mean over an epoch's batches of their losses.

    ``seeds`` are all batches', ``labels`` those of all nodes, on the host.

    A batch without a labelled seed has a loss of NaN, which is left out. None where no batch has a
    labelled seed. Any other NaN makes the mean NaN.
    """
    known = [loss for loss in losses if not math.isnan(loss)]
    lost = len(losses) - len(known)
    if lost > sum(not _labelled(some, labels) for some in seeds):
        return math.nan
    return float(np.mean(known)) if known else None


def _labelled(seeds: Tensor, labels: Tensor) -> bool:
    return bool((labels[seeds.cpu().long()] >= 0).any())


def reread(graph: Graph, batch: Batch, rows: Tensor) -> str:
    """What is wrong with the rows that the last timed batch was served, or nothing."""
    ids = batch.input_nodes
    if rows.shape[0] != ids.numel():
        return f"the last timed batch has {rows.shape[0]} feature rows for {ids.numel()} nodes"
    step = max(1, ids.numel() // REREAD_ROWS)
    try:
        gate.check_features(graph, ids[::step], rows[::step])
    except gate.Fault as fault:
        return f"last timed batch: {fault}"
    return ""
