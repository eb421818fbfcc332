"""Neighbour sampling hop by hop, with a dictionary as the id map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.minibatch import Block, MiniBatch
from gnnbench.reference import pick as picks
from gnnbench.reference import rng

_DRAWS_AT_ONCE = 1 << 20  # bounds the memory of the vectorised generator


def _hop(
    indptr: npt.NDArray[np.int64],
    dst: Sequence[int],
    fanout: int,
    pick: str,
    key: int,
    hop: int,
    batch: int,
) -> list[list[int]]:
    """Positions drawn by each destination, as offsets into the graph's indices."""
    nodes = np.asarray(dst, dtype=np.int64)
    begins, ends = indptr[nodes], indptr[nodes + 1]
    needed = np.array(
        [picks.draws_needed(pick, int(d), fanout) for d in ends - begins], dtype=np.int64
    )
    out: list[list[int]] = [[] for _ in dst]
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
            begin, degree = int(begins[row]), int(ends[row] - begins[row])
            out[row] = [begin + p for p in picks.positions(pick, degree, fanout, own)]
        at += size
    return out


def sample_hop(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    dst: Tensor,
    fanout: int,
    *,
    pick: str,
    key: int,
    hop: int,
    batch: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As :func:`gnnbench.ops.sampler.sample_hop`."""
    rows = _hop(graph_indptr.numpy(), dst.tolist(), fanout, pick, key, hop, batch)
    positions = torch.tensor([p for row in rows for p in row], dtype=torch.int64)
    counts = torch.tensor([0] + [len(row) for row in rows])
    none = torch.empty(0, dtype=torch.float32)
    return counts.cumsum(0).to(torch.int32), graph_indices[positions], positions, none


def id_map(dst: Tensor, neighbors: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`gnnbench.ops.sampler.id_map`."""
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
    pick: str,
    frontier: str,
    key: int,
    batch: int,
    with_positions: bool = False,
) -> MiniBatch:
    """As :func:`gnnbench.ops.sampler.sample`; the arguments are trusted."""
    indptr, indices = graph_indptr.numpy(), graph_indices.numpy()
    local: dict[int, int] = {}  # insertion order is the order of first occurrence
    for node in seeds.tolist():
        local[node] = len(local)
    rows: list[list[int]] = []  # edge positions per destination, of all hops under "new"
    blocks: list[Block] = []
    done = 0
    sampled_edges = 0
    for hop, fanout in enumerate(fanouts):
        known = list(local)
        if frontier == "cumulative":
            rows = []
            done = 0
        rows = rows + _hop(indptr, known[done:], fanout, pick, key, hop, batch)
        done = len(known)
        positions = np.array([p for row in rows for p in row], dtype=np.int64)
        neighbors = indices[positions].tolist()
        edges = [local.setdefault(node, len(local)) for node in neighbors]
        offsets = np.cumsum([0] + [len(row) for row in rows])
        blocks.append(
            Block(
                torch.from_numpy(offsets.astype(np.int32)),
                torch.tensor(edges, dtype=torch.int32),
                torch.tensor(list(local), dtype=graph_indices.dtype),
                len(rows),
                torch.from_numpy(positions) if with_positions else None,
            )
        )
        sampled_edges = len(edges) if frontier == "new" else sampled_edges + len(edges)
    blocks.reverse()
    return MiniBatch(seeds, blocks, sampled_edges)
