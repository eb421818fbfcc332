"""A model's values and gradients on a fixed block, held against the float64 reference's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.check.gate import Fault
from gnnbench.check.generic import Point, generic_point
from gnnbench.data.graph import Graph
from gnnbench.minibatch import MiniBatch
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import LayerWeights, layer_dims, make_weights
from gnnbench.reference import model as reference
from gnnbench.reference import sampler

SEEDS = 32
# The most neighbours of a destination; a very wide model may need fewer for a generic point.
FANOUTS = (5, 2, 1)
# float32 sums in another order than the float64 reference's, through three layers, are off by some
# 1e-6; rounding once to float16 is off by 2e-4.
TOLERANCE = 5e-5

Gradients = tuple[Tensor | None, list[tuple[Tensor, Tensor | None]]]


@dataclass(frozen=True)
class FixedBlock:
    """A batch of the graph's, the weights that a model starts with, and a generic point of both.

    ``weights`` in float64.
    """

    model: str
    batch: MiniBatch
    weights: list[LayerWeights]
    point: Point

    @classmethod
    def of(
        cls,
        graph: Graph,
        model: str,
        hidden: int,
        fanouts: Sequence[int],
        seed: int,
        seeds: Tensor,
    ) -> FixedBlock:
        """The batch of the first ``seeds``, sampled by the reference; all else from ``seed``.

        Raises ``Fault`` where every seed depends on a pre-activation in doubt.
        """
        dims = layer_dims(graph.feature_dim, hidden, graph.num_classes, len(fanouts))
        weights = [w.mapped(Tensor.double) for w in make_weights(dims, MODELS[model], seed)]
        for most in FANOUTS:
            batch = sampler.sample(
                graph.indptr,
                graph.indices,
                seeds[:SEEDS].to(graph.indices.dtype),
                [min(f, most) for f in fanouts],
                pick="floyd",
                frontier="cumulative",
                key=seed,
                batch=0,
            )
            point = generic_point(model, weights, batch, seed)
            if 2 * point.seeds >= batch.seeds.numel():
                return cls(model, batch, weights, point)
        if point.seeds:
            return cls(model, batch, weights, point)
        raise Fault(
            f"gradients cannot be checked in float32 at hidden={hidden}: every point drawn has"
            " values too near a ReLU's kink; choose a narrower model"
        )


def check_forward(
    graph: Graph, fixed: FixedBlock, forward: Callable[[MiniBatch, Tensor], Tensor]
) -> float:
    """Raise ``Fault`` unless the framework's model gives the reference's values.

    On the graph's own rows, and on generic ones: rows of zeros tell nothing of a layer.

    ``forward`` takes a mini-batch of ours and its input rows float32, both on the CPU. Returns the
    larger of the two relative errors in the Frobenius norm.
    """
    worst = 0.0
    for x in (graph.features[fixed.batch.input_nodes.long()], fixed.point.x):
        right = reference.forward(fixed.model, fixed.weights, fixed.batch.blocks, x)
        error = _error(forward(fixed.batch, x), right)
        _refuse("forward values", error)
        worst = max(worst, error)
    return worst


def check_backward(
    fixed: FixedBlock, gradients: Callable[[MiniBatch, Tensor, Tensor], Gradients]
) -> tuple[float, int]:
    """Raise ``Fault`` unless the framework's model gives the reference's gradients.

    They are compared whole, at a generic point (:mod:`gnnbench.check.generic`), with those that
    autograd finds of the float64 reference: of the input rows, of all matrices, of all biases.
    Where the model's are all 0 whatever the rows (a hidden layer that no row opens) so must be
    the framework's.

    ``gradients`` takes a mini-batch of ours, its input rows and ``back`` float32
    ``[num_seeds, classes]``, all on the CPU; it returns the gradient of ``(values * back).sum()``
    with regard to the rows, and the model's parameters in the order of its layers, each with its
    gradient; None is a gradient of 0. A parameter is known by its values: what a framework keeps
    in a form of its own (joined, transposed) is not compared. Returns the largest relative error in
    the Frobenius norm and the number of weights that were compared.
    """
    point = fixed.point
    rows = point.x.double().requires_grad_()
    weights = [w.mapped(lambda t: t.clone().requires_grad_()) for w in fixed.weights]
    leaves = [leaf for w in weights for leaf in w.tensors()]
    values = reference.forward(fixed.model, weights, fixed.batch.blocks, rows)
    right_rows, *right = torch.autograd.grad((values * point.back).sum(), [rows, *leaves])
    our_rows, parameters = gradients(fixed.batch, point.x, point.back)
    of_rows = _error(torch.zeros_like(right_rows) if our_rows is None else our_rows, right_rows)
    _refuse("gradients of the input rows", of_rows)
    worst, pairs = of_rows, _paired(leaves, right, parameters)
    # A bias of one value may be a sum that cancels: all biases together are not.
    for what, dims in (("weights", 2), ("biases", 1)):
        group = [(ours, exact) for ours, exact in pairs if exact.dim() == dims]
        if group:
            error = _error(*map(_joined, zip(*group, strict=True)))
            _refuse(f"gradients of the {what}", error)
            worst = max(worst, error)
    return worst, len(pairs)


def _paired(
    leaves: Sequence[Tensor],
    right: Sequence[Tensor],
    parameters: Sequence[tuple[Tensor, Tensor | None]],
) -> list[tuple[Tensor, Tensor]]:
    """Gradients of a framework's and of ours, of those weights that have equal values.

    Biases are all 0; the first left is the next layer's.
    """
    left = [(p.detach().cpu().double(), g) for p, g in parameters]
    pairs = []
    for leaf, gradient in zip(leaves, right, strict=True):
        for at, (values, ours) in enumerate(left):
            if torch.equal(values, leaf):
                found = torch.zeros_like(leaf) if ours is None else ours.cpu().double()
                pairs.append((found, gradient))
                del left[at]
                break
    return pairs


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.flatten() for t in tensors])


def _error(ours: Tensor, right: Tensor) -> float:
    """Relative error in the Frobenius norm; what is not 0 where it should be is infinitely off."""
    off, size = float((ours.cpu().double() - right).norm()), float(right.norm())
    if size == 0:
        return 0.0 if off == 0 else float("inf")
    return off / size


def _refuse(what: str, error: float) -> None:
    if not error <= TOLERANCE:
        raise Fault(
            f"{what} on the fixed block are off by {error:.1e} (relative, Frobenius norm)"
            f" where {TOLERANCE:.0e} is allowed"
        )
