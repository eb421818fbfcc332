"""Marks of the nodes that a cache has, made where a batch is sampled (GNNLab, section 5.2).

They are tensors in ``MiniBatch.extra``, so that they travel with the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.kernels.lookup import IdLookup

MISSED, MISSED_AT, SLOTS, SLOTS_AT = FIELDS = (
    "cache.missed", "cache.missed_at", "cache.slots", "cache.slots_at",
)  # fmt: skip


ToHost = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Marks:
    """Where the rows of a batch are.

    ``missed`` ``[m]`` ids that the cache lacks, and ``slots`` int32 ``[h]`` of the others in the
    cache; ``missed_at`` and ``slots_at``, int32, are their positions among the batch's input nodes.
    """

    missed: Tensor
    missed_at: Tensor
    slots: Tensor
    slots_at: Tensor


def split(ids: Tensor, lookup: IdLookup, to_host: ToHost | None = None) -> Marks:
    """Look ids ``[n]`` up; on a GPU the host waits once, for their numbers.

    With ``to_host``, which copies a tensor to host memory and waits, missed ids are there.
    """
    slots = lookup.find(ids)
    missed = slots < 0
    before = missed.cumsum(0)
    number = before[-1:] if ids.numel() else before.new_zeros(1)
    every = torch.arange(ids.numel(), device=ids.device)
    target = torch.where(missed, before - 1, number + every - before)  # misses first, in order
    order = torch.empty_like(every).scatter_(0, target, every)
    if to_host is None:
        m = int(number)
        missed_ids = ids[order[:m]]
    else:
        host = to_host(torch.cat([number.to(ids.dtype), ids[order]]))
        m = int(host[0])
        missed_ids = host[1 : m + 1]
    places = order.int()
    return Marks(missed_ids, places[:m], slots[order[m:]], places[m:])


def mark(batch: MiniBatch, lookup: IdLookup) -> None:
    """Mark the input nodes of a batch that the cache of ``lookup`` has."""
    marks = split(batch.input_nodes, lookup)
    batch.extra |= {
        MISSED: marks.missed, MISSED_AT: marks.missed_at,
        SLOTS: marks.slots, SLOTS_AT: marks.slots_at,
    }  # fmt: skip


def marks_of(batch: Batch) -> Marks | None:
    """Return the marks of a batch; None: it has none."""
    extra = batch.extra if isinstance(batch, MiniBatch) else {}
    return Marks(*(extra[field] for field in FIELDS)) if MISSED in extra else None
