"""Neighbour sampling hop by hop, with a dictionary as the id map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.reference import pick as picks
from gnnbench.kernels.reference import rng

_DRAWS_AT_ONCE = 1 << 20  # bounds the memory of the vectorised generator


class _Graph:
    """The CSC and the pick's tables as numpy arrays."""

    def __init__(self, indptr: Tensor, indices: Tensor, pick: PickSpec) -> None:
        self.indptr: npt.NDArray[np.int64] = indptr.numpy()
        self.indices: npt.NDArray[np.int32] | npt.NDArray[np.int64] = indices.numpy()
        self.pick = pick
        unsigned = pick.name == "weighted_alias"
        self.tables = [t.numpy().view(np.uint32) if unsigned else t.numpy() for t in pick.tables]

    def row(self, node: int) -> Sequence[int]:
        return self.indices[self.indptr[node] : self.indptr[node + 1]].tolist()

    def draws_needed(self, degree: int, fanout: int) -> int:
        if self.pick.name == "random_walk":
            walks, length, _ = self.pick.walk
            return 2 * walks * length if degree else 0
        return picks.draws_needed(self.pick.name, degree, fanout) if degree else 0

    def neighbors(self, node: int, fanout: int, draws: Sequence[int]) -> list[tuple[int, int]]:
        """A destination's neighbours, each with its position or, of random walks, its visits."""
        begin, end = int(self.indptr[node]), int(self.indptr[node + 1])
        if self.pick.name == "random_walk":
            if begin == end:
                return []
            walks, length, restart = self.pick.walk
            return picks.random_walk(self.row, node, walks, length, restart, fanout, draws)
        tables = [t[begin:end].tolist() for t in self.tables]
        chosen = picks.positions(self.pick.name, end - begin, fanout, draws, tables)
        return [(int(self.indices[begin + p]), begin + p) for p in chosen]


def _hop(
    graph: _Graph, dst: Sequence[int], fanout: int, key: int, hop: int, batch: int
) -> list[list[tuple[int, int]]]:
    """Neighbours of each destination, as ``_Graph.neighbors``."""
    nodes = np.asarray(dst, dtype=np.int64)
    degrees = graph.indptr[nodes + 1] - graph.indptr[nodes]
    needed = np.array([graph.draws_needed(int(d), fanout) for d in degrees], dtype=np.int64)
    out: list[list[tuple[int, int]]] = [[] for _ in dst]
    # Rows of like need share a call of the generator; a row's draws depend on its vertex alone.
    order = np.argsort(needed, kind="stable")
    at = 0
    while at < len(order):
        most = int(needed[order[at]])
        size = 1
        while at + size < len(order):
            grown = max(most, int(needed[order[at + size]]))
            if grown * (size + 1) > _DRAWS_AT_ONCE:
                break
            most, size = grown, size + 1
        rows = order[at : at + size]
        words = rng.draws(key, nodes[rows], hop, batch, most).tolist()
        for row, own in zip(rows.tolist(), words, strict=True):
            out[row] = graph.neighbors(int(nodes[row]), fanout, own)
        at += size
    return out


def _carried(rows: list[list[tuple[int, int]]], dtype: torch.dtype) -> Tensor:
    """What goes with each edge: positions (int64) or visits (float32)."""
    return torch.tensor([what for row in rows for _, what in row], dtype=dtype)


def sample_hop(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    dst: Tensor,
    fanout: int,
    *,
    pick: str | PickSpec,
    key: int,
    hop: int,
    batch: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As :func:`gnnbench.kernels.sampler.sample_hop`."""
    spec = PickSpec.of(pick)
    rows = _hop(_Graph(graph_indptr, graph_indices, spec), dst.tolist(), fanout, key, hop, batch)
    neighbors = torch.tensor([n for row in rows for n, _ in row], dtype=graph_indices.dtype)
    counts = torch.tensor([0] + [len(row) for row in rows])
    walks = spec.gives_weights
    positions = _carried([] if walks else rows, torch.int64)
    weights = _carried(rows if walks else [], torch.float32)
    return counts.cumsum(0).to(torch.int32), neighbors, positions, weights


def id_map(dst: Tensor, neighbors: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`gnnbench.kernels.sampler.id_map`."""
    local: dict[int, int] = {}
    for node in dst.tolist():
        local.setdefault(node, len(local))
    renamed = [local.setdefault(node, len(local)) for node in neighbors.tolist()]
    return torch.tensor(list(local), dtype=dst.dtype), torch.tensor(renamed, dtype=torch.int32)


def sample(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    pick: str | PickSpec,
    frontier: str,
    key: int,
    batch: int,
    with_positions: bool = False,
) -> MiniBatch:
    """As :func:`gnnbench.kernels.sampler.hop_by_hop`; the arguments are trusted."""
    spec = PickSpec.of(pick)
    graph = _Graph(graph_indptr, graph_indices, spec)
    local: dict[int, int] = {}  # insertion order is the order of first occurrence
    for node in seeds.tolist():
        local[node] = len(local)
    rows: list[list[tuple[int, int]]] = []  # of all hops under "new"
    blocks: list[Block] = []
    done = 0
    sampled_edges = 0
    for hop, fanout in enumerate(fanouts):
        known = list(local)
        if frontier == "cumulative":
            rows = []
            done = 0
        rows = rows + _hop(graph, known[done:], fanout, key, hop, batch)
        done = len(known)
        edges = [local.setdefault(node, len(local)) for row in rows for node, _ in row]
        offsets = np.cumsum([0] + [len(row) for row in rows])
        block = Block(
            torch.from_numpy(offsets.astype(np.int32)),
            torch.tensor(edges, dtype=torch.int32),
            torch.tensor(list(local), dtype=graph_indices.dtype),
            len(rows),
        )
        if spec.gives_weights:
            block.weights = _carried(rows, torch.float32)
        elif with_positions:
            block.positions = _carried(rows, torch.int64)
        blocks.append(block)
        sampled_edges = len(edges) if frontier == "new" else sampled_edges + len(edges)
    blocks.reverse()
    return MiniBatch(seeds, blocks, sampled_edges)


def weight_tables(graph_indptr: Tensor, weights: Tensor, kind: str) -> list[Tensor]:
    """As the operator ``weight_tables``; the arguments are trusted."""
    offsets, values = graph_indptr.tolist(), weights.double().tolist()
    rows = [picks.integer_weights(values[begin:end]) for begin, end in pairwise(offsets)]
    if kind == "prefix":
        sums = [s for row in rows for s in picks.prefix_table(row)]
        return [torch.tensor(sums, dtype=torch.int64)]
    tables = [picks.alias_table(row) for row in rows]
    columns = ([t for table in tables for t in table[column]] for column in (0, 1))
    return [torch.from_numpy(np.array(c, dtype=np.uint32).view(np.int32)) for c in columns]
