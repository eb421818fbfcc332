"""Batch order: which seeds each batch of an epoch trains on."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gnnbench import rng


class Order(Protocol):
    """Splits an epoch's training nodes into batches of seeds."""

    def batches(self, epoch: int, device: torch.device | str = "cpu") -> list[Tensor]:
        """Seeds of every batch, int64 global ids on ``device``, the last batch possibly short."""
        ...


class AsDrawn:
    """Training nodes in the epoch's random permutation, the same for every system.

    ``max_batches`` keeps the first batches only; 0 keeps the whole epoch. A batch size above the
    training set gives one batch.
    """

    def __init__(self, train_idx: Tensor, batch_size: int, seed: int, max_batches: int = 0) -> None:
        self._train = {"cpu": train_idx}  # by device, each copied once
        self._batch_size = batch_size
        self._seed = seed
        self._max_batches = max_batches

    def batches(self, epoch: int, device: torch.device | str = "cpu") -> list[Tensor]:
        """Seeds of every batch of ``epoch``, shuffled on the device."""
        shuffled = rng.permutation(
            self._train["cpu"].numel(), rng.key(self._seed, epoch, "batch-order"), device
        )
        if self._max_batches:
            shuffled = shuffled[: self._max_batches * self._batch_size]
        if str(device) not in self._train:
            self._train[str(device)] = self._train["cpu"].to(device)
        return list(self._train[str(device)][shuffled].split(self._batch_size))

    @property
    def epoch_batches(self) -> int:
        """Number of batches of a whole epoch, whatever ``max_batches`` is."""
        return -(-self._train["cpu"].numel() // self._batch_size)
