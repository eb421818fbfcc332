"""What stages over a sampler of the library share."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.stage import SamplerSpec, SamplerStage


class LibraryStage(SamplerStage):
    """Draws as ``sampler``, built for the job's graph, draws; closes it in the end."""

    def __init__(self, spec: SamplerSpec, job: Job, sampler: Sampler) -> None:
        super().__init__(spec, job)
        self.sampler = sampler

    def sample(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """All hops in one call."""
        return self.sampler.sample(seeds, epoch, number)

    @property
    def sampled_on(self) -> torch.device:
        """The CPU where the topology stays there."""
        return self.sampler.setting.sampled_on

    def graph_bytes(self) -> int:
        """The topology, where it is in device memory."""
        if self.sampler.setting.topology != "gpu":
            return 0
        graph = self.job.graph
        return sum(t.numel() * t.element_size() for t in (graph.indptr, graph.indices))

    def close(self) -> None:
        """Unlock what the sampler locked."""
        self.sampler.close()
