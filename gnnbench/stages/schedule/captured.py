"""A training step as a CUDA graph: its kernels are launched as one, by a host that does little.

Graphs replay what was launched, with the sizes and addresses of then; so batches are padded, as
``gnnbench.stages.schedule.padded`` says. MLPerf's entries for training of graph networks do so.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.stages.job import Job
from gnnbench.stages.schedule.base import EAGER, GRAPH, Learner, Trainer
from gnnbench.stages.schedule.padded import PaddedStep, Shape

WARM_UPS = 3  # as torch advises: libraries and autograd set themselves up in them


class CapturedStep(PaddedStep):
    """Replays the step that was captured for the shape; a larger shape is captured anew.

    Nothing of it waits for the GPU but capturing. The update is Adam's with the number of updates
    on the GPU, so losses are those of other steps within rounding.
    """

    def __init__(self, job: Job, learner: Learner) -> None:
        super().__init__(job, learner)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss: Tensor | None = None

    def _make(self, need: Shape) -> None:
        """Memory of the shape, and the step on it captured; the model is as it was."""
        self._graph = self._loss = None
        super()._make(need)
        device = self._job.device
        kept = self._learner.kept()
        with torch.cuda.device(device):
            current, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(current)
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    super()._run()
            current.wait_stream(side)
            self._learner.restore(kept)
            graph = torch.cuda.CUDAGraph()
            # Threads of other phases may allocate and wait meanwhile.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._loss = super()._run()
        self._graph = graph

    def _run(self) -> Tensor:
        """One step on the batch that was written; its loss, which the next one writes over."""
        assert self._graph is not None and self._loss is not None
        self._graph.replay()
        return self._loss.clone()


def trainer_by(step: str, job: Job, learner: Learner) -> Trainer:
    """What trains in steps of a kind (``ScheduleSpec.step``)."""
    if step == EAGER:
        return learner
    return CapturedStep(job, learner) if step == GRAPH else PaddedStep(job, learner)
