"""Graphs with degenerate features, and layers with broken forward or backward passes."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch.nn.functional import leaky_relu

from gnnbench.datasets.graph import Graph
from gnnbench.models.gradient_check import FixedBlock
from gnnbench.models.native import Native
from gnnbench.models.reference import edge_ends, edge_sums, neighbour_sums
from gnnbench.models.stack import build

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
    """A block with visit counts, which only PinSAGE uses."""
    seeds = torch.arange(seed % 50, NODES, 50)
    return FixedBlock.of(graph, model, HIDDEN, FANOUTS, seed, seeds, visits=True)


@functools.cache
def known_block(kind, model, seed):
    """The fixed block of a graph of this kind, cached."""
    return fixed_block(graph_of(kind), model, seed)


class CheckedModel:
    """A model as the gate runs it; ``change`` modifies its parameters' gradients."""

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
        inputs = [rows, *parameters]
        row_gradients, *gradients = torch.autograd.grad(
            (values * back).sum(), inputs, allow_unused=True
        )
        names = [name for name, _ in self.model.named_parameters()]
        changed = self.change(dict(zip(names, gradients, strict=True)))
        return row_gradients, [
            (p, changed[name]) for name, p in zip(names, parameters, strict=True)
        ]


def sums_and_degree(block, x, edge_weight):
    """Weighted sums of each destination's rows, and sums of its weights."""
    weights = torch.ones(block.num_edges) if edge_weight is None else edge_weight
    weights = weights.unsqueeze(1)
    return edge_sums(block, x[block.indices.long()] * weights), edge_sums(block, weights)


def right_sums(block, x, mode, edge_weight=None):
    """Correct, in plain float32."""
    sums, degree = sums_and_degree(block, x, edge_weight)
    if mode == "gcn":
        return (sums + x[: block.num_dst]) / (degree + 1)
    return sums / degree.where(degree > 0, 1.0) if mode == "mean" else sums


def wrong_row(block, x, mode, edge_weight=None):
    """Swaps the row of the last edge's neighbour with the row before it."""
    order, at = torch.arange(block.num_src), int(block.indices[-1])
    order[[at, at - 1]] = order[[at - 1, at]]
    return right_sums(block, x[order], mode, edge_weight)


def missing_edge(block, x, mode, edge_weight=None):
    """The first edge is missing in the sum, but counted in the degree."""
    return without(slice(0, 1), block, x, mode, edge_weight)


def missing_edges(block, x, mode, edge_weight=None):
    """The same of every third edge."""
    return without(slice(0, None, 3), block, x, mode, edge_weight)


def without(edges, block, x, mode, edge_weight):
    """Without these edges in the sums."""
    only = torch.zeros(block.num_edges)
    only[edges] = 1 if edge_weight is None else edge_weight[edges]
    lost, _ = sums_and_degree(block, x, only)
    _, degree = sums_and_degree(block, x, edge_weight)
    if mode != "sum":
        lost = lost / (degree + 1 if mode == "gcn" else degree.clamp_min(1))
    return right_sums(block, x, mode, edge_weight) - lost


def lost_own_row(block, x, mode, edge_weight=None):
    rows = right_sums(block, x, mode)
    return rows - x[: block.num_dst] / (block.indptr.diff().unsqueeze(1) + 1)


def lost_visits(block, x, mode, edge_weight=None):
    return right_sums(block, x, mode)


def scaled(block, x, mode, edge_weight=None):
    return 1.001 * right_sums(block, x, mode, edge_weight)


def half(block, x, mode, edge_weight=None):
    return right_sums(block, x.to(torch.float16).float(), mode, edge_weight)


def bfloat(block, x, mode, edge_weight=None):
    return right_sums(block, x.to(torch.bfloat16).float(), mode, edge_weight)


def wrong_mean(block, x, mode, edge_weight=None):
    """The sum instead of the mean."""
    own = x[: block.num_dst] if mode == "gcn" else 0
    return neighbour_sums(block, x) + own


def right_attend(block, z, of_source, of_destination, slope):
    """Correct, in plain float32."""
    sources, ends = block.indices.long(), edge_ends(block)
    scores = leaky_relu(of_source[sources] + of_destination[ends], slope)
    return weighted(block, z, softmax(block, scores))


def softmax(block, scores):
    shares = (scores - scores.detach().max()).exp()
    return shares / edge_sums(block, shares)[edge_ends(block)]


def weighted(block, z, shares):
    return edge_sums(block, z[block.indices.long()] * shares.unsqueeze(2))


def no_attention(block, z, of_source, of_destination, slope):
    """Equal weights for all neighbours."""
    return right_attend(block, z, 0 * of_source, 0 * of_destination, slope)


def wrong_slope(block, z, of_source, of_destination, slope):
    return right_attend(block, z, of_source, of_destination, 0.01)


def lost_destination(block, z, of_source, of_destination, slope):
    return right_attend(block, z, of_source, 0 * of_destination, slope)


def softmax_over_all(block, z, of_source, of_destination, slope):
    """Softmax over all edges of the block instead of each destination's."""
    ends = edge_ends(block)
    scores = leaky_relu(of_source[block.indices.long()] + of_destination[ends], slope)
    return weighted(block, z, scores.softmax(0))


def half_shares(block, z, of_source, of_destination, slope):
    sources, ends = block.indices.long(), edge_ends(block)
    scores = leaky_relu(of_source[sources] + of_destination[ends], slope)
    return weighted(block, z, softmax(block, scores).to(torch.float16).float())


def heads_swapped(block, z, of_source, of_destination, slope):
    heads = right_attend(block, z, of_source, of_destination, slope)
    return heads.roll(1, 1) if heads.shape[1] > 1 else 1.5 * heads


BROKEN_ATTENTION = [
    no_attention, wrong_slope, lost_destination, softmax_over_all, half_shares, heads_swapped,
]  # fmt: skip


def no_attention_gradient(block, z, of_source, of_destination, slope):
    """As in FastGL's artifact, attention weights are constants in the backward pass."""
    return right_attend(block, z, of_source.detach(), of_destination.detach(), slope)


def no_source_gradient(block, z, of_source, of_destination, slope):
    return right_attend(block, z, of_source.detach(), of_destination, slope)


def no_destination_gradient(block, z, of_source, of_destination, slope):
    return right_attend(block, z, of_source, of_destination.detach(), slope)


def no_gradient_of_rows(block, z, of_source, of_destination, slope):
    return right_attend(block, z.detach(), of_source, of_destination, slope)


LOST_GRADIENTS = [
    no_attention_gradient, no_source_gradient, no_destination_gradient, no_gradient_of_rows,
]  # fmt: skip


BROKEN = [
    wrong_row, missing_edge, missing_edges, lost_own_row, lost_visits, scaled, half, bfloat,
    wrong_mean,
]  # fmt: skip


def broken_for(model):
    """Broken aggregations that are wrong for a model.

    Without own rows a node that drew no neighbours has a row of 0, which a single edge may have.
    """
    with_own_rows = ["gcn", "graphsage", "gin", "pinsage"]
    own = {
        lost_own_row: ["gcn"], lost_visits: ["pinsage", "gcn-symmetric"],
        wrong_mean: ["gcn", "graphsage"], wrong_row: with_own_rows, missing_edge: with_own_rows,
    }  # fmt: skip
    return [b for b in BROKEN if model in own.get(b, [model])]


def backward_only(broken):
    """Correct values, and the gradient of ``broken``."""

    def aggregate(*args):
        other, right = broken(*args), right_attend if attention else right_sums
        return other + (right(*args) - other).detach()

    attention = broken in BROKEN_ATTENTION
    return Native(right_sums, aggregate) if attention else Native(aggregate, right_attend)
