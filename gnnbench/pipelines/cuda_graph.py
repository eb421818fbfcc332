"""A training step as a CUDA graph: its kernels are launched as one, by a host that does little.

Graphs replay what was launched, with the sizes and addresses of then; so batches are padded, as
``gnnbench.pipelines.padded`` says. MLPerf's entries for training of graph networks do so.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.pipelines.padded import PaddedStep, Reserve, Shape, nowhere
from gnnbench.pipelines.schedule import EAGER, GRAPH, Learner, Trainer

WARM_UPS = 3  # as torch advises: libraries and autograd set themselves up in them


class CapturedStep(PaddedStep):
    """Replays the step that was captured for the shape; a larger shape is captured anew.

    A graph for each place where feature rows may lie; they run one after the other, out of one pool
    of memory. Nothing of it waits for the GPU but capturing. The update is Adam's with the number
    of updates on the GPU, so losses are those of other steps within rounding.
    """

    def __init__(self, job: Job, learner: Learner, reserve: Reserve = nowhere) -> None:
        super().__init__(job, learner, reserve)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}  # by the rows' address
        self._pool: Any = None

    def _make(self, room: Shape) -> None:
        """Memory of the shape, and the step on it captured; the model is as it was."""
        self._graphs.clear()
        self._pool = torch.cuda.graph_pool_handle()
        super()._make(room)
        assert self._memory is not None
        for rows in self._memory.homes:
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
            # Threads of other phases may allocate and wait meanwhile.
            with torch.cuda.graph(graph, self._pool, capture_error_mode="thread_local"):
                loss = super()._run(rows)
        self._graphs[rows.data_ptr()] = graph, loss

    def _run(self, rows: Tensor) -> Tensor:
        """One step on the batch that was written; its loss, which the next one writes over."""
        if rows.data_ptr() not in self._graphs:  # copied: they were in none of the store's buffers
            begin = time.perf_counter()
            self._capture(rows)
            self._wait()
            self._padding.made_anew(time.perf_counter() - begin)
        graph, loss = self._graphs[rows.data_ptr()]
        graph.replay()
        return loss.clone()


def trainer_by(step: str, job: Job, learner: Learner, reserve: Reserve) -> Trainer:
    """What trains in steps of a kind (``ScheduleSpec.step``) on rows of the store that reserves."""
    if step == EAGER:
        return learner
    made = CapturedStep if step == GRAPH else PaddedStep
    return made(job, learner, reserve)
