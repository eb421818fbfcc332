"""Small graphs made by hand, from which samplers draw for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph

DEGREES = (*range(1, 13), 24, 48)
HUBS = (700, 3000, 5000)
WIDE_NODES = (1 << 24) + 64  # float32 cannot represent the last ids


@dataclass(frozen=True)
class Input:
    """A graph, and seeds int64 ``[n]`` to sample for."""

    graph: Graph
    seeds: Tensor


def graph_of(
    rows: Sequence[Sequence[int]],
    name: str,
    *,
    num_nodes: int = 0,
    first: int = 0,
    dtype: torch.dtype = torch.int64,
    weights: Sequence[float] | None = None,
) -> Graph:
    """Return the graph in which node ``first + i`` has the in-neighbours ``rows[i]``.

    ``num_nodes``: at least ``first + len(rows)``; other nodes have no in-neighbours. ``dtype``:
    that of ``indices``, int32 or int64. ``weights``: one for each edge, in the order of the rows.
    """
    num_nodes = max(num_nodes, first + len(rows))
    degrees = torch.zeros(num_nodes, dtype=torch.int64)
    degrees[first : first + len(rows)] = torch.tensor([len(row) for row in rows])
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    torch.cumsum(degrees, 0, out=indptr[1:])
    indices = torch.tensor([node for row in rows for node in row], dtype=dtype)
    return _graph(name, indptr, indices, weights)


def _graph(
    name: str, indptr: Tensor, indices: Tensor, weights: Sequence[float] | None = None
) -> Graph:
    nodes, none = indptr.numel() - 1, torch.empty(0, dtype=torch.int64)
    return Graph(
        name=name,
        indptr=indptr,
        indices=indices,
        features=torch.zeros(1, 1).expand(nodes, 1),
        labels=torch.zeros(1, dtype=torch.int64).expand(nodes),
        train_idx=none,
        val_idx=none,
        test_idx=none,
        num_classes=2,
        weights=None if weights is None else torch.tensor(weights, dtype=torch.float32),
    )


def stars(
    degrees: Sequence[int],
    copies: int,
    *,
    weights: Sequence[float] | None = None,
    dtype: torch.dtype = torch.int64,
) -> Input:
    """Return ``copies`` hubs of each degree, in turn, with neighbours in a shuffled order.

    Hubs share a pool of leaves; each has distinct ones. ``weights``: those of every hub's edges, in
    order, if all degrees equal their number. The seeds are all hubs.
    """
    pool = max(64, 2 * max(degrees))
    random = torch.Generator().manual_seed(1)
    rows = [
        torch.randperm(pool, generator=random)[:degree].tolist()
        for _ in range(copies)
        for degree in degrees
    ]
    all_weights = None if weights is None else [w for _ in rows for w in weights]
    graph = graph_of(rows, "stars", first=pool, dtype=dtype, weights=all_weights)
    return Input(graph, torch.arange(pool, pool + len(rows)))


def trees(degree: int, copies: int) -> Input:
    """Return roots with ``degree`` children, each of which has ``degree`` leaves.

    Nodes below ``64`` are leaves, then come the roots, then their children. The seeds are the
    roots. ``degree`` is at most 64.
    """
    pool, first = 64, 64 + copies
    random = torch.Generator().manual_seed(2)
    children = torch.arange(first, first + copies * degree).view(copies, degree).tolist()
    leaves = [
        torch.randperm(pool, generator=random)[:degree].tolist() for _ in range(copies * degree)
    ]
    return Input(graph_of([*children, *leaves], "trees", first=pool), torch.arange(pool, first))


def structure_inputs(dtype: torch.dtype, wide: bool) -> list[Input]:
    """Return the inputs of the structural checks, the smallest first.

    ``dtype``: that of node ids. ``wide``: also a graph of 2^24 + 64 nodes, whose edges connect the
    last 64.
    """
    made = [
        Input(graph_of([[], [0]], "one edge", dtype=dtype), torch.tensor([1])),
        Input(graph_of([[0, 1], [1], []], "self-loops", dtype=dtype), torch.tensor([1, 0, 2])),
        Input(
            graph_of([[1, 1, 1, 2], [2, 2], [0]], "parallel edges", dtype=dtype),
            torch.tensor([0, 2, 1]),
        ),
        Input(graph_of([[], [], [3], []], "isolated nodes", dtype=dtype), torch.tensor([1, 3, 0])),
        Input(
            graph_of([[(i + 1) % 9, (i + 4) % 9] for i in range(9)], "circle", dtype=dtype),
            torch.tensor([5, 0, 8]),
        ),
    ]
    some = stars(range(13), 1, dtype=dtype)
    made += [Input(some.graph, some.seeds.flip(0)), _mixed(dtype)]
    hubs = stars(HUBS, 1, dtype=dtype)
    made.append(hubs)
    if wide:
        first = WIDE_NODES - 64
        rows = [[first + (i * 7 + j * j + 1) % 64 for j in range(i % 9)] for i in range(64)]
        made.append(
            Input(
                graph_of(rows, "ids above 2^24", first=first, dtype=dtype),
                torch.arange(WIDE_NODES - 1, WIDE_NODES - 17, -1),
            )
        )
    return made


def mixed() -> Input:
    """Return a graph of 300 nodes with skewed degrees, hubs, parallel edges and self-loops."""
    return _mixed(torch.int64)


def _mixed(dtype: torch.dtype) -> Input:
    random = torch.Generator().manual_seed(3)
    degrees = (2.0 / torch.rand(300, generator=random)).long().clamp(max=250)
    degrees[::11] = 0
    rows = [torch.randint(300, (int(d),), generator=random).tolist() for d in degrees]
    graph = graph_of(rows, "mixed", dtype=dtype)
    return Input(graph, torch.randperm(300, generator=random)[:100])
