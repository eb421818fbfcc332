"""``dgl``: the real DGL package with fair settings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gnnbench.check.gate import Fault
from gnnbench.check.hops import Hop
from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import MiniBatch
from gnnbench.systems.base import Missing
from gnnbench.systems.dgl_import import dgl_missing, import_dgl
from gnnbench.systems.training import TrainingSystem

ID_TYPES = {"int32": torch.int32, "int64": torch.int64}


class Dgl(TrainingSystem):
    """DGL's ``NeighborSampler``, features and ``SAGEConv`` layers.

    DGL 1.1.3's fused CPU sampler with int32 ids does not reset its map between calls and draws
    fewer edges from the second call on; with int64 ids it is right, and that is the default here.
    The broken setting can be asked for: the gate ends it as ``incorrect``.
    """

    name = "dgl"
    summary = "the real DGL: NeighborSampler, host features, its own layers"
    devices = ("cpu",)
    framework = "dgl"
    picks: ClassVar[tuple[str, ...]] = ("dgl",)
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative",)
    options: ClassVar[dict[str, str]] = {
        "fused": "true (default): the fused sampler; false: sample_neighbors and to_block by hop",
        "id_type": "int64 (default) or int32: id type of DGL's graph",
    }

    option_values: ClassVar[dict[str, tuple[Any, ...]]] = {
        "fused": (True, False),
        "id_type": tuple(ID_TYPES),
    }

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """DGL must be installed."""
        return dgl_missing()

    def build_backend(self) -> None:
        """DGL's graph over the same CSC, and one sampler object for the system's life."""
        dgl = import_dgl()
        self._dgl = dgl
        id_type = ID_TYPES[self.cell.options.get("id_type", "int64")]
        fused = self.cell.options.get("fused", True)
        graph = self.graph
        if id_type is torch.int32 and graph.num_edges >= 2**31:
            raise UnsupportedError("a graph of 2^31 edges or more needs -o dgl.id_type=int64")
        csc = (graph.indptr.to(id_type), graph.indices.to(id_type), torch.empty(0, dtype=id_type))
        self._graph = dgl.graph(("csc", csc), num_nodes=graph.num_nodes).formats(["csc"])
        self._id_type = id_type
        # DGL's fanouts are given from the input layer to the seeds.
        self._sampler = dgl.dataloading.NeighborSampler(
            list(reversed(self.cell.fanouts)), fused=fused
        )

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """(input nodes, seeds, blocks) as DGL returns them."""
        return self._sampler.sample(self._graph, seeds.to(self._id_type))

    def load(self, drawn: Any) -> Tensor:
        """DGL's CPU feature fetch is ``index_select``."""
        return torch.index_select(self.graph.features, 0, drawn[0])

    def blocks(self, drawn: Any) -> list[Any]:
        """DGL's blocks."""
        return list(drawn[2])

    def input_nodes(self, drawn: Any) -> Tensor:
        """Global ids of the input block's sources."""
        nodes: Tensor = drawn[0]
        return nodes

    def seeds(self, drawn: Any) -> Tensor:
        """Seeds of the batch."""
        nodes: Tensor = drawn[1]
        return nodes

    def hop_sizes(self, drawn: Any) -> list[tuple[Tensor, int]]:
        """Destinations and edges by hop."""
        nid = self._dgl.NID
        return [(b.dstdata[nid], b.num_edges()) for b in reversed(drawn[2])]

    def hops(self, drawn: Any) -> list[Hop]:
        """Edges in neutral form; the edge ids of a graph built from CSC are its positions."""
        hops = []
        for block in reversed(drawn[2]):
            src, dst = block.edges()
            nodes = block.srcdata[self._dgl.NID]
            if src.numel() and int(src.max()) >= nodes.numel():
                raise Fault(
                    f"an edge's source has local id {int(src.max())} in a block of"
                    f" {nodes.numel()} source nodes"
                )
            hops.append(
                Hop(
                    dst=_ids(block.dstdata[self._dgl.NID]),
                    edge_dst=_ids(block.dstdata[self._dgl.NID][dst.long()]),
                    edge_src=_ids(nodes[src.long()]),
                    positions=_ids(block.edata[self._dgl.EID]),
                )
            )
        return hops

    def convert(self, batch: MiniBatch) -> list[Any]:
        """Our blocks as DGL blocks."""
        return [
            self._dgl.create_block(
                ("csc", (b.indptr, b.indices, torch.empty(0, dtype=torch.int32))),
                num_src_nodes=b.num_src,
                num_dst_nodes=b.num_dst,
            )
            for b in batch.blocks
        ]


def _ids(t: Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    return t.numpy().astype(np.int64)
