"""A point at which float32 and float64 must agree on every kink, and so on the gradient.

Gradients jump where a pre-activation crosses 0, so that a correct float32 system and the float64
reference may differ there by any amount. The rows of a graph are often such a point: thousands of
equal, constant or zero rows put a whole column of pre-activations on one side, or on 0 itself. The
gate therefore replaces the rows by random ones, and keeps the block's structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels import rng
from gnnbench.models import reference
from gnnbench.models.error_bounds import Bounded
from gnnbench.models.weights import LayerWeights

# Products with 0 and sums of 0 are exact: a row of few values has a small error in any order.
VALUES_PER_ROW = 4
ROUNDS, STUCK = 20, 4


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


def in_doubt(
    model: str, weights: Sequence[LayerWeights], batch: MiniBatch, x: Tensor
) -> tuple[Tensor, Tensor]:
    """Nodes whose rows move a value in doubt, bool ``[num_src]``, and seeds that depend on one,
    bool ``[num_seeds]``.

    That is a pre-activation of the float64 reference not further from 0 than a right float32
    computation may be from it (:mod:`gnnbench.models.error_bounds`), of a ReLU within a layer or
    between
    two, or of the LeakyReLU over the scores of a destination's edges. ``batch`` has the cumulative
    frontier: a destination has the same local id in every block.
    """
    rows = Bounded.exact(x)
    return rows.again, reference.forward(model, weights, batch.blocks, rows).doubt


def generic_point(
    model: str, weights: Sequence[LayerWeights], batch: MiniBatch, seed: int
) -> Point:
    """A point of the batch's blocks, drawn from ``seed``.

    Rows of nodes in doubt are drawn again and the others kept, for at most ``ROUNDS``
    rounds: among 300,000 pre-activations a fresh draw of all rows nearly always has one in doubt.
    All are after ``STUCK`` rounds with the same in doubt: a row may be behind closed ReLUs, and
    move nothing. What is then left in doubt, in very wide models, is left out by ``back``.
    ``batch`` has the cumulative frontier.
    """
    generator = torch.Generator().manual_seed(rng.key(seed, 0, "generic point"))
    dim, classes = weights[0].tensors()[0].shape[1], weights[-1].tensors()[-1].numel()
    x = _rows(batch.blocks[0].num_src, dim, generator)
    stuck, before = 0, torch.zeros(x.shape[0], dtype=torch.bool)
    for _ in range(ROUNDS):
        nodes, seeds = in_doubt(model, weights, batch, x)
        if not nodes.any():
            break
        stuck = stuck + 1 if torch.equal(nodes, before) else 0
        before = nodes
        ids = (nodes if stuck < STUCK else torch.ones_like(nodes)).nonzero().squeeze(1)
        x[ids] = _rows(ids.numel(), dim, generator)
    else:
        seeds = in_doubt(model, weights, batch, x)[1]
    back = torch.randn((seeds.numel(), classes), generator=generator)
    return Point(x, back * ~seeds.unsqueeze(1), int((~seeds).sum()))


def _rows(n: int, dim: int, generator: torch.Generator) -> Tensor:
    """Values of 0.5 to 1.5, ``VALUES_PER_ROW`` in a row at random columns, float32 ``[n, dim]``.

    None is near 0, for what a row of a small norm is divided by, and by how much, is not.
    """
    values = torch.rand((n, dim), generator=generator) + 0.5
    values = values.where(torch.rand((n, dim), generator=generator) < 0.5, -values)
    if dim <= VALUES_PER_ROW:
        return values
    columns = torch.rand((n, dim), generator=generator).topk(VALUES_PER_ROW, 1).indices
    return torch.zeros(n, dim).scatter(1, columns, values.gather(1, columns))
