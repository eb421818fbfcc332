"""Order stage: which seeds each batch of an epoch trains on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.stage import Spec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.schedule import ScheduleSpec
    from gnnbench.sampling.stage import SamplerSpec


class Order(ABC):
    """Splits an epoch's training nodes into batches of seeds.

    ``window`` batches are sampled before the first of them runs; above 1 they are reordered.
    """

    window: int = 1

    @abstractmethod
    def batches(self, epoch: int, device: torch.device | str = "cpu") -> list[Tensor]:
        """Return the seeds of every batch, int64 global ids on ``device``.

        The last batch may be short.
        """

    def arrange(self, batches: Sequence[Batch], last: Batch | None) -> list[int]:
        """Return the order in which a window's sampled batches run: a permutation of positions.

        ``last`` is the batch that runs before them, None at the start of an epoch.
        """
        return list(range(len(batches)))

    def put_aside(self, batch: Batch) -> Batch:
        """Return a sampled batch in the form in which it waits for the rest of its window."""
        return batch

    def take(self, sampled: list[Batch], index: int) -> Batch:
        """Return ``sampled[index]``, which runs next; it takes its place in the list."""
        return sampled[index]

    def stepped(self, batch: Batch) -> None:  # noqa: B027
        """Free what a training step made of the batch and nothing needs."""

    def release(self, sampled: list[Batch], index: int) -> None:  # noqa: B027
        """Free what ``sampled[index]``, which ran, no longer needs."""


@dataclass(frozen=True)
class OrderSpec(Spec):
    """An order in a recipe."""

    kind: ClassVar[str] = "order"

    @abstractmethod
    def build(self, job: Job) -> Order:
        """Build the order of a cell's epochs."""

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, schedule: ScheduleSpec
    ) -> None:
        """Raise ``UnsupportedError`` if the order cannot run with the other stages."""


@dataclass(frozen=True)
class AsDrawn(OrderSpec):
    """Training nodes in the epoch's random permutation, the same for every system."""

    name: ClassVar[str] = "as-drawn"
    summary: ClassVar[str] = "batches of the epoch's random permutation, one after the other"

    def build(self, job: Job) -> Permuted:
        """Build the order of a cell's epochs."""
        cell = job.cell
        return Permuted(job.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)


class Permuted(Order):
    """Batches of a permutation that depends on the seed and the epoch.

    ``max_batches`` keeps the first batches only; 0 keeps the whole epoch. A batch size above the
    training set gives one batch.
    """

    def __init__(self, train_idx: Tensor, batch_size: int, seed: int, max_batches: int = 0) -> None:
        self._train = {"cpu": train_idx}  # by device, each copied once
        self._batch_size = batch_size
        self._seed = seed
        self._max_batches = max_batches

    def batches(self, epoch: int, device: torch.device | str = "cpu") -> list[Tensor]:
        """Return the seeds of every batch of ``epoch``, shuffled on the device."""
        from gnnbench.kernels import rng

        shuffled = rng.permutation(
            self._train["cpu"].numel(),
            rng.key(self._seed, epoch, "batch-order"),
            device,
            self._max_batches * self._batch_size or None,
        )
        if str(device) not in self._train:
            self._train[str(device)] = self._train["cpu"].to(device)
        return list(self._train[str(device)][shuffled].split(self._batch_size))

    @property
    def epoch_batches(self) -> int:
        """Number of batches of a whole epoch, regardless of ``max_batches``."""
        return -(-self._train["cpu"].numel() // self._batch_size)
