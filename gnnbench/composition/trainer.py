"""The model, its optimizer, and what an epoch of them leaves to be looked at."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnbench.minibatch import Batch, MiniBatch
from gnnbench.models.framework import Framework
from gnnbench.models.stack import Stack, build
from gnnbench.stages.job import Job


class Trainer:
    """Trains on the blocks of one batch at a time, in a framework; nothing here waits for a GPU."""

    def __init__(self, job: Job, framework: Framework) -> None:
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
        ).to(job.device)
        self._labels = graph.labels.to(job.device)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=cell.learning_rate)
        self.losses: list[Tensor] = []
        self._before = self._parameters()

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Forward, backward and update; the loss is kept as a tensor on the device."""
        self._optimizer.zero_grad()
        logits = self.model(self.framework.blocks(batch), rows)
        labels = self._labels[batch.seeds.long()]
        loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.detach())

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
        """The model's values on a mini-batch of ours, for the gate."""
        with torch.no_grad():
            blocks = self.framework.blocks(batch.to(self._device))
            out: Tensor = self.model(blocks, x.to(self._device))
        return out

    def gradient(self, batch: MiniBatch, x: Tensor) -> Tensor:
        """Gradient of half the sum of the squared values with regard to ``x``, for the gate."""
        rows = x.to(self._device, copy=True).requires_grad_()
        values = self.model(self.framework.blocks(batch.to(self._device)), rows)
        found: Tensor = torch.autograd.grad(values.square().sum().div(2), rows)[0]
        return found
