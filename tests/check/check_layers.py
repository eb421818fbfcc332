"""Graphs with features that tell little, and layers broken on the way forward or back."""

from __future__ import annotations

import functools

import numpy as np
import torch

from gnnbench.check.layers import FixedBlock
from gnnbench.data.graph import Graph
from gnnbench.minibatch import Block
from gnnbench.models.native import Native
from gnnbench.models.stack import build
from gnnbench.reference.model import neighbour_sums

NODES, HIDDEN, FANOUTS = 4000, 16, (4, 3, 2)


def features(kind):
    """float32 ``[NODES, dim]`` and the number of classes."""
    i = torch.arange(NODES)
    if kind == "equal rows":
        return torch.eye(4)[i % 4], 4
    if kind == "constant":
        return torch.full((NODES, 6), 0.1), 4
    if kind == "zeros":
        return torch.zeros(NODES, 6), 4
    if kind == "one wide":
        return (i % 7 - 3).float().unsqueeze(1), 4
    assert kind == "one class"
    return torch.randn((NODES, 6), generator=torch.Generator().manual_seed(1)), 1


KINDS = ["equal rows", "constant", "zeros", "one wide", "one class"]


@functools.cache
def graph_of(kind):
    """4000 nodes of skewed degrees, one in ten isolated, with the features of the kind."""
    rng = np.random.default_rng(7)
    degree = np.minimum(rng.zipf(1.6, NODES), 90) * (rng.random(NODES) > 0.1)
    indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degree)]))
    indices = torch.from_numpy(rng.integers(0, NODES, int(indptr[-1])).astype(np.int32))
    x, classes = features(kind)
    none, every = torch.empty(0, dtype=torch.int64), torch.arange(NODES)
    labels = torch.zeros(NODES, dtype=torch.int64)
    return Graph("g", indptr, indices, x, labels, every, none, none, classes)


def fixed_block(graph, model, seed):
    seeds = torch.arange(seed % 50, NODES, 50)
    return FixedBlock.of(graph, model, HIDDEN, FANOUTS, seed, seeds)


class Looked:
    """A model as the gate drives it, its parameters' gradients changed by ``change`` on the way."""

    def __init__(self, framework, graph, model, seed, change=lambda named: named):
        dim, classes = graph.feature_dim, graph.num_classes
        self.framework, self.change = framework, change
        self.model = build(model, framework, dim, HIDDEN, classes, len(FANOUTS), seed)

    def forward(self, batch, x):
        with torch.no_grad():
            return self.model(self.framework.blocks(batch), x)

    def gradients(self, batch, x, back):
        rows = x.clone().requires_grad_()
        values = self.model(self.framework.blocks(batch), rows)
        parameters = list(self.model.parameters())
        mine, *found = torch.autograd.grad((values * back).sum(), [rows, *parameters])
        names = [name for name, _ in self.model.named_parameters()]
        changed = self.change(dict(zip(names, found, strict=True)))
        return mine, [(p, changed[name]) for name, p in zip(names, parameters, strict=True)]


def right_sums(block, x, mode, edge_weight=None):
    """Right, in plain float32."""
    own, degree = x[: block.num_dst], block.indptr.diff().float().unsqueeze(1)
    sums = neighbour_sums(block, x)
    return (sums + own) / (degree + 1) if mode == "gcn" else sums / degree.clamp_min(1)


def wrong_row(block, x, mode, edge_weight=None):
    """The last edge's neighbour and the row before it change places."""
    order, at = torch.arange(block.num_src), int(block.indices[-1])
    order[[at, at - 1]] = order[[at - 1, at]]
    return right_sums(block, x[order], mode)


def missing_edge(block, x, mode, edge_weight=None):
    """The block's first edge is left out of the sum; the degree counts it."""
    first = int((block.indptr > 0).nonzero()[0]) - 1
    lost = x[int(block.indices[0])] / (int(block.indptr[first + 1]) + (mode == "gcn"))
    rows = right_sums(block, x, mode)
    return rows.index_add(0, torch.tensor([first]), -lost.unsqueeze(0))


def lost_own_row(block, x, mode, edge_weight=None):
    rows = right_sums(block, x, mode)
    return rows - x[: block.num_dst] / (block.indptr.diff().unsqueeze(1) + 1)


def scaled(block, x, mode, edge_weight=None):
    return 1.001 * right_sums(block, x, mode)


def half(block, x, mode, edge_weight=None):
    return right_sums(block, x.to(torch.float16).float(), mode)


def bfloat(block, x, mode, edge_weight=None):
    return right_sums(block, x.to(torch.bfloat16).float(), mode)


def wrong_mean(block, x, mode, edge_weight=None):
    """The sum where a mean is asked for."""
    own = x[: block.num_dst] if mode == "gcn" else 0
    return neighbour_sums(block, x) + own


BROKEN = [wrong_row, missing_edge, lost_own_row, scaled, half, bfloat, wrong_mean]


def backward_only(broken):
    """Right values, and the gradient of ``broken``."""

    def aggregate(block: Block, x, mode, edge_weight=None):
        other = broken(block, x, mode)
        return other + (right_sums(block, x, mode) - other).detach()

    return Native(aggregate)
