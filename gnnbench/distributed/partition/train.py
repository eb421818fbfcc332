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
    """A model whose gradients are averaged over all ranks' seeds by one all-reduce a step.

    FastSample (section 4) trains GraphSAGE, hidden 256, batch 1000 a rank, learning rate 0.006:
    the defaults. Weights are drawn from ``seed``, the same on every rank. All ranks are made and
    used together. Raises ``UsageError`` for a wrong argument, and where the ranks' differ.
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
        # As many on every rank: one that has run out takes part with no seeds.
        self.steps = -(-most // self._batch_size)

    def epoch(self, number: int) -> list[float]:
        """Train an epoch; each step's loss, the mean over the seeds of all ranks.

        Each of the rank's training nodes is in one batch; the last batch may be smaller. A batch
        has the number of its step on every rank, so that all of a step draw as one batch would.
        """
        losses = []
        for step, seeds in enumerate(self.batches(number)):
            batch = self._rank.sampler.sample(seeds, epoch=number, batch=step)
            rows = self._rank.features.rows(batch.input_nodes)
            loss, count = self._gradients(seeds, batch.blocks, rows)
            losses.append(self._update(loss, count))
        found: list[float] = torch.stack(losses).tolist() if losses else []
        return found

    def batches(self, epoch: int) -> list[Tensor]:
        """The seeds of each of ``steps`` steps, original ids int64 ``[at most batch_size]``."""
        own, size = self._training, self._batch_size
        key = rng.key(self._seed, epoch, f"order of part {self._rank.rank}")
        order = own[rng.permutation(own.numel(), key)]
        return [order[size * step : size * (step + 1)] for step in range(self.steps)]

    def _gradients(self, seeds: Tensor, blocks: list, rows: Tensor) -> tuple[Tensor, int]:
        """Gradients of the summed loss of the rank's seeds; the sum, and how many have labels."""
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
        """One update by all ranks' gradients over their seeds; the loss, a scalar."""
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
