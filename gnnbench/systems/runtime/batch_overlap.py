"""Overlap of an epoch's batches, a fact of graph and sampler; not timed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from gnnbench.core import counters
from gnnbench.core.minibatch import Batch
from gnnbench.kernels.match import match_degrees, overlaps, pairs
from gnnbench.pipelines.schedule import Stages

BATCHES = 64  # of an epoch: 2,016 pairs
Fact = tuple[str, str, float]


def overlap_facts(stages: Stages, batches: Sequence[Tensor], epoch: int) -> list[Fact]:
    """Return (stage, measure, value) of facts about the first batches of ``epoch``.

    Match degrees of all pairs (FastGL, Table 4), and of consecutive batches in sampled and executed
    order. No facts of a single batch.
    """
    drawn = [
        stages.sampler.sample(seeds, epoch, number)
        for number, seeds in enumerate(batches[:BATCHES])
    ]
    if len(drawn) < 2:
        return []
    degrees = match_degrees(overlaps([batch.input_nodes for batch in drawn]))
    run: list[Batch] = []
    for first in range(0, len(drawn), stages.window):
        run += stages.reorder(drawn[first : first + stages.window], run[-1] if run else None)
    place = {id(batch): nth for nth, batch in enumerate(drawn)}
    every = pairs(degrees)
    quarters = torch.quantile(every, torch.tensor([0.25, 0.5, 0.75], dtype=every.dtype)).tolist()
    facts = {
        counters.MATCH_DEGREE: float(every.mean()),
        counters.MATCH_LEAST: float(every.min()),
        counters.MATCH_LOWER: quarters[0],
        counters.MATCH_MEDIAN: quarters[1],
        counters.MATCH_UPPER: quarters[2],
        counters.MATCH_MOST: float(every.max()),
        counters.MATCH_DRAWN: _neighbours(degrees, list(range(len(drawn)))),
        counters.MATCH_RUN: _neighbours(degrees, [place[id(batch)] for batch in run]),
    }
    return [("order", measure.name, value) for measure, value in facts.items()]


def _neighbours(degrees: Tensor, order: list[int]) -> float:
    """Mean match degree of a batch and the one before it."""
    return float(torch.stack([degrees[one, other] for one, other in pairwise(order)]).mean())
