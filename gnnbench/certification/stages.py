"""Subjects of registered samplers and systems, drawn through their stages."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gnnbench.certification.subject import Drawer, Ids, Request, Snippet, Subject, WorkerDraws
from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, host_ids
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.pyg_import import pyg_missing
from gnnbench.sampling.library_stage import LibraryStage
from gnnbench.sampling.native import NativeSampler, NativeStage
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage
from gnnbench.sampling.stated_law import StatedLawStage
from gnnbench.validation.law import WALK, WITHOUT, named

if TYPE_CHECKING:
    from torch_geometric.data import Data


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy, torch and, where they are imported, DGL and
    GraphBolt."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if "dgl" in sys.modules:
        sys.modules["dgl"].seed(seed)
    if "dgl.graphbolt" in sys.modules:
        bolt = sys.modules["dgl.graphbolt"]
        if hasattr(bolt, "seed"):
            bolt.seed(seed)


def data_of(graph: Graph) -> Data:
    """Return the graph as PyG's ``Data``, edges in the order of ``indices``."""
    from torch_geometric.data import Data

    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    data = Data(edge_index=torch.stack([graph.indices.long(), dst]))
    data.num_nodes = graph.num_nodes
    if graph.weights is not None:
        data.weight = graph.weights
    return data


class StageDrawer(Drawer):
    """Draws with a built stage."""

    def __init__(self, stage: SamplerStage, own_order: bool = False) -> None:
        self.stage, self.frontier, self.own_order = stage, stage.frontier, own_order

    def draw(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Draw a batch as timed, with positions."""
        stage = self.stage
        if isinstance(stage, NativeStage):
            walks = stage.pick == "random_walk"
            return stage.sampler.sample(seeds, epoch, number, with_positions=not walks)
        if isinstance(stage, StatedLawStage):
            return stage.positioned(stage.sample(seeds, epoch, number))
        return stage.sample(seeds, epoch, number)

    def close(self) -> None:
        """Close the stage."""
        self.stage.gate_is_over()
        self.stage.close()


def job_of(request: Request, name: str, device: str) -> Job:
    """Return the job for which a stage is built."""
    cell = Cell(
        "certify", name, request.graph.name, "", until="sample", device=device,
        batch_size=request.batch_size, fanouts=request.fanouts, hidden=0, learning_rate=0.0,
        seed=request.seed or 0,
    )  # fmt: skip
    return Job(cell, request.graph, Counts())


class StageSubject(Subject):
    """A sampler by its spec.

    Args:
        name: name on the command line.
        spec: the sampler with its options, not resolved.
        device: ``cpu`` or ``cuda``.
        options: the options that were chosen, which name the certificate.
        packages: versions that the certificate is about.
    """

    def __init__(
        self,
        name: str,
        spec: SamplerSpec,
        device: str,
        options: Mapping[str, object],
        packages: Mapping[str, str],
    ) -> None:
        self.name, self.device, self.options, self.packages = name, device, options, packages
        self.spec = spec
        self.resolved = spec.resolved(device)

    @property
    def stage(self) -> str:
        """Name of the spec."""
        return self.spec.name

    @property
    def settings(self) -> Mapping[str, object]:
        """The resolved spec as plain values, without its name."""
        return {key: value for key, value in self.resolved.plain().items() if key != "name"}

    def picks(self, law: str) -> tuple[str, ...]:
        """Picks of the spec with a law; only the chosen one if an option names it."""
        if not isinstance(self.spec, NativeSampler):
            return (self.resolved.pick,) if law == WITHOUT else ()
        if self.spec.library.law:
            return (self.resolved.pick,) if law == self.spec.library.law else ()
        if self.spec.pick != DEFAULT:
            return (self.spec.pick,) if named(self.spec.pick) == law else ()
        return tuple(p for p in self.spec.picks_on(self.device) if named(p) == law)

    def build(self, request: Request) -> Drawer:
        """Build the stage of the request's pick."""
        spec = replace(self.spec, pick=request.pick) if request.pick else self.spec
        if request.seed is not None:
            seed_everything(request.seed)
        job = job_of(request, self.name, self.device)
        return StageDrawer(spec.resolved(self.device).build(job))

    def all_neighbours(self) -> str:
        """A reason for library samplers without a pick without replacement."""
        if isinstance(self.spec, NativeSampler) and not self.picks(WITHOUT):
            return "its law has no 'all neighbours'"
        return ""

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """PyG's ``NodeLoader`` with two worker processes around a library sampler."""
        if not isinstance(self.spec, NativeSampler):
            return "no loader with worker processes is tested"
        if self.device != "cpu":
            return "loader processes are tested on the CPU"
        if missing := pyg_missing():
            return f"a loader with worker processes needs PyG: {missing.reason}"
        drawer = self.build(request)
        assert isinstance(drawer, StageDrawer) and isinstance(drawer.stage, LibraryStage)
        sampler = drawer.stage.sampler
        if any(b.positions is None for b in sampler.sample(seeds[:1], with_positions=True).blocks):
            return "its blocks carry no edge ids"
        adapter = sampler.as_pyg()

        def draw(epochs: int, batches: int) -> list[list[Ids]]:
            from torch_geometric.loader import NodeLoader

            loader = NodeLoader(
                data_of(request.graph), adapter, input_nodes=seeds.repeat(batches),
                batch_size=seeds.numel(), num_workers=2, filter_per_worker=False,
            )  # fmt: skip
            drawn = []
            for epoch in range(epochs):
                adapter.set_epoch(epoch)  # as documented, before every pass over the data
                drawn.append([host_ids(batch.e_id) for batch in loader])
            return drawn

        return draw

    def rank_command(self) -> Sequence[str] | str:
        """Name, device and options."""
        return [self.name, self.device, json.dumps(dict(self.options))]

    def snippet(self, request: Request) -> Snippet | None:
        """Source with gnnbench's library, for library samplers."""
        if not isinstance(self.spec, NativeSampler) or request.law == WALK:
            return None
        weighted = "weights=torch.tensor(weights), " if request.graph.weights is not None else ""
        pick = "" if self.spec.library.law else f"pick={request.pick!r}, "
        return Snippet(
            f"""\
import gnnbench, torch
graph = (torch.tensor(indptr), torch.tensor(indices, dtype=torch.{_dtype(request)}))
sampler = gnnbench.build_sampler(
    {self.spec.name!r}, graph, fanouts, seed=seed, {pick}{weighted}with_positions=True
)
number = -1

def draw(seeds):
    global number
    number += 1
    hops = sampler.sample(seeds, 0, number).hops()
    return [
        [(int(d), int(s), int(p)) for d, s, p in zip(h.edge_dst, h.edge_src, h.positions)]
        for h in hops
    ]
"""
        )


def _dtype(request: Request) -> str:
    return str(request.graph.indices.dtype).removeprefix("torch.")
