"""How ranks that share a batch add up their gradients: by one all-reduce, or by torch's DDP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gnnbench.core.counters import REDUCE_BYTES, Counts


class Trainer(Protocol):
    """What has gradients (``gnnbench.systems.runtime.trainer``)."""

    @property
    def trained(self) -> list[Tensor]:
        """Parameters that have gradients."""

    def back(self, blocks: Sequence[Any], rows: Tensor, labels: Tensor) -> Tensor:
        """Forward, mean loss and backward; the loss."""


class Group(Protocol):
    """The ranks (``gnnbench.distributed.ranks``)."""

    device: torch.device
    counts: Counts

    def average(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """Put the whole batch's gradients in place of a rank's; its mean loss."""

    def reducing(self) -> AbstractContextManager[None]:
        """Around an all-reduce."""

    def began_to_reduce(self) -> Callable[[], None]:
        """The same of one that goes on; what is returned is called at its end."""


class Flat:
    """Forward and backward, then one all-reduce of all gradients, the loss and the number of seeds
    (``Group.average``)."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def begin(self, labels: Tensor) -> None:
        """Hear the labels of the whole batch that is trained on next, int64 ``[seeds]``."""

    def learn(
        self, trainer: Trainer, blocks: Sequence[Any], rows: Tensor, labels: Tensor
    ) -> Tensor:
        """Put the whole batch's gradients into the parameters; its loss."""
        loss = trainer.back(blocks, rows, labels)
        return self._group.average(trainer.trained, loss, (labels >= 0).sum())

    def learn_of_nothing(self, trainer: Trainer) -> Tensor:
        """The same by a rank that has no seeds of the batch."""
        zero = torch.zeros((), device=self._group.device)
        return self._group.average(trainer.trained, zero, zero)

    def losses(self, told: Sequence[Tensor]) -> list[Tensor]:
        """Losses of an epoch's batches, of what the steps returned."""
        return list(told)


class Overlapped:
    """``DistributedDataParallel`` around the model: gradients of the last layers are added up while
    those of the first are computed, as soon as a bucket of them is full.

    Every rank knows the whole batch's seeds, so that each divides the sum of its losses by all that
    have labels: gradients then add up to those of the mean. What a step returns is the rank's share
    of the loss; an epoch's are added up at its end, by one all-reduce.
    """

    def __init__(self, group: Group, model: nn.Module) -> None:
        self._group = group
        self._labelled = torch.zeros((), device=group.device)
        # All ranks build the same model, and are given rank 0's weights before an epoch.
        self._model = nn.parallel.DistributedDataParallel(_Summed(model), init_sync=False)
        # torch refuses annotations that are text, as this module's are.
        self._model.register_comm_hook(group, lambda state, bucket: _added_up(state, bucket))

    def begin(self, labels: Tensor) -> None:
        """Hear the labels of the whole batch."""
        self._labelled = (labels >= 0).sum().to(torch.float32)

    def learn(
        self, trainer: Trainer, blocks: Sequence[Any], rows: Tensor, labels: Tensor
    ) -> Tensor:
        """The same; the rank's share of the loss."""
        return self._back(self._model(blocks, rows, labels))

    def learn_of_nothing(self, trainer: Trainer) -> Tensor:
        """A sum of all parameters, each 0 times, has gradients that others can be added to."""
        return self._back(self._model(None, None, None))

    def _back(self, summed: Tensor) -> Tensor:
        (summed / self._labelled.clamp(min=1)).backward()
        return summed.detach() / self._labelled

    def losses(self, told: Sequence[Tensor]) -> list[Tensor]:
        """Shares added up over all ranks."""
        if not told:
            return []
        whole = torch.stack(list(told))
        with self._group.reducing():
            dist.all_reduce(whole)
        self._group.counts.add("schedule", REDUCE_BYTES, whole.nbytes, "")
        return list(whole)


class _Summed(nn.Module):
    """The summed loss of seeds by a model; of nothing, 0 by every parameter that is trained."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, blocks: Sequence[Any] | None, rows: Tensor | None, labels: Tensor | None
    ) -> Tensor:
        if blocks is None or labels is None:
            trained = [p for p in self.model.parameters() if p.requires_grad]
            return torch.stack([(p * 0.0).sum() for p in trained]).sum()
        logits = self.model(blocks, rows)
        found: Tensor = nn.functional.cross_entropy(
            logits, labels, ignore_index=-1, reduction="sum"
        )
        return found


def _added_up(group: Group, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """Add up a bucket of gradients over all ranks, beside what is computed meanwhile."""
    gradients = bucket.buffer()
    group.counts.add("schedule", REDUCE_BYTES, gradients.nbytes, "")
    over = group.began_to_reduce()
    work = dist.all_reduce(gradients, async_op=True)
    assert work is not None

    def done(future: torch.futures.Future[list[Tensor]]) -> Tensor:
        over()
        return future.value()[0]

    return work.get_future().then(done)
