"""Difficult graphs, as sources and destinations in a shuffled order of edges, and loaders."""

import numpy as np
import pytest
import torch

from gnnbench.core.errors import MissingError
from gnnbench.kernels.dgl_import import require_dgl

try:
    dgl = require_dgl()
except MissingError:
    dgl = None
needs_dgl = pytest.mark.skipif(dgl is None, reason="DGL is not installed")

GRAPHS = (
    "self-loops", "parallel edges", "isolated nodes", "hubs", "directed cycle",
    "star", "complete", "one node", "disconnected", "real",
)  # fmt: skip


def edges_of(name, real_data=None):
    """(number of nodes, sources, destinations); edges lie in a random order."""
    rng = torch.Generator().manual_seed(3)
    any_of = lambda n, m: torch.randint(n, (2, m), generator=rng)  # noqa: E731
    line = torch.arange(12)
    if name == "self-loops":
        n, edges = 12, torch.cat([any_of(12, 30), torch.stack([line, line])], 1)
    elif name == "parallel edges":
        edges = any_of(9, 12)
        n, edges = 9, torch.cat([edges, edges, edges[:, :5]], 1)
    elif name == "isolated nodes":
        n, edges = 30, 3 * any_of(10, 25)
    elif name == "hubs":
        n = 60
        edges = any_of(n, 400)
        edges[1, :250] %= 2
        edges[0, 150:300] %= 3
    elif name == "directed cycle":
        n, edges = 12, torch.stack([line, (line + 1) % 12])
    elif name == "star":
        n, edges = 13, torch.stack([line + 1, torch.zeros_like(line)])
        edges = torch.cat([edges, edges.flip(0)[:, :4]], 1)
    elif name == "complete":
        n, edges = 12, torch.cartesian_prod(line, line).T
        edges = edges[:, edges[0] != edges[1]]
    elif name == "one node":
        n, edges = 1, torch.empty(2, 0, dtype=torch.int64)
    elif name == "disconnected":
        n, edges = 20, torch.cat([any_of(10, 30), 10 + any_of(10, 30)], 1)
    else:
        with np.load(real_data / "tolokers.npz") as arrays:
            n, edges = _first_nodes(arrays, 400)
    order = torch.randperm(edges.shape[1], generator=rng)
    return n, edges[0, order].clone(), edges[1, order].clone()


def _first_nodes(arrays, n):
    """The subgraph of the first n nodes."""
    indptr = torch.from_numpy(arrays["indptr"])[: n + 1]
    src = torch.from_numpy(arrays["indices"])[: int(indptr[-1])].long()
    edges = torch.stack([src, torch.repeat_interleave(torch.arange(n), indptr.diff())])
    return n, edges[:, src < n]


def csc_of(n, src, dst):
    """The in-neighbours by destination: offsets, neighbours, and each position's edge."""
    at = torch.argsort(dst, stable=True)
    indptr = torch.zeros(n + 1, dtype=torch.int64)
    indptr[1:] = torch.bincount(dst, minlength=n).cumsum(0)
    return indptr, src[at], at
