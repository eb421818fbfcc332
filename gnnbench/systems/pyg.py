"""``pyg``: the real PyG loader; ``pyg-native-sampler``: PyG's loader around our sampler."""

from __future__ import annotations

import importlib.util
import warnings
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gnnbench.check.hops import Hop
from gnnbench.minibatch import MiniBatch
from gnnbench.models.pyg_block import PygBlock
from gnnbench.sampling.build import build_sampler
from gnnbench.systems.base import Missing
from gnnbench.systems.native import native_missing
from gnnbench.systems.training import TrainingSystem


def _extension_missing() -> Missing | None:
    if any(importlib.util.find_spec(name) for name in ("pyg_lib", "torch_sparse")):
        return None
    return Missing(
        "PyG's NeighborLoader needs pyg-lib or torch-sparse, and neither is installed",
        "pip install --no-build-isolation torch-scatter==2.1.2 torch-sparse==0.6.18"
        " (builds from source; half an hour on two cores)",
    )


class PygBase(TrainingSystem):
    """PyG's loader and message passing; a subclass supplies the sampler inside the loader."""

    devices = ("cpu",)
    framework = "pyg"
    frontiers: ClassVar[tuple[str, ...]] = ("new",)
    _loader: Any

    def _data(self) -> Any:
        from torch_geometric.data import Data

        graph = self.graph
        data = Data(x=graph.features, y=graph.labels)
        data.num_nodes = graph.num_nodes
        return data

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """PyG's ``SamplerOutput``, by the loader's own collate function."""
        return self._loader.collate_fn(seeds)

    def load(self, drawn: Any) -> Tensor:
        """Features by the loader's own filter function."""
        x: Tensor = self._loader.filter_fn(drawn).x
        return x

    def _hop_bounds(self, drawn: Any) -> list[tuple[int, int]]:
        """Nodes and edges known after each hop, from the seeds on (hop 0).

        torch-sparse does not report them, but it numbers nodes as it meets them and expands them
        in that order: the edges of a hop are those that end in the nodes of the hop before.
        """
        nodes = int(drawn.metadata[0].numel())
        bounds = [(nodes, 0)]
        edges = 0
        for _ in self.cell.fanouts:
            edges = int(torch.searchsorted(drawn.col, nodes))
            if edges:
                nodes = max(nodes, int(drawn.row[:edges].max()) + 1)
            bounds.append((nodes, edges))
        return bounds

    def blocks(self, drawn: Any) -> list[Any]:
        """Layer by layer what PyG's ``trim_to_layer`` leaves: the hops that the layer needs."""
        edge_index = torch.stack([drawn.row, drawn.col])
        bounds = self._hop_bounds(drawn)
        return [
            PygBlock(edge_index[:, :edges], num_src=nodes, num_dst=num_dst)
            for (num_dst, _), (nodes, edges) in reversed(list(pairwise(bounds)))
        ]

    def input_nodes(self, drawn: Any) -> Tensor:
        """All sampled nodes, seeds first."""
        nodes: Tensor = drawn.node
        return nodes

    def seeds(self, drawn: Any) -> Tensor:
        """Seeds of the batch."""
        nodes: Tensor = drawn.node[: drawn.metadata[0].numel()]
        return nodes

    def hop_sizes(self, drawn: Any) -> list[tuple[Tensor, int]]:
        """Destinations (nodes first seen at the hop before) and edges by hop."""
        bounds = self._hop_bounds(drawn)
        firsts = [0, *(nodes for nodes, _ in bounds)]
        return [
            (drawn.node[first:last], edges - before)
            for first, (last, before), (_, edges) in zip(firsts, bounds, bounds[1:], strict=False)
        ]

    def hops(self, drawn: Any) -> list[Hop]:
        """Edges in neutral form."""
        edge_src, edge_dst = _ids(drawn.node[drawn.row]), _ids(drawn.node[drawn.col])
        positions = _ids(drawn.edge)
        hops, start = [], 0
        for dst, count in self.hop_sizes(drawn):
            end = start + count
            hops.append(
                Hop(_ids(dst), edge_dst[start:end], edge_src[start:end], positions[start:end])
            )
            start = end
        return hops

    def block_tensors(self, drawn: Any) -> list[Tensor]:
        """Rows, columns and nodes of the one subgraph that serves all layers."""
        return [drawn.row, drawn.col, drawn.node]

    def convert(self, batch: MiniBatch) -> list[Any]:
        """Our blocks in PyG's terms."""
        return [
            PygBlock(
                torch.stack(
                    [
                        b.indices.long(),
                        torch.repeat_interleave(torch.arange(b.num_dst), b.indptr.diff().long()),
                    ]
                ),
                b.num_src,
                b.num_dst,
            )
            for b in batch.blocks
        ]


class Pyg(PygBase):
    """The real ``NeighborLoader``, its sampler from pyg-lib or torch-sparse."""

    name = "pyg"
    summary = "the real PyG: NeighborLoader with its own sampler, message passing"
    stand_in = "pyg-native-sampler"
    picks: ClassVar[tuple[str, ...]] = ("pyg",)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG and one of its sampling extensions must be installed."""
        return _extension_missing()

    def build_backend(self) -> None:
        """A ``NeighborLoader`` over the same graph, its edges given sorted by destination."""
        from torch_geometric.loader import NeighborLoader

        graph = self.graph
        data = self._data()
        dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
        data.edge_index = torch.stack([graph.indices.long(), dst])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pyg-lib.*")
            self._loader = NeighborLoader(
                data,
                num_neighbors=list(self.cell.fanouts),
                input_nodes=None,
                is_sorted=True,
                filter_per_worker=False,
                batch_size=self.cell.batch_size,
            )


class PygNativeSampler(PygBase):
    """PyG's ``NodeLoader`` around our sampler, for machines without PyG's extension."""

    name = "pyg-native-sampler"
    summary = "PyG's NodeLoader and message passing around the baseline's sampler"
    picks: ClassVar[tuple[str, ...]] = ("floyd", "reservoir")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built."""
        return native_missing()

    def build_backend(self) -> None:
        """Our sampler as a PyG ``BaseSampler``."""
        from torch_geometric.loader import NodeLoader

        self._sampler = build_sampler(
            "hop-by-hop",
            self.graph,
            self.cell.fanouts,
            seed=self.cell.seed,
            pick=self.pick,
            frontier=self.frontier,
        ).as_pyg()
        self._loader = NodeLoader(
            self._data(),
            node_sampler=self._sampler,
            input_nodes=None,
            filter_per_worker=False,
            batch_size=self.cell.batch_size,
        )

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """As PyG's, with the batch's place in the epoch told to our sampler."""
        self._sampler.set_epoch(epoch, batch)
        return super().sample(seeds, epoch, batch)


def _ids(t: Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    return t.numpy().astype(np.int64)
