"""PGSampler: the persistent kernel, its fused variant, and Algorithm 1 as printed."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels.fused import HighWater
from gnnbench.kernels.pgsampler import HUBS, WORKERS, TaskStats, pgsampler
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting

FETCH_SIZE = Option(
    "fetch_size", 5, "tasks that a worker takes at once; 5 is the paper's", range(1, 33)
)
HUBS_OPTION = Option(
    "hubs",
    "split",
    "split: all workers of a GPU share a long reservoir row's draws, which is not in the paper;"
    " whole: a row is one worker's, as on the CPU",
    HUBS,
)
WORKER = Option(
    "worker",
    "warp",
    "who takes tasks on a GPU: a warp, or a block as in the paper, with hubs=whole only",
    WORKERS,
)
BLOCKS = Option(
    "blocks",
    "one-warp",
    "one-warp: blocks of 32 threads, one task each; four-warps, one-worker: those of pgsampler, as"
    " with worker=warp and worker=block, but a worker ends after its first fetch_size tasks, so"
    " that persistence alone differs; one-worker with hubs=whole only",
    ("one-warp", "four-warps", "one-worker"),
    added=True,
)
UNSAFE = Option("unsafe", False, "must be true: edges are lost", (False, True))


class PgSampler(Sampler):
    """All hops in one launch, tasks (vertex, hop) from a queue in memory (PGSampler, Wei et al.).

    ``lost_tasks`` counts queued tasks that were not sampled, over all batches so far; ``tasks`` has
    the statistics of the last batch.
    """

    name = "pgsampler"
    summary = "PGSampler: one persistent kernel over a task queue"
    picks = tuple(pick for pick in PICKS if pick != "random_walk")
    frontiers = ("cumulative",)
    options: ClassVar[dict[str, Option]] = {o.name: o for o in (FETCH_SIZE, HUBS_OPTION, WORKER)}
    variant: ClassVar[str] = "persistent"

    def __init__(
        self,
        setting: Setting,
        fetch_size: int = FETCH_SIZE.default,
        hubs: str = HUBS[0],
        worker: str = WORKERS[0],
    ) -> None:
        if worker == "block" and hubs != "whole":
            raise UsageError("worker 'block' draws a row alone; give hubs=whole with it")
        super().__init__(setting)
        self._variant = self.variant
        self._fetch_size = fetch_size
        self._hubs = hubs
        self._worker = worker
        self._high_water = HighWater()
        self.lost_tasks = 0
        self.tasks: TaskStats | None = None

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one launch."""
        drawn, self.tasks = pgsampler(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            key=key,
            batch=batch,
            pick=self._pick,
            with_positions=with_positions,
            variant=self._variant,
            fetch_size=self._fetch_size,
            hubs=self._hubs,
            worker=self._worker,
            capacity=self._high_water.capacity,
            unsafe=self._variant == "as_printed",
        )
        self._high_water.see(self.tasks.capacity)
        self.lost_tasks += self.tasks.lost
        return drawn


class DglFusion(PgSampler):
    """``DGL+Fusion`` of PGSampler's section V-D: all hops in one launch, no persistent workers.

    In the paper each block ends after one task: ``blocks="one-worker", hubs="whole",
    fetch_size=1``. With ``blocks="one-warp"`` each block is a warp that ends after one task,
    whatever ``fetch_size`` is.
    """

    name = "dgl-fusion"
    summary = "PGSampler's ablation: fused hops, no persistent workers"
    devices = ("cuda",)
    options: ClassVar[dict[str, Option]] = {o.name: o for o in (FETCH_SIZE, HUBS_OPTION, BLOCKS)}
    variant = "fusion"

    def __init__(
        self,
        setting: Setting,
        fetch_size: int = FETCH_SIZE.default,
        hubs: str = HUBS[0],
        blocks: str = BLOCKS.default,
    ) -> None:
        if blocks == "one-worker" and hubs != "whole":
            raise UsageError("blocks 'one-worker' draw a row alone; give hubs=whole with it")
        worker = "block" if blocks == "one-worker" else "warp"
        super().__init__(setting, fetch_size, hubs, worker)
        self._variant = "fusion" if blocks == "one-warp" else "non_persistent"


class PgSamplerAsPrinted(PgSampler):
    """PGSampler's Algorithm 1 as printed, which loses tasks and their edges.

    The tail advances before the slot is written, and a worker that exits has claimed slots that no
    worker reads. ``lost_tasks`` counts the lost tasks.
    """

    name = "pgsampler-as-printed"
    summary = "PGSampler's Algorithm 1 to the letter: loses tasks; needs unsafe=True"
    options: ClassVar[dict[str, Option]] = {o.name: o for o in (FETCH_SIZE, UNSAFE)}
    variant = "as_printed"

    def __init__(
        self, setting: Setting, unsafe: bool = False, fetch_size: int = FETCH_SIZE.default
    ) -> None:
        if unsafe is not True:
            raise UsageError(
                f"sampler '{self.name}' loses tasks, and so draws too few edges, as the printed"
                " Algorithm 1 does; pass unsafe=True to see it, or use 'pgsampler'"
            )
        super().__init__(setting, fetch_size)
