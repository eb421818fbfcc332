"""Quality of a partition: cut edges and balance of the parts.

``python -m gnnbench.distributed.partition ogbn_arxiv --parts 2,4`` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition

CHUNK_NODES = 1 << 20  # bounds the memory of edges' owners


@dataclass(frozen=True)
class Quality:
    """Counts of a partition of a graph; the tensors are int64 ``[parts]``.

    ``cut``       edges between nodes of two owners; parallel edges count each
    ``nodes``     nodes of each part
    ``edges``     edges into nodes of each part: the topology that vanilla stores there
    ``training``  training nodes of each part
    """

    cut: int
    num_edges: int
    nodes: Tensor
    edges: Tensor
    training: Tensor

    @classmethod
    def of(cls, graph: Graph, partition: Partition) -> Quality:
        """Count the edges cut, and the nodes and edges of each part."""
        owners, parts = partition.owners, partition.parts
        degrees = graph.indptr.diff()
        cut = 0
        for begin in range(0, graph.num_nodes, CHUNK_NODES):
            rows = slice(begin, begin + CHUNK_NODES)
            first = int(graph.indptr[begin])
            edges = graph.indices[first : first + int(degrees[rows].sum())]
            of_dst = torch.repeat_interleave(owners[rows], degrees[rows])
            cut += int((owners[edges.long()] != of_dst).sum())
        edges_of = torch.zeros(parts, dtype=torch.int64).index_add_(0, owners, degrees)
        return cls(
            cut,
            graph.num_edges,
            torch.bincount(owners, minlength=parts),
            edges_of,
            torch.bincount(owners[graph.train_idx], minlength=parts),
        )

    @property
    def cut_share(self) -> float:
        """Return the share of edges that are cut, 0 to 1."""
        return self.cut / max(1, self.num_edges)


def imbalance(counts: Tensor) -> float:
    """Return the largest of ``counts`` ``[parts]`` over their mean; 1 is balanced."""
    total = int(counts.sum())
    return int(counts.max()) * counts.numel() / total if total else 1.0
