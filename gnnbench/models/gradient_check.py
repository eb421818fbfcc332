"""Comparison of a model's values and gradients on a fixed block with the float64 reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gnnbench.core.fanouts import at_most
from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.core.precision import BFLOAT16, FLOAT32, TF32, UNIT_ROUNDOFF
from gnnbench.datasets.graph import Graph
from gnnbench.kernels import rng
from gnnbench.kernels.reference import sampler
from gnnbench.models import reference
from gnnbench.models.generic_point import Point, generic_point
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import LayerWeights, layer_dims, make_weights

SEEDS = 32
# The most neighbours of a destination; a very wide model may need fewer for a generic point.
# Attention over a single one has no gradient: there it would not be looked at.
FANOUTS = (5, 2, 1)
VISITS = 4  # the most of a walk's
# Relative error that is always allowed. float32 sums in another order than the float64 reference's,
# through three layers, are off by some 1e-6; rounding once to float16 is off by 2e-4. Values of
# bfloat16 layers are usually off by 1 to 3 of its unit roundoffs.
TOLERANCES = {
    FLOAT32: 5e-5,
    TF32: 4 * UNIT_ROUNDOFF[TF32],
    BFLOAT16: 4 * UNIT_ROUNDOFF[BFLOAT16],
}
# A float32 computation rounds many times, each operand of a half-precision one 2^13 times as much.
# Gradients of bfloat16 layers (six models; ours, DGL's and PyG's) are off by up to 1.7 times the
# change of the reference.
MARGINS = {FLOAT32: 64.0, TF32: 3.0, BFLOAT16: 3.0}
ROUNDINGS = 3

Rounding = Callable[[Tensor], Tensor]
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
        visits: bool = False,
    ) -> FixedBlock:
        """The batch of the first ``seeds``, sampled by the reference; all else from ``seed``.

        ``visits``: every second block has visits of walks. Raises ``Fault`` where every seed
        depends on a pre-activation in doubt.
        """
        kind = MODELS[model]
        dims = layer_dims(graph.feature_dim, hidden, graph.num_classes, len(fanouts))
        weights = [w.mapped(Tensor.double) for w in make_weights(dims, kind, seed)]
        for most in FANOUTS[:-1] if kind.form == "attention" else FANOUTS:
            batch = sampler.sample(
                graph.indptr,
                graph.indices,
                seeds[:SEEDS].to(graph.indices.dtype),
                [int(at_most(f, most)) for f in fanouts],
                pick="floyd",
                frontier="cumulative",
                key=seed,
                batch=0,
            )
            if visits:
                batch = _with_visits(batch, seed)
            point = generic_point(model, weights, batch, seed)
            if 2 * point.seeds >= batch.seeds.numel():
                return cls(model, batch, weights, point)
        if point.seeds:
            return cls(model, batch, weights, point)
        raise Fault(
            f"gradients cannot be checked in float32 at hidden={hidden}: every point drawn has"
            " values too near a ReLU's kink; choose a narrower model"
        )


def _with_visits(batch: MiniBatch, seed: int) -> MiniBatch:
    """Visits on every second block, the input's first: equal weights are looked at as well."""
    generator = torch.Generator().manual_seed(rng.key(seed, 0, "visits"))
    blocks = list(batch.blocks)
    for at in range(0, len(blocks), 2):
        visits = torch.randint(1, VISITS + 1, (blocks[at].num_edges,), generator=generator)
        blocks[at] = replace(blocks[at], weights=visits.float())
    return replace(batch, blocks=blocks)


def check_forward(
    graph: Graph,
    fixed: FixedBlock,
    forward: Callable[[MiniBatch, Tensor], Tensor],
    precision: str = FLOAT32,
) -> float:
    """Raise ``Fault`` unless the framework's model gives the reference's values.

    On the graph's own rows, and on generic ones: rows of zeros tell nothing of a layer.

    ``forward`` takes a mini-batch of ours and its input rows float32, both on the CPU; its matrix
    products have the ``precision``. Returns the larger of the two relative errors in the Frobenius
    norm.
    """
    graphs_own = graph.features[fixed.batch.input_nodes.long()]
    return max(_forward_error(fixed, x, forward, precision) for x in (graphs_own, fixed.point.x))


def _forward_error(
    fixed: FixedBlock,
    x: Tensor,
    forward: Callable[[MiniBatch, Tensor], Tensor],
    precision: str,
) -> float:
    def right(rounded: Rounding) -> list[Tensor]:
        weights = [w.mapped(rounded) for w in fixed.weights]
        return [reference.forward(fixed.model, weights, fixed.batch.blocks, rounded(x.double()))]

    values = [forward(fixed.batch, x)]
    return _judge(["forward values on the fixed block"], values, right, precision)


def check_values(
    model: str,
    weights: Sequence[LayerWeights],
    blocks: Sequence[Block],
    x: Tensor,
    values: Tensor,
    precision: str = FLOAT32,
) -> float:
    """Raise ``Fault`` unless ``values`` ``[num_seeds, classes]`` of a batch are the reference's.

    ``weights`` float64; ``blocks`` with the input layer first, and ``x`` float32, their input rows,
    on the CPU. Returns the relative error in the Frobenius norm.
    """

    def right(rounded: Rounding) -> list[Tensor]:
        exact = [w.mapped(rounded) for w in weights]
        return [reference.forward(model, exact, blocks, rounded(x.double()))]

    return _judge(["forward values of a sampled batch"], [values], right, precision)


def check_backward(
    fixed: FixedBlock,
    gradients: Callable[[MiniBatch, Tensor, Tensor], Gradients],
    precision: str = FLOAT32,
) -> tuple[float, int]:
    """Raise ``Fault`` unless the framework's model gives the reference's gradients.

    They are compared whole, at a generic point (:mod:`gnnbench.models.generic_point`), with those
    that
    autograd finds of the float64 reference: of the input rows, of all matrices, of all biases.
    Where the model's are all 0 whatever the rows (a hidden layer that no row opens) so must be
    the framework's.

    ``gradients`` takes a mini-batch of ours, its input rows and ``back`` float32
    ``[num_seeds, classes]``, all on the CPU; it returns the gradient of ``(values * back).sum()``
    with regard to the rows, and the model's parameters in the order of its layers, each with its
    gradient; None is a gradient of 0. A parameter is known by its values, in whatever shape: what a
    framework keeps in a form of its own (joined, transposed) is not compared. Returns the largest
    relative error in the Frobenius norm and the number of weights that were compared.
    """
    point, leaves = fixed.point, [t for w in fixed.weights for t in w.tensors()]
    our_rows, parameters = gradients(fixed.batch, point.x, point.back)
    by_leaf = _gradients_by_leaf(leaves, parameters)
    # A bias of one value may be a sum that cancels: all biases together are not.
    groups = {
        f"gradients of the {what} on the fixed block": [
            at for at in by_leaf if leaves[at].dim() == dims
        ]
        for what, dims in (("weights", 2), ("biases", 1))
    }

    def joined(of_rows: Tensor, of_leaf: Callable[[int], Tensor]) -> list[Tensor]:
        return [of_rows, *(_flat([of_leaf(at) for at in group]) for group in groups.values())]

    def right(rounded: Rounding) -> list[Tensor]:
        rows = rounded(point.x.double()).requires_grad_()
        weights = [w.mapped(lambda t: rounded(t).requires_grad_()) for w in fixed.weights]
        values = reference.forward(fixed.model, weights, fixed.batch.blocks, rows)
        wanted = [rows, *(t for w in weights for t in w.tensors())]
        of_rows, *rest = torch.autograd.grad((values * rounded(point.back)).sum(), wanted)
        return joined(of_rows, rest.__getitem__)

    if our_rows is None:
        our_rows = torch.zeros_like(point.x)
    names = ["gradients of the input rows on the fixed block", *groups]
    ours = joined(our_rows, by_leaf.__getitem__)
    return _judge(names, ours, right, precision), len(by_leaf)


def _gradients_by_leaf(
    leaves: Sequence[Tensor], parameters: Sequence[tuple[Tensor, Tensor | None]]
) -> dict[int, Tensor]:
    """Gradients of the parameters that equal a leaf, by the leaf's number.

    All biases are 0; the first unmatched one belongs to the next layer.
    """
    left = [(p.detach().cpu().double(), g) for p, g in parameters]
    gradients = {}
    for number, leaf in enumerate(leaves):
        for at, (values, gradient) in enumerate(left):
            if torch.equal(values.flatten(), leaf.flatten()):
                gradients[number] = torch.zeros_like(leaf) if gradient is None else gradient.cpu()
                del left[at]
                break
    return gradients


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.flatten().double() for t in tensors]) if tensors else torch.zeros(0)


def _judge(
    names: Sequence[str],
    ours: Sequence[Tensor],
    right: Callable[[Rounding], list[Tensor]],
    precision: str,
) -> float:
    """The largest relative error in the Frobenius norm; raises ``Fault`` where one is too large.

    ``right`` computes the reference after rounding its operands. Where a sum cancels, the relative
    error of a correct system is large, too, and so is that of gradients in another precision than
    float32, which may open and close other ReLUs. An error above the tolerance of the precision is
    therefore compared with the change of the reference under one random rounding of each operand
    (Parker, Monte Carlo arithmetic, 1997), times its margin.
    """
    worst, tolerance = 0.0, TOLERANCES[precision]
    exact = right(torch.clone)
    for number, (name, mine, should) in enumerate(zip(names, ours, exact, strict=True)):
        if mine.shape != should.shape:
            raise Fault(
                f"{name} have the shape {list(mine.shape)} where {list(should.shape)} is right"
            )
        off, size = float((mine.cpu().double() - should).norm()), float(should.norm())
        allowed = tolerance * size
        if not off <= allowed:
            others = [right(_rounding(seed, precision))[number] for seed in range(ROUNDINGS)]
            changed = max(float((o - should).norm()) for o in others)
            allowed = max(allowed, MARGINS[precision] * changed)
        if not off <= allowed:
            error, limit = (off / size, allowed / size) if size else (float("inf"), tolerance)
            raise Fault(
                f"{name} are off by {error:.1e} (relative, Frobenius norm) where {limit:.0e} is"
                " allowed"
            )
        worst = max(worst, off / size if size else 0.0)
    return worst


def _rounding(seed: int, precision: str) -> Rounding:
    """Moves each value by the unit roundoff of a precision, up or down."""
    generator, unit = torch.Generator().manual_seed(seed), UNIT_ROUNDOFF[precision]

    def rounded(t: Tensor) -> Tensor:
        up = torch.randint(0, 2, t.shape, generator=generator)
        return t.double() * (1 + unit * (2 * up - 1))

    return rounded
