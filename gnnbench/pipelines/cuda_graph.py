"""A training step as a CUDA graph: one launch replays all of its kernels.

A graph replays kernels with the sizes and addresses of the capture, so batches are padded
(``gnnbench.pipelines.padded``). MLPerf's submissions for GNN training do the same.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.pipelines.padded import PaddedShape, PaddedStep, Reserve, no_buffers
from gnnbench.pipelines.training_step import EAGER, GRAPH, Learner, TrainingStep

WARM_UPS = 3  # as torch advises: libraries and autograd set themselves up in them


class CapturedStep(PaddedStep):
    """Replays the step that was captured for the shape; a larger shape is captured again.

    There is one graph for each address at which feature rows may be. Graphs run one after the
    other and share a memory pool. Only a capture waits for the GPU. Adam keeps its number of
    updates on the GPU, so losses equal those of other steps within rounding.
    """

    def __init__(self, job: Job, learner: Learner, reserve: Reserve = no_buffers) -> None:
        super().__init__(job, learner, reserve)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}  # by the rows' address
        self._pool: tuple[int, int] | None = None  # as torch identifies it

    def _make(self, shape: PaddedShape) -> None:
        """Allocate memory of the shape and capture the step; the model does not change."""
        self._graphs.clear()
        self._pool = torch.cuda.graph_pool_handle()
        super()._make(shape)
        assert self._memory is not None
        for rows in self._memory.row_buffers:
            self._capture(rows)

    def _capture(self, rows: Tensor) -> None:
        device = self._job.device
        kept = self._learner.kept()
        with torch.cuda.device(device):
            current, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(current)
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    super()._run(rows)
            current.wait_stream(side)
            self._learner.restore(kept)
            graph = torch.cuda.CUDAGraph()
            # Threads of other phases may allocate and synchronize during the capture.
            mode = "thread_local"
            with (
                _garbage_collected(),
                torch.cuda.graph(graph, self._pool, capture_error_mode=mode),  # type: ignore[arg-type]
            ):
                loss = super()._run(rows)
        self._graphs[rows.data_ptr()] = graph, loss

    def _run(self, rows: Tensor) -> Tensor:
        """Run one step on the batch in memory; returns a copy of its loss."""
        if (
            rows.data_ptr() not in self._graphs
        ):  # rows that were copied, from none of the store's buffers
            begin = time.perf_counter()
            self._capture(rows)
            self._wait()
            self._padding.count_recapture(time.perf_counter() - begin)
        graph, loss = self._graphs[rows.data_ptr()]
        graph.replay()
        return loss.clone()


@contextmanager
def _garbage_collected() -> Iterator[None]:
    """Collect garbage now and none in the block: to free another graph invalidates a capture."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def training_step(step: str, job: Job, learner: Learner, reserve: Reserve) -> TrainingStep:
    """Return what trains in steps of a kind (``ScheduleSpec.step``).

    ``reserve`` is that of the feature store that loads the rows.
    """
    if step == EAGER:
        return learner
    step_type = CapturedStep if step == GRAPH else PaddedStep
    return step_type(job, learner, reserve)
