"""The model with its optimizer, and the loss and parameter changes that the audit reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnbench.core.counters import Metric
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.core.precision import TF32, UNIT_ROUNDOFF
from gnnbench.kernels import rng
from gnnbench.kernels.dropout import Masks
from gnnbench.kernels.library import load_native
from gnnbench.kernels.to_device import to_device
from gnnbench.models.adam import Adam
from gnnbench.models.framework import Framework
from gnnbench.models.stack import Stack, build
from gnnbench.systems.runtime.parameter_movement import ParameterMovement

if TYPE_CHECKING:
    from gnnbench.distributed.process_group import RankGroup


class ModelTrainer:
    """Trains a model on one batch at a time with the layers of a framework.

    No method that training calls waits for the GPU. ``capturable``: the optimizer can be part of a
    CUDA graph. ``group``: the ranks that share each batch, during a shared epoch; gradients and
    losses are then those of the whole batch.
    """

    group: RankGroup | None = None
    epoch: int = 0  # whose batches are trained on: masks of dropout depend on it

    def __init__(self, job: Job, framework: Framework, capturable: bool = False) -> None:
        cell, graph = job.cell, job.graph
        self._cell = cell
        if cell.dropout:
            load_native()  # a worker's torch may be too old for it
        self.framework, self.device = framework, job.device
        if job.device.type == "cuda":  # the gate's error bounds assume the cell's precision
            torch.backends.cuda.matmul.allow_tf32 = cell.precision == TF32
            torch.backends.cudnn.allow_tf32 = cell.precision == TF32
        self.model: Stack = build(
            cell.model,
            framework,
            graph.feature_dim,
            cell.hidden,
            graph.num_classes,
            len(cell.fanouts),
            cell.seed,
            cell.precision,
        )
        if cell.jitter:
            self.jitter(cell.jitter)
        self._initial = [p.detach().clone() for p in self.model.parameters()]  # on the host
        self.model = self.model.to(job.device)
        self._labels = to_device(graph.labels, job.device)
        self._optimizer = Adam(
            self.model.parameters(), lr=cell.learning_rate, capturable=capturable
        )
        self.losses: list[Tensor] = []
        self._movement = ParameterMovement(self.model)

    def prepare(self, batches: Iterable[Batch]) -> dict[Metric, float]:
        """Do nothing: an eager step takes batches of any shape."""
        return {}

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Run forward, backward and update; the loss stays a tensor on the device."""
        blocks, labels = self.framework.blocks(batch), self.labels_of(batch)
        self.losses.append(self.learn(blocks, rows, labels, self.masks_of(batch)))

    def masks_of(self, batch: Batch) -> Masks | None:
        """Return the dropout masks of a batch of this epoch; None without dropout.

        They depend on seed, epoch, batch, layer, vertex and column alone, so equal batches have
        equal masks in every system and on every rank.
        """
        p = self._cell.dropout
        if not p:
            return None
        nodes = batch.input_nodes.to(self.device, non_blocking=True)
        key = rng.key(self._cell.seed, self.epoch, "dropout")
        return Masks(nodes, p, key, batch.number)

    def labels_of(self, batch: Batch) -> Tensor:
        """Return the class of each seed, int64 ``[seeds]``; the loss ignores -1 (no label)."""
        return self.labels_at(batch.seeds)

    def labels_at(self, seeds: Tensor) -> Tensor:
        """Return the class of each of these nodes, int64 ``[seeds]``; -1 where it has none."""
        return self._labels[seeds.long()]

    def learn(
        self,
        blocks: Sequence[object],
        rows: Tensor,
        labels: Tensor,
        masks: Masks | None = None,
    ) -> Tensor:
        """Run forward, loss, backward and update on blocks in the framework's form.

        Returns the loss, a scalar on the device.
        """
        self._optimizer.zero_grad()
        backward = self.back if self.group is None else partial(self.group.gradients.learn, self)
        with self._masked(masks):
            loss = backward(blocks, rows, labels)
        self._optimizer.step()
        return loss

    @contextmanager
    def _masked(self, masks: Masks | None) -> Iterator[None]:
        self.model.masks = masks
        try:
            yield
        finally:
            self.model.masks = None

    def back(self, blocks: Sequence[object], rows: Tensor, labels: Tensor) -> Tensor:
        """Run forward and backward; returns the mean loss of the labelled seeds."""
        logits = self.model(blocks, rows)
        loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
        loss.backward()
        return loss.detach()

    def learn_in_one(self, batches: Iterable[tuple[Batch, Tensor]]) -> list[float]:
        """Make one update from several batches and their rows, each labelled seed weighted alike.

        Computes in one process what the ranks of ``group`` compute together. Returns the losses.
        """
        self._optimizer.zero_grad()
        losses, num_labelled = [], 0
        sums = [torch.zeros_like(p) for p in self.trained]
        for batch, rows in batches:
            labels = self.labels_of(batch)
            with self._masked(self.masks_of(batch)):
                losses.append(float(self.back(self.framework.blocks(batch), rows, labels)))
            count = int((labels >= 0).sum())
            for total, parameter in zip(sums, self.trained, strict=True):
                if count and parameter.grad is not None:
                    total += parameter.grad * count
            num_labelled += count
            self._optimizer.zero_grad()
        for total, parameter in zip(sums, self.trained, strict=True):
            parameter.grad = total / max(num_labelled, 1)
        self._optimizer.step()
        return losses

    def step_of_nothing(self) -> Tensor:
        """Take part in the update of a batch of which this rank has no seeds.

        Returns the batch's mean loss.
        """
        assert self.group is not None
        self._optimizer.zero_grad()
        loss = self.group.gradients.learn_of_nothing(self)
        self._optimizer.step()
        return loss

    @property
    def trained(self) -> list[Tensor]:
        """Parameters that have gradients."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def mean_gradients(self) -> Tensor:
        """Return Adam's running means of all parameters' gradients, float32 ``[n]``."""
        return self._optimizer.means

    def state(self) -> list[Tensor]:
        """Return all tensors that training changes, without a copy."""
        return [*self._model_state(), *self._optimizer.state, *self._movement.before]

    def stamp(self) -> tuple[int, ...]:
        """Return version numbers that change with every write to the model or the optimizer.

        Comparable only with those of the same object.
        """
        return tuple(t._version for t in [*self._model_state(), *self._optimizer.state])

    def _model_state(self) -> list[Tensor]:
        return list(self.model.state_dict().values())

    def kept(self) -> list[Tensor]:
        """Return a copy of all that training changes, for ``restore``."""
        return [t.detach().clone() for t in self.state()]

    @torch.no_grad()
    def restore(self, kept: Sequence[Tensor]) -> None:
        """Write the state that ``kept`` returned back to the same memory."""
        for tensor, saved in zip(self.state(), kept, strict=True):
            tensor.copy_(saved)

    @contextmanager
    def initial_weights(self) -> Iterator[None]:
        """Give the model the weights that it began with, and afterwards its own again."""
        saved = self.kept()
        with torch.no_grad():
            for parameter, initial in zip(self.model.parameters(), self._initial, strict=True):
                parameter.copy_(initial)
        try:
            yield
        finally:
            self.restore(saved)

    @torch.no_grad()
    def jitter(self, seed: int) -> None:
        """Multiply each parameter by 1 + a normal error of one rounding step of the precision.

        Runs from such weights show how far rounding alone drives a training apart.
        """
        generator = torch.Generator().manual_seed(seed)
        step = 2 * UNIT_ROUNDOFF[self._cell.precision]  # the distance of neighbouring numbers
        for parameter in self.model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.mul_((1 + step * noise).to(parameter.device))

    def memory_bytes(self) -> dict[str, int]:
        """Return bytes on the device: copied labels, and the model with gradients and optimizer."""
        tensors = [*self.state(), *(p.grad for p in self.model.parameters() if p.grad is not None)]
        return {
            "labels": self._labels.nbytes if self._labels.is_cuda else 0,  # else the graph's own
            "model": sum(t.nbytes for t in tensors if t.device == self._labels.device),
        }

    def take_losses(self) -> list[float]:
        """Return the losses of the batches since the last call."""
        losses: list[float] = torch.stack(self.losses).tolist() if self.losses else []
        self.losses = []
        return losses

    def take_movement(self) -> list[float]:
        """Return how far each layer's parameters moved since the last call, in Frobenius norm."""
        return self._movement.take()

    def norm(self) -> float:
        """Return the Frobenius norm of all parameters at the last ``take_movement``."""
        return self._movement.norm()

    def values(self, batch: Batch, rows: Tensor) -> Tensor:
        """Return the logits of a batch, computed as in a training step but without dropout."""
        logits: Tensor = self.model(self.framework.blocks(batch), rows)
        return logits.detach()

    def forward(self, batch: MiniBatch, x: Tensor) -> Tensor:
        """Return the logits of a mini-batch with input rows ``x``, for gate and evaluator."""
        with torch.no_grad():
            blocks = self.framework.blocks(batch.to(self.device))
            logits: Tensor = self.model(blocks, x.to(self.device))
        return logits
