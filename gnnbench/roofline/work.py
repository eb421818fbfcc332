"""Work of a kernel: operations and bytes, counted exactly from its arguments.

It is the work of the task, equal for all implementations, so that a higher rate is always a shorter
time. Each addition, multiplication and division of feature elements is one operation; comparisons
and address arithmetic are none.

``bytes`` is the compulsory memory traffic: each distinct row is read once, each result is written
once, and the structure (offsets and local ids) is read once. ``asked`` is the traffic without any
cache hit: a row for every edge. Transposes, copies of rows by edge and preprocessing of an
implementation are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, Sizes

ELEMENT = 4  # bytes of a float32
LOCAL = 4  # bytes of an offset or a local id of a block
OFFSET = 8  # bytes of an offset into the graph's edges
MODES = ("sum", "mean", "gcn")


@dataclass(frozen=True)
class Work:
    """Operations, bytes (see the module) and, for samplers, random reads."""

    flops: int
    bytes: int
    asked: int
    reads: int = 0


def gather_work(ids: Tensor, row_bytes: int) -> Work:
    """Work of ``table[ids]``: ids ``[n]`` and rows are read, rows are written."""
    n, distinct = ids.numel(), ids.unique().numel()
    moved = n * (ids.element_size() + row_bytes)
    return Work(0, moved + distinct * row_bytes, moved + n * row_bytes)


def aggregate_work(block: Block, width: int, mode: str, weights: int = 0) -> Work:
    """Work of aggregating sources into destinations, rows of ``width`` float32.

    An edge adds a row to its destination's sum, where it has ``weights`` (float32, one for each
    head) times these; ``mean`` divides the sums of destinations that have neighbours; ``gcn`` adds
    each destination's own row and divides.
    """
    edges, averaged = block.num_edges, _averaged(block, mode)
    own = block.num_dst if mode == "gcn" else 0
    used = block.indices
    if own:
        used = torch.cat([used, torch.arange(own, dtype=used.dtype, device=used.device)])
    rest = _structure(block, weights) + block.num_dst * width * ELEMENT
    return Work(
        width * ((2 if weights else 1) * edges + own + averaged),
        used.unique().numel() * width * ELEMENT + rest,
        (edges + own) * width * ELEMENT + rest,
    )


def aggregate_backward_work(block: Block, width: int, mode: str, weights: int = 0) -> Work:
    """Work of the gradient of the sources; as many operations as forward.

    A destination's gradient is divided once, then added along its edges (and to its own row). Read
    are the rows of destinations that have edges (of ``gcn`` all), written those of all sources.
    """
    edges, averaged = block.num_edges, _averaged(block, mode)
    own = block.num_dst if mode == "gcn" else 0
    used = own or _reached(block)
    rest = _structure(block, weights) + block.num_src * width * ELEMENT
    return Work(
        width * ((2 if weights else 1) * edges + own + averaged),
        used * width * ELEMENT + rest,
        (edges + own) * width * ELEMENT + rest,
    )


def attend_work(block: Block, heads: int, width: int) -> Work:
    """Work of sums weighted by attention; ``width`` elements a row, over all heads.

    At each edge and head two scores are added and their softmax is made (less the largest,
    exponential, sum, quotient); each element of its row is multiplied and added. LeakyReLU and
    the maximum count as nothing. Weights that an implementation writes are not counted.
    """
    edges, used = block.num_edges, block.indices.unique().numel()
    reached = _reached(block)
    rest = _structure(block, 0) + (reached * heads + block.num_dst * width) * ELEMENT
    return Work(
        edges * (5 * heads + 2 * width),
        used * (width + heads) * ELEMENT + rest,
        edges * (width + heads) * ELEMENT + rest,
    )


def attend_backward_work(block: Block, heads: int, width: int) -> Work:
    """Work of the gradients of rows and of the scores of both ends.

    At each edge every element is multiplied and added twice, for the row's gradient and for the
    weight's; of each head the softmax takes a product, a sum, a difference and a product, LeakyReLU
    a product, and the scores' gradients two sums. Read are the rows and scores of sources that
    have edges, and gradients and scores of destinations that have; written are all gradients.
    """
    edges, used, reached = block.num_edges, block.indices.unique().numel(), _reached(block)
    rest = _structure(block, 0)
    rest += (block.num_src * (width + heads) + block.num_dst * heads) * ELEMENT
    return Work(
        edges * (7 * heads + 4 * width),
        (used + reached) * (width + heads) * ELEMENT + rest,
        2 * edges * (width + heads) * ELEMENT + rest,
    )


def sample_work(sizes: Sizes, id_bytes: int, block_bytes: int) -> Work:
    """Work of sampling a batch: no operations on elements.

    Of each destination the two ends of its row are read, of each edge the neighbour's id, the
    blocks are written. ``reads`` are random: one for each destination of a hop, one for each edge.
    """
    destinations = sum(nodes.numel() for nodes, _ in sizes.hops)
    moved = destinations * 2 * OFFSET + sizes.num_edges * id_bytes + block_bytes
    return Work(0, moved, moved, destinations + sizes.num_edges)


def _averaged(block: Block, mode: str) -> int:
    """Destinations whose sum is divided."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, it is {mode!r}")
    if mode == "sum":
        return 0
    if mode == "gcn":
        return block.num_dst
    return _reached(block)


def _reached(block: Block) -> int:
    """Destinations that have edges."""
    return int((block.indptr[1:] > block.indptr[:-1]).sum())


def _structure(block: Block, weights: int) -> int:
    """Bytes of offsets, local ids and weights."""
    return (block.num_dst + 1) * LOCAL + block.num_edges * (LOCAL + weights * ELEMENT)
