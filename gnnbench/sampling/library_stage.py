"""Base class of stages that wrap a library sampler."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.stage import SamplerSpec, SamplerStage


class LibraryStage(SamplerStage):
    """Draws batches with a library ``sampler`` built for the job's graph, and closes it."""

    def __init__(self, spec: SamplerSpec, job: Job, sampler: Sampler) -> None:
        super().__init__(spec, job)
        self.sampler = sampler

    def sample(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """Draw all hops in one call."""
        return self.sampler.sample(seeds, epoch, number)

    @property
    def sampled_on(self) -> torch.device:
        """The sampler's sampling device."""
        return self.sampler.setting.sampled_on

    def graph_bytes(self) -> int:
        """Bytes of the topology, 0 unless it is in device memory."""
        if self.sampler.setting.topology != "gpu":
            return 0
        graph = self.job.graph
        return sum(t.numel() * t.element_size() for t in (graph.indptr, graph.indices))

    def close(self) -> None:
        """Close the sampler, which unlocks host memory."""
        self.sampler.close()
