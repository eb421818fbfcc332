"""GraphBolt's ``sample_neighbors`` as a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from gnnbench.certification.stages import StageDrawer, StageSubject, job_of, seed_everything
from gnnbench.certification.subject import SUCCESSIVE, Drawer, Request, Snippet
from gnnbench.sampling.graphbolt import BoltSampler, BoltStage
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from gnnbench.sampling.graphbolt import SampledLayer

PICKS = {
    WITHOUT: "graphbolt",
    WITH: "replace",
    BY_WEIGHT: "probs_name, replace",
    SUCCESSIVE: "probs_name",
}


class _Graph(Protocol):
    """``FusedCSCSamplingGraph`` of GraphBolt."""

    edge_attributes: dict[str, Tensor] | None

    def sample_neighbors(
        self, nodes: Tensor, fanouts: Tensor, replace: bool, probs_name: str | None
    ) -> SampledLayer:
        """Sample one hop."""


class _WithOptions:
    """A graph whose ``sample_neighbors`` has ``replace`` and ``probs_name``."""

    def __init__(self, graph: _Graph, replace: bool, weights: Tensor | None) -> None:
        self._graph, self._replace = graph, replace
        self._probs = None if weights is None else "w"
        if weights is not None:
            graph.edge_attributes = {"w": weights}

    def sample_neighbors(self, nodes: Tensor, fanouts: Tensor) -> SampledLayer:
        """Sample one hop with the options."""
        return self._graph.sample_neighbors(nodes, fanouts, self._replace, self._probs)


class _OptionStage(BoltStage):
    """The stage with ``replace`` and ``probs_name`` of GraphBolt's sampler."""

    def __init__(self, spec: BoltSampler, request: Request, name: str, device: str) -> None:
        super().__init__(spec, job_of(request, name, device))
        replace, weights = request.law in (WITH, BY_WEIGHT), None
        if request.law in (BY_WEIGHT, SUCCESSIVE):
            assert request.graph.weights is not None
            weights = request.graph.weights.to(self.job.device)
        if replace or weights is not None:
            self._graph = _WithOptions(self._graph, replace, weights)


class GraphBoltSubject(StageSubject):
    """GraphBolt with the options of ``gnnbench.sampling.graphbolt``."""

    def picks(self, law: str) -> tuple[str, ...]:
        """Arguments of ``sample_neighbors`` that give the law."""
        return (PICKS[law],) if law in PICKS else ()

    def build(self, request: Request) -> Drawer:
        """Build the sampling graph and seed GraphBolt."""
        spec = self.resolved
        assert isinstance(spec, BoltSampler)
        drawer = StageDrawer(_OptionStage(spec, request, self.name, self.device))
        if request.seed is not None:
            seed_everything(request.seed)
        return drawer

    def snippet(self, request: Request) -> Snippet | None:
        """Source with GraphBolt alone."""
        replace = request.law in (WITH, BY_WEIGHT)
        probs = "'w'" if request.law in (BY_WEIGHT, SUCCESSIVE) else None
        ids = str(request.graph.indices.dtype).removeprefix("torch.")
        attributes = "graph.edge_attributes = {'w': torch.tensor(weights)}\n" if probs else ""
        device = "cpu" if self.device == "cpu" else "cuda"
        return Snippet(
            f"""\
import dgl.graphbolt as gb, torch
graph = gb.fused_csc_sampling_graph(torch.tensor(indptr), torch.tensor(indices, dtype=torch.{ids}))
{attributes}graph = graph.to({device!r})
torch.manual_seed(seed)

def draw(seeds):
    nodes, hops = torch.tensor(seeds, dtype=torch.{ids}, device={device!r}), []
    for fanout in fanouts:
        drawn = graph.sample_neighbors(nodes, torch.tensor([fanout]), {replace}, {probs})
        csc = drawn.sampled_csc
        dst = nodes.repeat_interleave(csc.indptr.diff())
        hops.append(list(zip(dst.tolist(), csc.indices.tolist(), drawn.original_edge_ids.tolist())))
        nodes, _, _ = gb.unique_and_compact_csc_formats(csc, nodes)
    return hops
"""
        )
