"""Structural properties of batches: edges, counts, order of seeds, local ids, edge ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.certification.inputs import Input, structure_inputs
from gnnbench.certification.subject import Ids, Request, Subject, law_of
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.fanouts import ALL
from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import Batch, Hop, MiniBatch, host_ids
from gnnbench.datasets.graph import Graph
from gnnbench.validation.gate import check_inputs
from gnnbench.validation.hops import frontier_fault, structural_fault
from gnnbench.validation.law import WITHOUT, Law
from gnnbench.validation.same_work import malformed

CALLS = 5  # a sampler that keeps state may be right on its first call only
FANOUTS = ((1,), (3,), (60,), (2, 3), (2, 2, 2))
ALL_FANOUTS = ((ALL,), (ALL, ALL))
READABLE, EDGES, EDGE_IDS, COUNTS, DISTINCT, SEEDS, LOCAL_IDS, FRONTIER, EVERY = PROPERTIES = (
    "readable", "edges", "edge_ids", "counts", "distinct", "seeds_first", "local_ids", "frontier",
    "all_neighbours",
)  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A violated property, and the input on which it was found.

    ``calls``: number of the call, from 1, whose batch violates it.
    """

    what: str
    request: Request
    seeds: Tensor
    calls: int


def find_faults(
    subject: Subject, inputs: Sequence[Input], fanouts: Sequence[tuple[int, ...]]
) -> tuple[dict[str, Violation], int]:
    """Sample every input with every fanouts ``CALLS`` times.

    Returns the first violation of each property (a key of ``PROPERTIES``), and the number of
    batches. Inputs are in order, so the first violation is found on the smallest input.
    """
    faults: dict[str, Violation] = {}
    batches = 0
    for given in inputs:
        for hops in fanouts:
            request = Request(given.graph, hops, pick=subject.picks(WITHOUT)[0])
            for call, violated in enumerate(_calls(subject, request, given.seeds), start=1):
                batches += 1
                for name, what in violated.items():
                    if ALL in hops and name != READABLE:
                        name = EVERY
                    violation = Violation(what, request, given.seeds, call)
                    faults.setdefault(name, violation)
    return faults, batches


def all_neighbours(subject: Subject) -> str:
    """Return "" if the sampler takes all neighbours at fanout -1, else the reason why not.

    A sampler that refuses the fanout with an error does not offer it.
    """
    if reason := subject.all_neighbours():
        return reason
    if not (picks := subject.picks(WITHOUT)):
        return "it does not sample uniformly without replacement"
    (given, *_) = structure_inputs(torch.int64, wide=False)
    try:
        drawer = subject.build(Request(given.graph, (ALL,), pick=picks[0]))
        drawer.draw(given.seeds, 0, 0)
        drawer.close()
    except Fault:
        return ""
    except Exception as error:
        return f"it refuses fanout -1: {_text(error)}"
    return ""


def _calls(subject: Subject, request: Request, seeds: Tensor) -> Iterator[dict[str, str]]:
    """Violations of each call's batch."""
    law = law_of(request)
    try:
        drawer = subject.build(request)
    except GnnbenchError:
        raise
    except Exception as error:  # of a sampler of others
        yield {READABLE: f"it cannot be built: {_text(error)}"}
        return
    try:
        for call in range(CALLS):
            try:
                batch = drawer.draw(seeds, 0, call)
                hops, order = batch.hops(), drawer.seed_order(seeds, batch)
            except Fault as fault:
                yield {_property(str(fault)): str(fault)}
                continue
            except Exception as error:
                yield {READABLE: f"a batch cannot be read: {_text(error)}"}
                continue
            yield violations(
                request.graph, request.fanouts, law, drawer.frontier, order, batch, hops
            )
    finally:
        drawer.close()


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _property(fault: str) -> str:
    """The property of a fault that was found while edges were looked up."""
    if "none of the graph's" in fault or "outside the graph" in fault:
        return EDGES
    return DISTINCT if "twice for one destination" in fault else LOCAL_IDS


def violations(
    graph: Graph,
    fanouts: Sequence[int],
    law: Law,
    frontier: str,
    seeds: Tensor,
    batch: Batch,
    hops: Sequence[Hop],
) -> dict[str, str]:
    """Return what is wrong with a batch, by property of ``PROPERTIES``; empty if nothing is.

    ``seeds`` are in the order in which the batch must have them.
    """
    faults: dict[str, str] = {}
    if len(hops) != len(fanouts):
        faults[COUNTS] = f"there are {len(hops)} hops, not {len(fanouts)}"
        return faults
    for number, (hop, fanout) in enumerate(zip(hops, fanouts, strict=True), start=1):
        for name, what in _hop_violations(graph, hop, fanout, law):
            faults.setdefault(name, f"hop {number}: {what}")
    if fault := frontier_fault(hops, host_ids(seeds), frontier):
        faults.setdefault(FRONTIER, fault)
    ids, first = host_ids(seeds), host_ids(batch.input_nodes)
    if not np.array_equal(host_ids(batch.seeds), ids) or not np.array_equal(first[: ids.size], ids):
        faults[SEEDS] = "the input nodes do not begin with the seeds in their order"
    try:
        check_inputs(seeds, hops, batch.input_nodes)
    except Fault as fault:
        faults.setdefault(LOCAL_IDS, str(fault))
    if fault_text := _local_fault(batch, hops, frontier):
        faults.setdefault(LOCAL_IDS, fault_text)
    return faults


def _hop_violations(graph: Graph, hop: Hop, fanout: int, law: Law) -> Iterator[tuple[str, str]]:
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    ends = np.concatenate([hop.edge_dst, hop.edge_src])
    if ends.size and (ends.min() < 0 or ends.max() >= graph.num_nodes):
        yield EDGES, f"a node lies outside the {graph.num_nodes} nodes of the graph"
        return
    real = _is_edge(indptr, indices, hop.edge_dst, hop.edge_src)
    if not real.all():
        at = int(np.argmin(real))
        yield EDGES, f"({hop.edge_src[at]} -> {hop.edge_dst[at]}) is no edge of the graph"
    elif hop.positions is not None:
        inside = (hop.positions >= 0) & (hop.positions < indices.size)
        right = inside.copy()
        right[inside] = indices[hop.positions[inside]] == hop.edge_src[inside]
        low, high = indptr[hop.edge_dst], indptr[hop.edge_dst + 1]
        right &= (hop.positions >= low) & (hop.positions < high)
        if not right.all():
            at = int(np.argmin(right))
            yield (
                EDGE_IDS,
                f"edge id {hop.positions[at]} is not the edge"
                f" ({hop.edge_src[at]} -> {hop.edge_dst[at]})",
            )
        elif not law.repeats and np.unique(hop.positions).size < hop.positions.size:
            yield DISTINCT, "an edge was drawn twice for one destination"
    fault = structural_fault(indptr, indices, hop, fanout, law)
    if fault and ("edges were drawn" in fault or "another number of edges" in fault):
        yield COUNTS, fault
    elif fault and "no destination of its hop" in fault:
        yield FRONTIER, fault
    elif fault and "without weight" in fault:
        yield EDGES, fault


def _is_edge(indptr: Ids, indices: Ids, dst: Ids, src: Ids) -> npt.NDArray[np.bool_]:
    """Whether each pair is an edge, bool ``[e]``; linear in the rows of the destinations."""
    rows = np.unique(dst)
    lengths = indptr[rows + 1] - indptr[rows]
    owner = np.repeat(rows, lengths)
    starts = np.repeat(indptr[rows] - (np.cumsum(lengths) - lengths), lengths)
    edges = np.stack([owner, indices[starts + np.arange(owner.size)].astype(np.int64)])
    size = max(int(edges.max(initial=0)), int(dst.max(initial=0)), int(src.max(initial=0))) + 1
    return np.isin(dst * size + src, edges[0] * size + edges[1])


def _local_fault(batch: Batch, hops: Sequence[Hop], frontier: str) -> str | None:
    """How local ids break the rules of a mini-batch, or differ from the reported edges."""
    blocks = [block.mapped(Tensor.cpu) for block in batch.blocks]
    whole = MiniBatch(batch.seeds.cpu(), blocks, batch.sizes().num_edges, frontier=frontier)
    if fault := malformed(whole, frontier):
        return fault
    outer = blocks[0]
    nodes = outer.src_nodes.long()
    dst = torch.repeat_interleave(nodes[: outer.num_dst], outer.indptr.diff().long())
    src = nodes[outer.indices.long()]
    shown = hops if frontier == "new" else hops[-1:]
    edges = np.stack(
        [np.concatenate([h.edge_dst for h in shown]), np.concatenate([h.edge_src for h in shown])]
    )
    mine = np.stack([dst.numpy(), src.numpy()])
    if not np.array_equal(mine[:, np.lexsort(mine)], edges[:, np.lexsort(edges)]):
        return "the local ids give other edges than the batch reports"
    return None
