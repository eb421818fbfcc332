"""How ranks that share a batch reduce their gradients: by one all-reduce, or by torch's DDP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gnnbench.core.counters import REDUCE_BYTES, Counts


class GradientSource(Protocol):
    """A model that computes gradients (``gnnbench.systems.runtime.trainer.ModelTrainer``)."""

    @property
    def trained(self) -> list[Tensor]:
        """Parameters that have gradients."""

    def back(self, blocks: Sequence[object], rows: Tensor, labels: Tensor) -> Tensor:
        """Run forward, mean loss and backward; returns the loss."""


class ReducingGroup(Protocol):
    """The ranks (``gnnbench.distributed.process_group.RankGroup``)."""

    device: torch.device
    counts: Counts

    def all_reduce(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """Replace a rank's gradients by the whole batch's; returns the batch's mean loss."""

    def timed_reduce(self) -> AbstractContextManager[None]:
        """Return a context that times an all-reduce."""

    def begin_reduce(self) -> Callable[[], None]:
        """Start timing an asynchronous all-reduce; call the result at its end."""


class FlatReduce:
    """Forward and backward, then one all-reduce of all gradients, the loss and the seed count."""

    def __init__(self, group: ReducingGroup) -> None:
        self._group = group

    def begin(self, labels: Callable[[], Tensor]) -> None:
        """Take what returns the labels of the next update, of all ranks, int64 ``[seeds]``."""

    def learn(
        self, trainer: GradientSource, blocks: Sequence[object], rows: Tensor, labels: Tensor
    ) -> Tensor:
        """Set the parameters' gradients to the whole batch's; returns its mean loss."""
        loss = trainer.back(blocks, rows, labels)
        return self._group.all_reduce(trainer.trained, loss, (labels >= 0).sum())

    def learn_of_nothing(self, trainer: GradientSource) -> Tensor:
        """Do the same on a rank that has no seeds of the batch."""
        zero = torch.zeros((), device=self._group.device)
        return self._group.all_reduce(trainer.trained, zero, zero)

    def losses(self, step_losses: Sequence[Tensor]) -> list[Tensor]:
        """Return the losses of an epoch's batches from those that its steps returned."""
        return list(step_losses)


class OverlappedReduce:
    """``DistributedDataParallel``: reduces each bucket of gradients during the backward pass.

    Every rank knows the seeds of the whole batch. Each divides the sum of its losses by all seeds
    that have labels, so that summed gradients are those of the mean. A step returns the rank's
    share of the loss; one all-reduce at the end of the epoch adds up the shares. ``whole``: a rank
    has a batch of its own, and a step returns that batch's mean loss.
    """

    def __init__(self, group: ReducingGroup, model: nn.Module, whole: bool = False) -> None:
        self._group, self._whole = group, whole
        self._labelled = torch.zeros((), device=group.device)
        # All ranks build the same model, and receive rank 0's weights before an epoch.
        self._model = nn.parallel.DistributedDataParallel(_SummedLoss(model), init_sync=False)
        # torch refuses annotations that are text, as this module's are.
        self._model.register_comm_hook(group, lambda state, bucket: _reduce_bucket(state, bucket))

    def begin(self, labels: Callable[[], Tensor]) -> None:
        """Count the labelled seeds of the whole update."""
        self._labelled = (labels() >= 0).sum().to(torch.float32)

    def learn(
        self, trainer: GradientSource, blocks: Sequence[object], rows: Tensor, labels: Tensor
    ) -> Tensor:
        """Set the parameters' gradients to the whole update's.

        Returns the rank's loss share, or the mean loss of its own batch.
        """
        own = (labels >= 0).sum() if self._whole else self._labelled
        return self._back(self._model(blocks, rows, labels), own)

    def learn_of_nothing(self, trainer: GradientSource) -> Tensor:
        """Do the same without seeds: 0 times every parameter gives gradients to reduce."""
        return self._back(self._model(None, None, None), self._labelled)

    def _back(self, summed: Tensor, seeds: Tensor) -> Tensor:
        (summed / self._labelled.clamp(min=1)).backward()
        return summed.detach() / seeds

    def losses(self, step_losses: Sequence[Tensor]) -> list[Tensor]:
        """Add up the shares of all ranks."""
        if not step_losses or self._whole:
            return list(step_losses)
        summed = torch.stack(list(step_losses))
        with self._group.timed_reduce():
            dist.all_reduce(summed)
        self._group.counts.add("schedule", REDUCE_BYTES, summed.nbytes, "")
        return list(summed)


class _SummedLoss(nn.Module):
    """The summed loss of a model over its seeds; without seeds, 0 times every parameter."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, blocks: Sequence[object] | None, rows: Tensor | None, labels: Tensor | None
    ) -> Tensor:
        if blocks is None or labels is None:
            trained = [p for p in self.model.parameters() if p.requires_grad]
            return torch.stack([(p * 0.0).sum() for p in trained]).sum()
        logits = self.model(blocks, rows)
        return nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")


def _reduce_bucket(group: ReducingGroup, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """Reduce a bucket of gradients over all ranks while the backward pass continues."""
    gradients = bucket.buffer()
    group.counts.add("schedule", REDUCE_BYTES, gradients.nbytes, "")
    end_timing = group.begin_reduce()
    work = dist.all_reduce(gradients, async_op=True)
    assert work is not None

    def done(future: torch.futures.Future[list[Tensor]]) -> Tensor:
        end_timing()
        return future.value()[0]

    return work.get_future().then(done)
