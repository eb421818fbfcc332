"""The gate a system passes before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor, strided

from gnnbench.core.fanouts import ALL
from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import MiniBatch, host_ids
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.reference import sampler as reference_sampler
from gnnbench.validation.feature_rows import same_rows
from gnnbench.validation.hops import Hop, distinct, frontier_fault, structural_fault
from gnnbench.validation.law import Law
from gnnbench.validation.same_work import same_work

# A sampler that forgets to reset its state is right on its first call: look at several.
GATE_BATCHES = 5
# The reference is slow: what is compared with it holds about this many edges.
REFERENCE_EDGES = 100_000
REFERENCE_MOST = 1_000_000  # of one seed


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


def check_inputs(seeds: Tensor, hops: Sequence[Hop], input_nodes: Tensor) -> None:
    """Raise ``Fault`` unless a batch asks for the rows of its seeds and of what was drawn, each
    once."""
    ids = np.sort(host_ids(input_nodes))
    right = distinct(np.concatenate([host_ids(seeds), *(hop.edge_src for hop in hops)]))
    if not np.array_equal(ids, right):
        raise Fault(
            f"the rows of {ids.size} nodes are asked for, which are not the {right.size} drawn"
        )


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
    Local ids may differ (see :mod:`gnnbench.validation.same_work`). Where all neighbours are taken
    and those
    of one seed are too many, nothing is compared: the law of the structure leaves no choice there.
    """
    if ALL in fanouts:
        per_seed = float(draw(seeds[:1]).sampled_edges)
        if per_seed > REFERENCE_MOST:
            return
    else:
        per_seed = float(np.prod([f + 1 for f in fanouts]))
    few = seeds[: max(1, int(REFERENCE_EDGES / max(per_seed, 1.0)))]
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
        raise Fault(f"compared with the reference (first), {fault}")


def check_features(graph: Graph, ids: Tensor, rows: Tensor) -> None:
    """Raise ``Fault`` unless ``rows`` are bit-equal to the feature table's."""
    if not isinstance(rows, Tensor) or rows.layout != strided or rows.is_meta:
        raise Fault(f"gathered feature rows must be a dense tensor, not {type(rows).__name__}")
    if not same_rows(graph.features, ids, rows):
        raise Fault("gathered feature rows differ from the feature table")
