"""The gate a system passes before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from gnnbench.check.hops import Hop, frontier_fault, structural_fault
from gnnbench.check.law import Law
from gnnbench.check.same import same_work
from gnnbench.data.graph import Graph
from gnnbench.minibatch import MiniBatch
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import LayerWeights, layer_dims, make_weights
from gnnbench.ops.picks import PickSpec
from gnnbench.reference import model as reference_model
from gnnbench.reference import sampler as reference_sampler

# A sampler that forgets to reset its state is right on its first call: look at several.
GATE_BATCHES = 5
# The reference is slow: what is compared with it holds about this many edges.
REFERENCE_EDGES = 100_000
FIXED_BLOCK_SEEDS = 32
# float32 sums in another order than the float64 reference's, through three layers.
FORWARD_TOLERANCE = 1e-4
# The same sums once more on the way back, and ReLUs that open or close at the last digit.
BACKWARD_TOLERANCE = 1e-3
SLOPE_STEP = 1e-6


class Fault(Exception):
    """What a gate found; its text is the reason of the row."""


def gate_seeds(batches: Sequence[Tensor]) -> list[Tensor]:
    """Seeds of the gate's consecutive batches; a short epoch is gone through more than once."""
    return [batches[i % len(batches)] for i in range(GATE_BATCHES)]


def check_structure(
    graph: Graph,
    fanouts: Sequence[int],
    frontier: str,
    seeds: Tensor,
    hops: Sequence[Hop],
    law: Law | None = None,
) -> None:
    """Raise ``Fault`` unless the hops drawn for ``seeds`` obey the law.

    That is ``law``, or the one of sampling without replacement.
    """
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    if len(hops) != len(fanouts):
        raise Fault(f"{len(hops)} hops were drawn where {len(fanouts)} are asked for")
    for number, (hop, fanout) in enumerate(zip(hops, fanouts, strict=True)):
        fault = structural_fault(indptr, indices, hop, fanout, law)
        if fault:
            raise Fault(f"hop {number + 1}: {fault}")
    fault = frontier_fault(hops, seeds.numpy(), frontier)
    if fault:
        raise Fault(fault)


def check_against_reference(
    graph: Graph,
    fanouts: Sequence[int],
    seeds: Tensor,
    draw: Callable[[Tensor], MiniBatch],
    *,
    pick: PickSpec,
    frontier: str,
    key: int,
) -> None:
    """Raise ``Fault`` unless our native sampler does the reference's work for the same key.

    ``draw`` samples the seeds it is given, as batch 0, with positions (random walks have none).
    Local ids may differ (see :mod:`gnnbench.check.same`).
    """
    per_seed = float(np.prod([f + 1 for f in fanouts]))
    few = seeds[: max(1, int(REFERENCE_EDGES / per_seed))]
    ours = draw(few).to("cpu")
    right = reference_sampler.sample(
        graph.indptr,
        graph.indices,
        few.to(graph.indices.dtype),
        list(fanouts),
        pick=pick,
        frontier=frontier,
        key=key,
        batch=0,
        with_positions=True,
    )
    fault = same_work(right, ours, frontier)
    if fault is not None:
        raise Fault(f"held against the reference (first), {fault}")


def check_features(graph: Graph, ids: Tensor, rows: Tensor) -> None:
    """Raise ``Fault`` unless ``rows`` are bit-equal to the feature table's."""
    right = graph.features[ids.cpu().long()]
    rows = rows.cpu()
    if rows.shape != right.shape or not torch.equal(
        rows.contiguous().view(torch.int32), right.contiguous().view(torch.int32)
    ):
        raise Fault("gathered feature rows differ from the feature table")


def _fixed_block(
    graph: Graph, model: str, hidden: int, fanouts: Sequence[int], seed: int, seeds: Tensor
) -> tuple[MiniBatch, Tensor, list[LayerWeights]]:
    batch = reference_sampler.sample(
        graph.indptr,
        graph.indices,
        seeds[:FIXED_BLOCK_SEEDS].to(graph.indices.dtype),
        [min(f, 5) for f in fanouts],
        pick="floyd",
        frontier="cumulative",
        key=seed,
        batch=0,
    )
    x = graph.features[batch.input_nodes.long()]
    dims = layer_dims(graph.feature_dim, hidden, graph.num_classes, len(fanouts))
    weights = make_weights(dims, MODELS[model], seed)
    return batch, x, weights


def check_forward(
    graph: Graph,
    model: str,
    hidden: int,
    fanouts: Sequence[int],
    seed: int,
    seeds: Tensor,
    forward: Callable[[MiniBatch, Tensor], Tensor],
) -> float:
    """Raise ``Fault`` unless the framework's model gives the reference's values on a fixed block.

    ``forward`` takes a mini-batch of ours and its input rows, both on the CPU. Returns the relative
    error in the Frobenius norm.
    """
    batch, x, weights = _fixed_block(graph, model, hidden, fanouts, seed, seeds)
    right = reference_model.forward(model, weights, batch.blocks, x)
    ours = forward(batch, x).cpu().double()
    error = float((ours - right).norm() / right.norm().clamp_min(1e-30))
    if not error <= FORWARD_TOLERANCE:
        raise Fault(
            f"forward values on the fixed block are off by {error:.1e} (relative, Frobenius norm)"
            f" where {FORWARD_TOLERANCE:.0e} is allowed"
        )
    return error


def check_backward(
    graph: Graph,
    model: str,
    hidden: int,
    fanouts: Sequence[int],
    seed: int,
    seeds: Tensor,
    gradient: Callable[[MiniBatch, Tensor], Tensor],
) -> float:
    """Raise ``Fault`` unless gradients come back through the framework's layers as they should.

    The slope of the reference along one random direction is held against the gradient's.

    ``gradient`` takes what ``check_forward`` gives and returns the gradient of half the sum of the
    squared values with regard to the input rows. Returns the error over the gradient's norm.
    """
    batch, x, weights = _fixed_block(graph, model, hidden, fanouts, seed, seeds)
    exact = x.double()
    way = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=exact.dtype)

    def half_square(rows: Tensor) -> float:
        return float(reference_model.forward(model, weights, batch.blocks, rows).square().sum()) / 2

    slope = half_square(exact + SLOPE_STEP * way) - half_square(exact - SLOPE_STEP * way)
    ours = gradient(batch, x).cpu().double()
    off = float((ours * way).sum()) - slope / (2 * SLOPE_STEP)
    error = abs(off) / max(float(ours.norm()), 1e-30)
    if not error <= BACKWARD_TOLERANCE:
        raise Fault(
            f"gradients of the input rows on the fixed block are off by {error:.1e} of their norm"
            f" where {BACKWARD_TOLERANCE:.0e} is allowed"
        )
    return error
