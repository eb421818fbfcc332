"""How good a partition is: edges cut, and how even the parts are.

``python -m gnnbench.distributed.partition.quality ogbn_arxiv --parts 2 --parts 4`` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition

PIECE = 1 << 20  # nodes: the owners of all edges need not be in memory at once


@dataclass(frozen=True)
class Quality:
    """Counts of a partition of a graph, all int64 tensors ``[parts]`` but ``cut``.

    ``cut``       edges whose ends have two owners, parallel ones counted each
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
        """Count."""
        owners, parts = partition.owners, partition.parts
        degrees = graph.indptr.diff()
        cut = 0
        for begin in range(0, graph.num_nodes, PIECE):
            rows = slice(begin, begin + PIECE)
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
        """Edges cut of all edges, 0 to 1."""
        return self.cut / max(1, self.num_edges)


def imbalance(counts: Tensor) -> float:
    """The largest part over the mean one: 1 is even. ``counts`` ``[parts]``."""
    total = int(counts.sum())
    return int(counts.max()) * counts.numel() / total if total else 1.0
