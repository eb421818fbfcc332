"""Messages between the ranks of ``schedule=factored`` and the scheduler, a thread of rank 0."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.core.minibatch import MiniBatch
from gnnbench.distributed.bounded_queue import SlotMemory
from gnnbench.pipelines.batch_buffer import TensorSlice


@dataclass(frozen=True)
class NextBatch:
    """Request a batch to sample. The answer is its ``BatchNumber``."""


@dataclass(frozen=True)
class BatchNumber:
    """The batch to sample next; None: all batches are given out."""

    number: int | None


@dataclass(frozen=True)
class RequestSlot:
    """Request the slot of ``batch``, which takes ``size`` bytes. The answer is a ``SlotMemory``."""

    batch: int
    size: int


@dataclass(frozen=True)
class BatchWritten:
    """``batch`` is in its slot; in ``slices`` a ``TensorSlice`` takes the place of each tensor."""

    batch: int
    slices: MiniBatch[TensorSlice]
    size: int


@dataclass(frozen=True)
class NextShare:
    """Request a share of a training step. The answer is a ``StepShare`` or an ``EpochDone``."""


@dataclass(frozen=True)
class SlotReleased:
    """``batch`` was copied out of its slot."""

    batch: int


@dataclass(frozen=True)
class BatchTrained:
    """The rank has made the update of its oldest batch, where updates are asynchronous."""


@dataclass(frozen=True)
class RankFailed:
    """The rank has failed."""


@dataclass(frozen=True)
class StepShare:
    """A rank's share of step ``step``: a batch, or none if ``batch`` is None.

    The first ``members`` ranks take part. ``joins``: one of them did not in the step before. Where
    updates are asynchronous only the rank itself takes part, with the shared ``weights``.
    """

    step: int
    members: int
    joins: bool
    batch: int | None
    written: BatchWritten | None
    memory: SlotMemory | None
    weights: SlotMemory | None = None


@dataclass(frozen=True)
class EpochDone:
    """All shares of the epoch's ``steps`` are given out; ``weights`` as in ``StepShare``."""

    steps: int
    weights: SlotMemory | None = None


@dataclass(frozen=True)
class EpochFailed:
    """The epoch cannot be finished."""

    reason: str
