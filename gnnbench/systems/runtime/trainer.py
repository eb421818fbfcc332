"""The model, its optimizer, and what an epoch of them leaves to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gnnbench.core.counters import Measure
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.kernels.to_device import to_device
from gnnbench.models.adam import Adam
from gnnbench.models.framework import Framework
from gnnbench.models.stack import Stack, build

if TYPE_CHECKING:
    from gnnbench.distributed.process_group import RankGroup


ROUNDING = 2.0**-23  # relative distance of neighbouring float32 numbers, at most


class Trainer:
    """Trains on the blocks of one batch at a time, in a framework; nothing here waits for a GPU.

    ``capturable``: a CUDA graph may hold what ``learn`` does. ``group``: ranks that train on
    a batch together, while they do: gradients and losses are then those of the whole batch.
    """

    group: RankGroup | None = None

    def __init__(self, job: Job, framework: Framework, capturable: bool = False) -> None:
        cell, graph = job.cell, job.graph
        self.framework, self._device = framework, job.device
        if job.device.type == "cuda":  # the gate's tolerance is one of float32
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        self.model: Stack = build(
            cell.model,
            framework,
            graph.feature_dim,
            cell.hidden,
            graph.num_classes,
            len(cell.fanouts),
            cell.seed,
        )
        if cell.jitter:
            self.jitter(cell.jitter)
        self.model = self.model.to(job.device)
        self._labels = to_device(graph.labels, job.device)
        self._optimizer = Adam(
            self.model.parameters(), lr=cell.learning_rate, capturable=capturable
        )
        self.losses: list[Tensor] = []
        self._before = self._parameters()

    def prepare(self, batches: Iterable[Batch]) -> dict[Measure, float]:
        """Nothing: batches of any shape are trained on as they come."""
        return {}

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Forward, backward and update; the loss is kept as a tensor on the device."""
        blocks = self.framework.blocks(batch)
        self.losses.append(self.learn(blocks, rows, self.labels_of(batch)))

    def labels_of(self, batch: Batch) -> Tensor:
        """Class of each seed, int64 ``[seeds]``; -1 where there is none, which no loss counts."""
        return self.labels_at(batch.seeds)

    def labels_at(self, seeds: Tensor) -> Tensor:
        """The same of nodes ``[seeds]``."""
        return self._labels[seeds.long()]

    def learn(self, blocks: Sequence[Any], rows: Tensor, labels: Tensor) -> Tensor:
        """Forward, loss, backward and update on blocks of the framework's form; the loss, a scalar
        on the device."""
        self._optimizer.zero_grad()
        learn = self.back if self.group is None else partial(self.group.gradients.learn, self)
        found = learn(blocks, rows, labels)
        self._optimizer.step()
        return found

    def back(self, blocks: Sequence[Any], rows: Tensor, labels: Tensor) -> Tensor:
        """Forward, loss and backward; the loss."""
        logits = self.model(blocks, rows)
        loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
        loss.backward()
        return loss.detach()

    def learn_in_one(self, batches: Iterable[tuple[Batch, Tensor]]) -> list[float]:
        """One update by several batches and their rows, each labelled seed alike: by itself what
        ``group`` does at once. Returns their losses."""
        self._optimizer.zero_grad()
        losses, labelled = [], 0
        sums = [torch.zeros_like(p) for p in self.trained]
        for batch, rows in batches:
            labels = self.labels_of(batch)
            losses.append(float(self.back(self.framework.blocks(batch), rows, labels)))
            number = int((labels >= 0).sum())
            for total, own in zip(sums, self.trained, strict=True):
                if number and own.grad is not None:
                    total += own.grad * number
            labelled += number
            self._optimizer.zero_grad()
        for total, own in zip(sums, self.trained, strict=True):
            own.grad = total / max(labelled, 1)
        self._optimizer.step()
        return losses

    def step_of_nothing(self) -> Tensor:
        """The update of a batch of which this rank of the group has no seeds; its mean loss."""
        assert self.group is not None
        self._optimizer.zero_grad()
        found = self.group.gradients.learn_of_nothing(self)
        self._optimizer.step()
        return found

    @property
    def trained(self) -> list[Tensor]:
        """Parameters that have gradients."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def direction(self) -> Tensor:
        """What updates go by: the running means of all parameters' gradients, float32 ``[n]``."""
        return self._optimizer.means

    def state(self) -> list[Tensor]:
        """All that training changes, as it lies in memory."""
        return [*self.model.state_dict().values(), *self._optimizer.state, *self._before]

    def stamp(self) -> tuple[int, ...]:
        """Numbers that change with whatever writes to the model or to the optimizer's state, as a
        step does and ``restore``; of this object alone."""
        return tuple(
            t._version for t in [*self.model.state_dict().values(), *self._optimizer.state]
        )

    def kept(self) -> list[Tensor]:
        """A copy of all that training changes, for ``restore``."""
        return [t.detach().clone() for t in self.state()]

    @torch.no_grad()
    def restore(self, kept: Sequence[Tensor]) -> None:
        """Be as when ``kept`` was taken, in the same memory."""
        for own, before in zip(self.state(), kept, strict=True):
            own.copy_(before)

    @torch.no_grad()
    def jitter(self, seed: int) -> None:
        """Change each parameter by a normal relative error of one float32 rounding step.

        Trainings from such weights show how far rounding alone leads a training apart.
        """
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.mul_((1 + ROUNDING * noise).to(parameter.device))

    def held_bytes(self) -> dict[str, int]:
        """Bytes on the device: labels copied there, and the model with gradients and optimizer."""
        model = [*self.state(), *(p.grad for p in self.model.parameters() if p.grad is not None)]
        copied = self._labels.is_cuda  # on a CPU they are the graph's
        return {
            "labels": self._labels.nbytes if copied else 0,
            "model": sum(t.nbytes for t in model if t.device == self._labels.device),
        }

    def _parameters(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]

    def take_losses(self) -> list[float]:
        """Losses of the batches since the last call."""
        losses: list[float] = torch.stack(self.losses).tolist() if self.losses else []
        self.losses = []
        return losses

    def moved(self) -> list[float]:
        """How far each layer's parameters have moved since the last call, in the Frobenius norm.

        By layer, for frameworks have their parameters in orders of their own.
        """
        before, self._before = self._before, self._parameters()
        steps = [(now - old).norm() for old, now in zip(before, self._before, strict=True)]
        left = iter(steps)
        layers = [[next(left) for _ in layer.parameters()] for layer in self.model.layers]
        found: list[float] = torch.stack([torch.stack(one).norm() for one in layers]).tolist()
        return found

    def norm(self) -> float:
        """Frobenius norm of all parameters, as they were at the last ``moved``."""
        return float(torch.stack([p.norm() for p in self._before]).norm())

    def forward(self, batch: MiniBatch, x: Tensor) -> Tensor:
        """The model's values on a mini-batch of ours, for the gate and the evaluator."""
        with torch.no_grad():
            blocks = self.framework.blocks(batch.to(self._device))
            out: Tensor = self.model(blocks, x.to(self._device))
        return out

    def gradients(
        self, batch: MiniBatch, x: Tensor, back: Tensor
    ) -> tuple[Tensor | None, list[tuple[Tensor, Tensor | None]]]:
        """Gradients of ``(values * back).sum()``, for the gate; None where there is no way back.

        With regard to ``x``, and to each parameter, which stands beside its own. Those of the
        parameters are of rows without gradient, as in training: layers may go about them otherwise.
        """
        parameters = list(self.model.parameters())
        rows = x.to(self._device, copy=True)
        trained = self._gradients(batch, rows, back, [p for p in parameters if p.requires_grad])
        rows = x.to(self._device, copy=True).requires_grad_()
        (of_rows,) = self._gradients(batch, rows, back, [rows]).values()
        return of_rows, [(p.detach(), trained.get(id(p))) for p in parameters]

    def _gradients(
        self, batch: MiniBatch, rows: Tensor, back: Tensor, wanted: Sequence[Tensor]
    ) -> dict[int, Tensor | None]:
        """With regard to what is wanted, by its identity."""
        values = self.model(self.framework.blocks(batch.to(self._device)), rows)
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if values.requires_grad and wanted:
            score = (values * back.to(self._device)).sum()
            found = torch.autograd.grad(score, wanted, allow_unused=True)
        return {id(p): g for p, g in zip(wanted, found, strict=True)}
