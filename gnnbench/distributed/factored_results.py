"""Results that ranks with whole batches report for an epoch, and their merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gnnbench.distributed.merge import MergedEpoch, first_fault

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.minibatch import Sizes


@dataclass(frozen=True)
class TrainedBatch:
    """A batch that a rank trained on; each edge and each node counts once."""

    number: int
    seeds: int
    edges: int
    nodes: int
    loss: float | None = None


@dataclass(frozen=True)
class TrainedEpoch:
    """What a rank trained on in an epoch.

    ``weights`` is a digest, "" if the rank was not in the last step. ``seen`` has the digest of
    each batch's edges, if they were checked.
    """

    batches: list[TrainedBatch]
    reason: str
    weights: str
    seen: list[bytes] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        trained: Sequence[tuple[int, Sizes, Tensor | None]],
        reason: str,
        weights: str,
        seen: Sequence[bytes],
    ) -> TrainedEpoch:
        """Build it from number, sizes and loss of each batch."""
        batches = []
        for number, sizes, loss in trained:
            value = None if loss is None else float(loss)
            seeds, edges, nodes = sizes.seeds.numel(), sizes.num_edges, sizes.num_nodes
            batches.append(TrainedBatch(number, seeds, edges, nodes, value))
        return cls(batches, reason, weights, list(seen))


def merge_trained(ranks: Sequence[TrainedEpoch], batches: int) -> MergedEpoch:
    """Merge the ranks' reports of an epoch of ``batches``; each must be trained on exactly once."""
    reason = first_fault([rank.reason for rank in ranks])
    times = Counter(one.number for rank in ranks for one in rank.batches)
    for number in range(batches):
        if times[number] != 1 and not reason:
            reason = f"batch {number + 1} was trained on {times[number]} times in the epoch"
    if other := sorted(set(times) - set(range(batches))):
        reason = reason or f"batch {other[0] + 1} is none of the epoch's {batches}"
    if len({r.weights for r in ranks if r.weights}) > 1:
        reason = reason or "the ranks ended the epoch with different weights"
    trained = [one for rank in ranks for one in rank.batches]
    in_order = sorted(trained, key=lambda one: one.number)
    losses = [one.loss for one in in_order if one.loss is not None]
    return MergedEpoch(
        len(trained),
        sum(one.seeds for one in trained),
        sum(one.edges for one in trained),
        sum(one.nodes for one in trained),
        0, 0, reason,
        seen=[digest for rank in ranks for digest in rank.seen],
        losses=losses or None,
    )  # fmt: skip
