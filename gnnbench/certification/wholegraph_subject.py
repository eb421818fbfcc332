"""WholeGraph's sampler as a subject."""

from __future__ import annotations

import random

from gnnbench.certification.stages import StageSubject
from gnnbench.certification.subject import Drawer, Request, Snippet
from gnnbench.kernels.wholegraph_import import WholeMemory
from gnnbench.sampling.wholegraph import WholeGraphSampler

PROGRAM = """\
import random, torch
import pylibwholegraph.torch as wgth
wgth.init_torch_env_and_create_wm_comm(0, 1, 0, 1, wm_log_level="warn")
random.seed(seed)

def stored(values):
    communicator = wgth.get_local_device_communicator()
    made = wgth.create_wholememory_tensor(
        communicator, {memory!r}, "cuda", [values.numel()], values.dtype, [1])
    made.get_local_tensor()[0].copy_(values)
    return made

graph = wgth.GraphStructure()
graph.set_csr_graph(stored(torch.tensor(indptr)), stored(torch.tensor(indices, dtype=torch.{ids})))

def draw(seeds):
    seeds = torch.tensor(seeds, dtype=torch.{ids}, device="cuda")
    nodes, _, offsets, columns = graph.multilayer_sample_without_replacement(seeds, fanouts)
    hops = []
    for src, dst, begin, local in zip(nodes, nodes[1:], offsets, columns):
        ends = dst.repeat_interleave(begin.diff()), src[local.long()]
        hops.insert(0, [(*edge, None) for edge in zip(*(end.tolist() for end in ends))])
    return hops
"""


class WholeGraphSubject(StageSubject):
    """The stage of ``gnnbench.sampling.wholegraph``, in one communicator for all builds."""

    _memory: WholeMemory | None = None

    def build(self, request: Request) -> Drawer:
        """Build the stage. Without a seed, WholeGraph's generator is seeded by the system."""
        if self._memory is None:
            self._memory = WholeMemory.share()  # a communicator takes half a second
        drawer = super().build(request)
        if request.seed is None:
            random.seed()
        return drawer

    def snippet(self, request: Request) -> Snippet | None:
        """Source with pylibwholegraph alone, which reports no edge ids."""
        assert isinstance(self.resolved, WholeGraphSampler)
        ids = str(request.graph.indices.dtype).removeprefix("torch.")
        return Snippet(PROGRAM.format(memory=self.resolved.memory, ids=ids))
