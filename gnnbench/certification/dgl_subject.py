"""DGL's ``NeighborSampler`` and ``random_walk`` as a subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gnnbench.certification.stages import StageDrawer, StageSubject, job_of, seed_everything
from gnnbench.certification.subject import (
    SUCCESSIVE,
    Drawer,
    Ids,
    Request,
    Snippet,
    WalkDraws,
    WorkerDraws,
)
from gnnbench.kernels.dgl_import import import_dgl
from gnnbench.sampling.dgl import DglSampler, DglStage
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph

PICKS = {WITHOUT: "dgl", WITH: "replace", BY_WEIGHT: "prob, replace", SUCCESSIVE: "prob"}

WORKER_PROGRAM = """\
# DGL: once the process has a seed, two worker processes draw equal random numbers, and do so again
# in every epoch.
import dgl, torch
dgl.seed(1)
hubs, degree = 64, 6
src = torch.arange(hubs, hubs + degree).repeat(hubs)
dst = torch.arange(hubs).repeat_interleave(degree)
graph = dgl.graph((src, dst), num_nodes=hubs + degree)
sampler = dgl.dataloading.NeighborSampler([1])
loader = dgl.dataloading.DataLoader(
    graph, torch.arange(hubs).repeat(4), sampler, batch_size=hubs, num_workers=2
)
epochs = [[blocks[-1].edata[dgl.EID] for _, _, blocks in loader] for _ in range(2)]
workers = int((epochs[0][0] == epochs[0][1]).sum())
print('equal picks of worker 0 and worker 1:', workers, 'of', hubs, 'expected:', hubs / degree)
again = int((epochs[0][0] == epochs[1][0]).sum())
print('equal picks of epoch 0 and epoch 1:', again, 'of', hubs, 'expected:', hubs / degree)
"""
SEED_PROGRAM = """\
# DGL: equal seeds give different blocks in the second hop of the fused sampler, with two threads.
import random
import dgl, torch
torch.set_num_threads(2)
random.seed(1)
nodes, indptr, indices = 300, [0], []
for node in range(nodes):  # rows of 2 to 250 neighbours
    indices += random.sample(range(nodes), int(2 / random.random()) % 250)
    indptr.append(len(indices))
csc = (torch.tensor(indptr), torch.tensor(indices), [])
graph = dgl.graph(("csc", csc), num_nodes=nodes)
seen = set()
for call in range(20):
    sampler = dgl.dataloading.NeighborSampler([3, 3], fused=True)
    dgl.seed(7)
    _, _, blocks = sampler.sample(graph, torch.arange(100))
    seen.add(tuple(int(b.edata[dgl.EID].sum()) for b in blocks[::-1]))
print('sums of the edge ids by hop, all calls with seed 7; expected: one line')
for sums in sorted(seen):
    print(sums)
"""


class _OptionStage(DglStage):
    """The stage with ``replace`` and ``prob`` of DGL's sampler."""

    def __init__(self, spec: DglSampler, request: Request, name: str, device: str) -> None:
        super().__init__(spec, job_of(request, name, device))
        options: dict[str, object] = {"replace": request.law in (WITH, BY_WEIGHT)}
        if request.law in (BY_WEIGHT, SUCCESSIVE):
            assert request.graph.weights is not None
            self._graph.edata["w"] = request.graph.weights.to(self._graph.device)
            options["prob"] = "w"
        self._sampler = self._dgl.dataloading.NeighborSampler(
            list(reversed(request.fanouts)), fused=spec.fused, **options
        )


class DglSubject(StageSubject):
    """DGL with the options of ``gnnbench.sampling.dgl``."""

    def picks(self, law: str) -> tuple[str, ...]:
        """Arguments of ``NeighborSampler`` that give the law."""
        return (PICKS[law],) if law in PICKS else ()

    def build(self, request: Request) -> Drawer:
        """Build ``NeighborSampler`` and seed DGL."""
        spec = self.resolved
        assert isinstance(spec, DglSampler)
        import_dgl()
        if request.seed is not None:
            seed_everything(request.seed)
        return StageDrawer(_OptionStage(spec, request, self.name, self.device))

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """DGL's ``DataLoader`` with two worker processes, on the host."""
        if self.device != "cpu":
            return "DGL's GPU samplers take no worker processes"
        dgl = import_dgl()
        drawer = self.build(request)
        assert isinstance(drawer, StageDrawer) and isinstance(drawer.stage, DglStage)
        graph, sampler = drawer.stage._graph, drawer.stage._sampler
        ids = seeds.to(graph.idtype)

        def draw(epochs: int, batches: int) -> list[list[Ids]]:
            loader = dgl.dataloading.DataLoader(
                graph, ids.repeat(batches), sampler, batch_size=ids.numel(), num_workers=2
            )
            return [
                [blocks[-1].edata[dgl.EID].numpy().astype(np.int64) for _, _, blocks in loader]
                for _ in range(epochs)
            ]

        return draw

    def walks(self) -> WalkDraws | str:
        """``dgl.sampling.random_walk`` without restarts, on the CPU."""
        dgl = import_dgl()

        def build(graph: Graph, length: int, seed: int) -> Callable[[Tensor], Tensor]:
            ends = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
            walked = dgl.graph((ends, graph.indices.long()), num_nodes=graph.num_nodes)
            seed_everything(seed)

            def draw(nodes: Tensor) -> Tensor:
                return dgl.sampling.random_walk(walked, nodes, length=length)[0]

            return draw

        return build

    def snippet(self, request: Request) -> Snippet | None:
        """Source with DGL alone."""
        spec = self.resolved
        assert isinstance(spec, DglSampler)
        ids = str(spec.ids_of(request.graph.num_edges)).removeprefix("torch.")
        options, edata = f"fused={spec.fused}", ""
        if request.law in (WITH, BY_WEIGHT):
            options += ", replace=True"
        if request.law in (BY_WEIGHT, SUCCESSIVE):
            options, edata = options + ", prob='w'", "graph.edata['w'] = torch.tensor(weights)\n"
        device = "" if self.device == "cpu" else ".to('cuda')"
        return Snippet(
            f"""\
import dgl, torch
csc = (torch.tensor(indptr, dtype=torch.{ids}), torch.tensor(indices, dtype=torch.{ids}), [])
graph = dgl.graph(("csc", csc), num_nodes=len(indptr) - 1, idtype=torch.{ids}){device}
{edata}sampler = dgl.dataloading.NeighborSampler(fanouts[::-1], {options})
dgl.seed(seed)

def draw(seeds):
    _, _, blocks = sampler.sample(graph, torch.tensor(seeds, dtype=torch.{ids}){device})
    hops = []
    for block in reversed(blocks):
        src, dst = block.edges()
        src, dst = nodes(block.srcdata[dgl.NID], src), nodes(block.dstdata[dgl.NID], dst)
        hops.append(list(zip(dst, src, block.edata[dgl.EID].tolist())))
    return hops

def nodes(ids, local):  # -1: no node has this local id
    ids = ids.tolist()
    return [ids[i] if 0 <= i < len(ids) else -1 for i in local.tolist()]
"""
        )

    def pair_program(self, name: str) -> str:
        """DGL's ``DataLoader`` with two workers over equal batches; two calls with equal seeds."""
        if name == "seed":
            return SEED_PROGRAM
        if name not in ("workers", "worker_epochs"):
            return ""
        return WORKER_PROGRAM
