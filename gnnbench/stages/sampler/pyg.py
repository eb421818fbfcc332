"""PyG's loaders as stages: around PyG's own sampler, and around ours."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gnnbench.check.law import UNEVEN, Law
from gnnbench.foreign.pyg_import import (
    EXTENSIONS,
    extension_missing,
    extensions,
    pyg_missing,
    sampling_by,
)
from gnnbench.minibatch import Batch, Block, Hop, Sizes
from gnnbench.missing import Missing
from gnnbench.models.pyg_block import PygBlock
from gnnbench.ops.missing import native_missing
from gnnbench.sampling.build import build_sampler
from gnnbench.stages.job import Job
from gnnbench.stages.sampler.base import DEFAULT, SamplerSpec, SamplerStage
from gnnbench.stages.spec import option


@dataclass(frozen=True)
class PygSampler(SamplerSpec):
    """The real ``NeighborLoader``, its sampler from pyg-lib or torch-sparse.

    ``extension`` is the machine's choice unless it is named: what PyG itself would take. A name is
    kept, installed or not.
    """

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "the real PyG: NeighborLoader with its own sampler"
    frontiers: ClassVar[tuple[str, ...]] = ("new",)
    extension: str = option(
        DEFAULT,
        "whose sampler: default: pyg-lib where it is installed, else torch-sparse",
        (DEFAULT, *EXTENSIONS),
    )

    def missing(self, device: str) -> Missing | None:
        """PyG and the sampling extension must be installed."""
        return pyg_missing() or extension_missing(self._extension())

    def _extension(self) -> str:
        if self.extension != DEFAULT:
            return self.extension
        return next(iter([*extensions(), *EXTENSIONS]))

    def resolved(self, device: str) -> Self:
        """The same with every default put in."""
        return replace(super().resolved(device), extension=self._extension())

    def picks_on(self, device: str) -> tuple[str, ...]:
        """PyG does not let one choose."""
        return ("pyg",)

    def build(self, job: Job) -> PygStage:
        """A ``NeighborLoader`` over the same graph."""
        return PygStage(self, job)


@dataclass(frozen=True)
class PygNativeSampler(SamplerSpec):
    """PyG's ``NodeLoader`` around our sampler, for machines without PyG's extension."""

    name: ClassVar[str] = "pyg-native"
    summary: ClassVar[str] = "PyG's NodeLoader around our hop-by-hop sampler"
    frontiers: ClassVar[tuple[str, ...]] = ("new",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed and the native library have been built."""
        return pyg_missing() or native_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """Those of DGL."""
        return ("floyd", "reservoir")

    def build(self, job: Job) -> PygNativeStage:
        """A ``NodeLoader`` over the same graph."""
        return PygNativeStage(self, job)


def _data(job: Job) -> Any:
    from torch_geometric.data import Data

    data = Data(x=job.graph.features, y=job.graph.labels)
    data.num_nodes = job.graph.num_nodes
    return data


class LoaderStage(SamplerStage):
    """A loader of PyG's by its own collate function."""

    loader: Any

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """PyG's ``SamplerOutput``."""
        out = self.loader.collate_fn(seeds)
        return PygBatch(number, out, len(self.job.cell.fanouts), self.loader)


class PygStage(LoaderStage):
    """``NeighborLoader``, its sampler from one extension."""

    def __init__(self, spec: PygSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._extension = spec.extension
        with sampling_by(self._extension):
            self.loader = self._loader()

    def _loader(self) -> Any:
        """Over the same graph, its edges given sorted by destination."""
        from torch_geometric.loader import NeighborLoader

        graph, cell = self.job.graph, self.job.cell
        data = _data(self.job)
        dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
        data.edge_index = torch.stack([graph.indices.long(), dst])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pyg-lib.*")
            return NeighborLoader(
                data,
                num_neighbors=list(cell.fanouts),
                input_nodes=None,
                is_sorted=True,
                filter_per_worker=False,
                batch_size=cell.batch_size,
            )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """PyG's ``SamplerOutput``, of the extension."""
        with sampling_by(self._extension):
            return super().sample(seeds, epoch, number)

    @cached_property
    def law(self) -> Law:
        """torch-sparse 0.6.18 draws the last edges of a row too rarely, by fanout 1 the very last
        one never (rusty1s/pytorch_sparse issue 385)."""
        law = super().law
        return replace(law, name=UNEVEN) if self._extension == "torch-sparse" else law


class PygNativeStage(LoaderStage):
    """``NodeLoader`` around our sampler as a PyG ``BaseSampler``."""

    def __init__(self, spec: SamplerSpec, job: Job) -> None:
        super().__init__(spec, job)
        from torch_geometric.loader import NodeLoader

        cell = self.job.cell
        self._sampler = build_sampler(
            "hop-by-hop",
            self.job.graph,
            cell.fanouts,
            seed=cell.seed,
            pick=self.pick,
            frontier=self.frontier,
        ).as_pyg()
        self.loader = NodeLoader(
            _data(self.job),
            node_sampler=self._sampler,
            input_nodes=None,
            filter_per_worker=False,
            batch_size=cell.batch_size,
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """As PyG's, with the batch's place in the epoch told to our sampler."""
        self._sampler.set_epoch(epoch, number)
        return super().sample(seeds, epoch, number)


class PygBatch(Batch):
    """A ``SamplerOutput``, and the loader that can fetch its features."""

    def __init__(self, number: int, out: Any, num_hops: int, loader: Any) -> None:
        self.number, self.out, self._num_hops, self.loader = number, out, num_hops, loader

    @property
    def seeds(self) -> Tensor:  # type: ignore[override]
        """Seeds of the batch."""
        nodes: Tensor = self.out.node[: self.out.metadata[0].numel()]
        return nodes

    @property
    def input_nodes(self) -> Tensor:
        """All sampled nodes, seeds first."""
        nodes: Tensor = self.out.node
        return nodes

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        """Nodes and edges known after each hop, from the seeds on (hop 0).

        pyg-lib reports them. torch-sparse does not, but it numbers nodes as it meets them and
        expands them in that order: the edges of a hop are those that end in the nodes of the hop
        before.
        """
        out = self.out
        if out.num_sampled_nodes is not None and out.num_sampled_edges is not None:
            known = accumulate(out.num_sampled_nodes), accumulate([0, *out.num_sampled_edges])
            return list(zip(*known, strict=True))
        nodes, edges = int(out.metadata[0].numel()), 0
        bounds = [(nodes, 0)]
        for _ in range(self._num_hops):
            edges = int(torch.searchsorted(out.col, nodes))
            if edges:
                nodes = max(nodes, int(out.row[:edges].max()) + 1)
            bounds.append((nodes, edges))
        return bounds

    @cached_property
    def pyg_blocks(self) -> list[PygBlock]:
        """Layer by layer what PyG's ``trim_to_layer`` leaves: the hops that the layer needs."""
        edge_index = torch.stack([self.out.row, self.out.col])
        return [
            PygBlock(edge_index[:, :edges], num_src=nodes, num_dst=num_dst)
            for (num_dst, _), (nodes, edges) in reversed(list(pairwise(self._bounds)))
        ]

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """As blocks of ours; PyG's edges are ordered by destination."""
        out, found = self.out, []
        for (num_dst, _), (nodes, edges) in reversed(list(pairwise(self._bounds))):
            counts = torch.bincount(out.col[:edges], minlength=num_dst)
            offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
            found.append(Block(offsets, out.row[:edges].int(), out.node[:nodes], num_dst))
        return found

    def sizes(self) -> Sizes:
        """A hop's destinations are the nodes first seen at the hop before."""
        nodes = self.out.node
        layers = [
            (nodes, num_dst, edges) for (num_dst, _), (_, edges) in pairwise(self._bounds)
        ]  # fmt: skip
        return Sizes(self.seeds, layers, nodes.numel(), new=True)

    def hops(self) -> list[Hop]:
        """Edges in neutral form."""
        out, found, start = self.out, [], 0
        edge_src, edge_dst = _ids(out.node[out.row]), _ids(out.node[out.col])
        positions = _ids(out.edge)
        for dst, count in self.sizes().hops:
            end = start + count
            found.append(
                Hop(_ids(dst), edge_dst[start:end], edge_src[start:end], positions[start:end])
            )
            start = end
        return found

    def tensors(self) -> list[Tensor]:
        """Rows, columns and nodes of the one subgraph that serves all layers."""
        return [self.out.row, self.out.col, self.out.node]


def _ids(t: Tensor) -> Any:
    return t.numpy().astype("int64")
