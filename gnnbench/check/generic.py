"""A point at which float32 and float64 must agree on every ReLU, and so on the gradient.

Gradients jump where a pre-activation crosses 0, so that a right float32 system and the float64
reference may differ there by as much as they like. The rows of a graph are often such a point:
thousands of equal, constant or zero rows put a whole column of pre-activations on one side, or on
0 itself. The gate draws rows of its own instead, and keeps the block's structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gnnbench import rng
from gnnbench.minibatch import MiniBatch
from gnnbench.models.weights import LayerWeights
from gnnbench.reference import model as reference

# Products with 0 and sums of 0 are exact: a row of few values has a small error in any order.
VALUES_PER_ROW = 4
ROUNDS = 20
UNIT_ROUNDOFF = torch.finfo(torch.float32).eps / 2
# Exceeded by a sum of n terms with a probability of 2 n exp(-8^2 / 2) at most, some n / 10^13.
DEVIATIONS = 8.0
# Besides the products and the sums of a destination: the product, a mean's reciprocal and its
# product, the own row's term, the bias.
MORE_ROUNDINGS = 5


@dataclass(frozen=True)
class Point:
    """Where values and gradients are compared.

    ``x`` float32 ``[num_src, feature_dim]``, input rows of the batch; ``back`` float32
    ``[num_seeds, classes]``, what is sent back from the values: the gradient compared is that of
    ``(values * back).sum()``. ``back`` is 0 at seeds that depend on a pre-activation in doubt;
    ``seeds`` counts the others.
    """

    x: Tensor
    back: Tensor
    seeds: int


def error_factor(terms: Tensor) -> Tensor:
    """Bound of a float32 sum's error over the sum of its terms' magnitudes, whatever the order.

    The smaller of gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 3.1) and its form for independent roundings, with n under a root
    (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). ``terms``: n, float64.
    """
    u = UNIT_ROUNDOFF
    always = terms * u / (1 - terms * u)
    likely = torch.expm1(DEVIATIONS * terms.sqrt() * u + terms * u * u / (1 - u))
    return torch.minimum(always, likely)


def in_doubt(
    model: str, weights: Sequence[LayerWeights], batch: MiniBatch, x: Tensor
) -> list[Tensor]:
    """For each hidden layer, bool ``[num_dst]``: whether a destination has a value in doubt.

    That is a pre-activation of the float64 reference not further from 0 than a right float32
    computation may be from it: the layer's own roundings, bounded by the same layer over
    magnitudes, and the errors of its input, carried on by the magnitudes of the weights. A value
    that is 0 without any error (all its terms are 0) is in no doubt.
    """
    h = x.double()
    error = torch.zeros_like(h)
    doubts = []
    for w, block in zip(weights[:-1], batch.blocks[:-1], strict=True):
        size = w.mapped(torch.abs)
        largest = h.abs() + error
        reached = reference.neighbour_sums(block, largest) + largest[: block.num_dst]
        degree = block.indptr.diff().double()
        terms = (reached > 0).sum(1) + degree + MORE_ROUNDINGS
        own = error_factor(terms).unsqueeze(1) * reference.layer(model, size, block, largest)
        no_bias = replace(size, bias=torch.zeros_like(w.bias))
        handed_on = reference.layer(model, no_bias, block, error)
        z = reference.layer(model, w, block, h)
        found = own + handed_on
        doubt = (z.abs() <= found) & (found > 0)
        doubts.append(doubt.any(1))
        h = z.relu()
        error = found * ((z > 0) | doubt)
    return doubts


def generic_point(
    model: str, weights: Sequence[LayerWeights], batch: MiniBatch, seed: int
) -> Point:
    """A point of the batch's blocks, drawn from ``seed``.

    Rows of destinations in doubt are drawn again and the others kept, for at most ``ROUNDS``
    rounds: among 300,000 pre-activations a fresh draw of all rows nearly always has one in doubt.
    What is then left in doubt, in very wide models, is left out by ``back``. ``batch`` has the
    cumulative frontier.
    """
    generator = torch.Generator().manual_seed(rng.key(seed, 0, "generic point"))
    dim, classes = weights[0].neighbour.shape[1], weights[-1].bias.numel()
    x = _rows(batch.blocks[0].num_src, dim, generator)
    for _ in range(ROUNDS):
        doubts = in_doubt(model, weights, batch, x)
        again = torch.zeros(x.shape[0], dtype=torch.bool)
        for doubt in doubts:  # a destination has the same local id in every block
            again[: doubt.numel()] |= doubt
        ids = again.nonzero().squeeze(1)
        if not ids.numel():
            break
        x[ids] = _rows(ids.numel(), dim, generator)
    clean = ~_depends(batch, in_doubt(model, weights, batch, x))
    back = torch.randn((clean.numel(), classes), generator=generator)
    return Point(x, back * clean.unsqueeze(1), int(clean.sum()))


def _rows(n: int, dim: int, generator: torch.Generator) -> Tensor:
    """Normal values, ``VALUES_PER_ROW`` in a row at random columns, float32 ``[n, dim]``."""
    values = torch.randn((n, dim), generator=generator)
    if dim <= VALUES_PER_ROW:
        return values
    columns = torch.rand((n, dim), generator=generator).topk(VALUES_PER_ROW, 1).indices
    return torch.zeros(n, dim).scatter(1, columns, values.gather(1, columns))


def _depends(batch: MiniBatch, doubts: Sequence[Tensor]) -> Tensor:
    """Whether a seed's values depend on a destination in doubt, bool ``[num_seeds]``."""
    found = torch.zeros((batch.blocks[0].num_src, 1), dtype=torch.float64)
    for number, block in enumerate(batch.blocks):
        found = found[: block.num_dst] + reference.neighbour_sums(block, found)
        if number < len(doubts):
            found = found + doubts[number].unsqueeze(1)
        found = (found > 0).double()
    return found.squeeze(1) > 0
