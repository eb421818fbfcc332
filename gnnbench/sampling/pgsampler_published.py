"""PGSampler as published, and its ablation without persistence."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels.fused import HighWater
from gnnbench.kernels.pgsampler import TaskStats, pgsampler_as_published
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.pgsampler import FETCH_SIZE
from gnnbench.sampling.setting import Setting


class PgSamplerAsPublished(Sampler):
    """PGSampler (Wei et al.) as its sections III and IV describe it.

    A block draws task by task, long rows whole, into an array of edges in COO for each hop; then
    each hop's block is built as DGL builds it. The queue does not lose tasks, unlike Algorithm 1 as
    printed. The edges are those of ``pgsampler``; ``tasks`` has the statistics of the last batch.
    """

    name = "pgsampler-as-published"
    summary = "PGSampler as published: blocks, task by task, COO, DGL's block builder"
    devices = ("cuda",)
    picks = ("reservoir",)
    frontiers = ("cumulative",)
    options: ClassVar[dict[str, Option]] = {FETCH_SIZE.name: FETCH_SIZE}
    persistent: ClassVar[bool] = True

    def __init__(self, setting: Setting, fetch_size: int = FETCH_SIZE.default) -> None:
        super().__init__(setting)
        self._fetch_size = fetch_size
        self._high_water = HighWater()
        self.tasks: TaskStats | None = None

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one launch, then build a block for each."""
        drawn, self.tasks = pgsampler_as_published(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            key=key,
            batch=batch,
            with_positions=with_positions,
            persistent=self.persistent,
            fetch_size=self._fetch_size,
            capacity=self._high_water.capacity,
        )
        self._high_water.see(self.tasks.capacity)
        return drawn


ONE_TASK = replace(
    FETCH_SIZE, default=1, help="tasks that a block takes before it ends; the paper's is 1"
)


class DglFusionAsPublished(PgSamplerAsPublished):
    """``DGL+Fusion`` of PGSampler's section V-D: the same kernel, a block ends after one task."""

    name = "dgl-fusion-as-published"
    summary = "PGSampler's ablation as published: its kernel without persistence, a block per task"
    options: ClassVar[dict[str, Option]] = {ONE_TASK.name: ONE_TASK}
    persistent = False

    def __init__(self, setting: Setting, fetch_size: int = ONE_TASK.default) -> None:
        super().__init__(setting, fetch_size)
