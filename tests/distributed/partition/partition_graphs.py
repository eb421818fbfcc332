"""Small graphs of which partitions are known."""

from dataclasses import replace

import torch

from gnnbench.datasets.graph import Graph


def graph_of(rows, train=(), **changes):
    """The graph in which ``rows[v]`` are the in-neighbours of v; feature rows tell their node."""
    n = len(rows)
    none = torch.empty(0, dtype=torch.int64)
    graph = Graph(
        name="written",
        indptr=torch.tensor([0, *(len(r) for r in rows)]).cumsum(0),
        indices=torch.tensor([u for r in rows for u in r], dtype=torch.int32),
        features=torch.arange(3 * n, dtype=torch.float32).view(n, 3),
        labels=torch.arange(n) % 2,
        train_idx=torch.tensor(train, dtype=torch.int64),
        val_idx=none,
        test_idx=none,
        num_classes=2,
    )
    return replace(graph, **changes)


def communities(sizes, seed=3, inside=8, across=1, every=(2, 5)):
    """Groups of nodes with most edges inside, ids shuffled.

    Every so many-th node of the first group trains, and of the others.
    """
    draw = torch.Generator().manual_seed(seed)
    n = sum(sizes)
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    begins = torch.tensor([0, *sizes]).cumsum(0)
    named = torch.randperm(n, generator=draw)
    rows = [[] for _ in range(n)]
    for v in range(n):
        size, begin = sizes[group[v]], int(begins[group[v]])
        near = begin + torch.randint(size, (inside,), generator=draw)
        far = torch.randint(n, (across,), generator=draw)
        rows[named[v]] = named[torch.cat([near, far])].tolist()
    at = torch.arange(n)
    trains = torch.where(group == 0, at % every[0] == 0, at % every[1] == 0)
    train = named[trains].sort().values.tolist()
    return graph_of(rows, train)
