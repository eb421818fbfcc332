"""Data-parallel training, each rank on its own part's training nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnbench.distributed.partition.ranks import Rank
from gnnbench.kernels import rng
from gnnbench.kernels.aggregate import aggregate
from gnnbench.kernels.attention import attend
from gnnbench.models.adam import Adam
from gnnbench.models.native import Native
from gnnbench.models.stack import Stack, build
from gnnbench.sampling.arguments import whole


class Trainer:
    """Trains a model; one all-reduce a step averages gradients over all ranks' seeds.

    FastSample (section 4) trains GraphSAGE, hidden 256, batch 1000 a rank, learning rate 0.006:
    the defaults. ``seed`` initialises the weights, equal on every rank. All ranks construct and
    call it together. Raises ``UsageError`` if an argument is wrong or differs among ranks.
    """

    def __init__(
        self,
        rank: Rank,
        *,
        model: str = "graphsage",
        hidden: int = 256,
        batch_size: int = 1000,
        learning_rate: float = 0.006,
        seed: int = 0,
    ) -> None:
        graph = rank.graph
        self._rank, self._seed = rank, seed
        self._batch_size = whole("batch_size", batch_size, 1)
        settings = {
            "model": model, "hidden": hidden, "batch_size": batch_size,
            "learning_rate": learning_rate, "seed": seed,
        }  # fmt: skip
        rank.exchange.agree(rank.device, settings)
        self.model: Stack = build(
            model,
            Native(aggregate, attend),
            graph.feature_dim,
            hidden,
            graph.num_classes,
            rank.layers,
            seed,
        ).to(rank.device)
        self._optimizer = Adam(self.model.parameters(), lr=learning_rate)
        self._training = rank.training_nodes(rank.rank)
        most = max(rank.training_nodes(r).numel() for r in range(rank.exchange.ranks))
        # Equal on every rank: one whose seeds are used up takes part without seeds.
        self.steps = -(-most // self._batch_size)

    def epoch(self, number: int) -> list[float]:
        """Train an epoch; returns each step's loss, the mean over the seeds of all ranks.

        Each of the rank's training nodes is in one batch; the last batch may be smaller. On every
        rank a batch has the number of its step, so a step samples as one batch would.
        """
        losses = []
        for step, seeds in enumerate(self.batches(number)):
            batch = self._rank.sampler.sample(seeds, epoch=number, batch=step)
            rows = self._rank.features.rows(batch.input_nodes)
            loss, count = self._gradients(seeds, batch.blocks, rows)
            losses.append(self._update(loss, count))
        return torch.stack(losses).tolist() if losses else []

    def batches(self, epoch: int) -> list[Tensor]:
        """Return the seeds of each of ``steps`` steps, original ids int64 ``[<= batch_size]``."""
        own, size = self._training, self._batch_size
        key = rng.key(self._seed, epoch, f"order of part {self._rank.rank}")
        order = own[rng.permutation(own.numel(), key)]
        return [order[size * step : size * (step + 1)] for step in range(self.steps)]

    def _gradients(self, seeds: Tensor, blocks: list, rows: Tensor) -> tuple[Tensor, int]:
        """Compute gradients of the summed loss; returns it and the number of labelled seeds."""
        self._optimizer.zero_grad()
        labels = self._rank.graph.labels[seeds]
        count = int((labels >= 0).sum())
        if count == 0:
            return torch.zeros((), device=self._rank.device), 0
        logits = self.model(blocks, rows)
        loss = nn.functional.cross_entropy(
            logits, labels.to(self._rank.device), ignore_index=-1, reduction="sum"
        )
        loss.backward()
        return loss.detach(), count

    def _update(self, loss: Tensor, count: int) -> Tensor:
        """Update the model by all ranks' gradients; returns the mean loss, a scalar."""
        parameters = list(self.model.parameters())
        own = [
            torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten()
            for p in parameters
        ]
        packed = torch.cat([*own, loss.view(1), loss.new_full((1,), count)])
        self._rank.exchange.sum("gradients", packed)
        packed /= packed[-1].clamp(min=1)
        sizes = [*(p.numel() for p in parameters), 1, 1]
        *gradients, mean, _ = packed.split(sizes)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.view_as(parameter)
        self._optimizer.step()
        return mean.squeeze(0).clone()
