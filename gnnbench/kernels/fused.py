"""Fused samplers: FastGL's Fused-Map and FastSample's sampler straight into CSC."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from operator import ge
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.library import load_native, native_operators
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import mini_batch
from gnnbench.kernels.streams import StreamOrder


class HighWater:
    """Largest sizes of earlier batches; the next batch gets 1.25 times as much.

    For the fused samplers each hop has two numbers: its nodes (destinations and sources) and its
    edges.
    """

    MARGIN = 1.25
    MOST = 2**31 - 1  # of anything in a block

    def __init__(self) -> None:
        self._most: list[int] = []
        self._capacity: list[int] = []

    @property
    def capacity(self) -> list[int]:
        """Sizes to allocate; empty before the first batch."""
        return self._capacity

    def see(self, took: Sequence[int]) -> None:
        """Record the sizes of a batch."""
        if not self._most:
            self._most = [0] * len(took)
        elif all(map(ge, self._most, took)):  # a generator would take 2 us a batch
            return
        self._most = [max(pair) for pair in zip(took, self._most, strict=True)]
        self._capacity = [min(int(self.MARGIN * most) + 1, self.MOST) for most in self._most]


def fused_map(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    pick: str | PickSpec,
    frontier: str,
    key: int,
    batch: int,
    with_positions: bool = False,
    capacity: Sequence[int] = (),
) -> tuple[MiniBatch, list[int]]:
    """Sample a mini-batch over one hash table that hands out local ids while it is filled.

    FastGL's Fused-Map (ASPLOS'24, section 4.3, Algorithm 2 without its misprints). On a GPU the
    host waits once, for the sizes. Arguments and errors as
    :func:`gnnbench.kernels.sampler.hop_by_hop`;
    local ids beyond the seeds come in any order. Blocks share memory only where one is a prefix of
    the next: ``src_nodes``, and with the frontier ``new`` all tensors.

    ``capacity``, of :class:`HighWater`, is what a GPU allocates for, two numbers a hop; without it
    the worst case up to 2^24 edges a hop. A batch that needs more is sampled again, and so is one
    whose capacity the memory does not hold, with less. Also returns what the batch took, in the
    same order. Raises ``RuntimeError`` where the memory does not hold what the batch takes.
    """
    spec = pick if isinstance(pick, PickSpec) else PickSpec.of(pick)
    args = (*spec.arguments(), frontier, key, batch, with_positions, capacity)
    flat = call("fused_map", graph_indptr, graph_indices, seeds, fanouts, *args)
    mini = mini_batch(flat, seeds, spec, frontier, with_positions)
    return mini, _taken(flat, len(fanouts), frontier)


class DenseMap:
    """FastSample's map from nodes to local ids.

    ``ids``  int32 ``[num_nodes]`` on the device that samples, -1 everywhere between batches

    Batches may be on different streams, one after the other.
    """

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids
        self._order = StreamOrder(ids)

    @classmethod
    def of(cls, num_nodes: int, device: torch.device | str = "cpu") -> DenseMap:
        """An empty map."""
        return cls(torch.full((num_nodes,), -1, dtype=torch.int32, device=device))

    def begin(self) -> Tensor:
        """The ids, for the work enqueued from now on."""
        self._order.enter(self.ids)
        return self.ids


# vectorized:  one pass over the edges, with vector instructions and prefetching.
# algorithm-1: the paper's two loops, one after the other, without either; CPU only.
FASTSAMPLE_KERNELS = ("vectorized", "algorithm-1")


def fastsample(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    pick: str | PickSpec,
    frontier: str,
    key: int,
    batch: int,
    dense_map: DenseMap,
    with_positions: bool = False,
    capacity: Sequence[int] = (),
    kernel: str = FASTSAMPLE_KERNELS[0],
) -> tuple[MiniBatch, list[int]]:
    """Sample a mini-batch straight into CSC over a dense map (FastSample, Algorithm 1).

    ``dense_map``, on the seeds' device, is empty again afterwards, also after an error: only
    entries that the batch touched are reset. ``kernel`` is one of ``FASTSAMPLE_KERNELS``; edges are
    the same. Otherwise as :func:`fused_map`.
    """
    if kernel not in FASTSAMPLE_KERNELS:
        known = " or ".join(f"'{name}'" for name in FASTSAMPLE_KERNELS)
        raise UsageError(f"kernel must be {known}, not '{kernel}'")
    spec = pick if isinstance(pick, PickSpec) else PickSpec.of(pick)
    args = (*spec.arguments(), frontier, key, batch, with_positions, dense_map.begin())
    if kernel == "vectorized":
        flat = call("fastsample", graph_indptr, graph_indices, seeds, fanouts, *args, capacity)
    else:
        flat = call("fastsample_loops", graph_indptr, graph_indices, seeds, fanouts, *args)
    mini = mini_batch(flat, seeds, spec, frontier, with_positions)
    return mini, _taken(flat, len(fanouts), frontier)


def fused_id_map(
    dst: Tensor, neighbors: Sequence[Tensor], *, nodes: int = 0
) -> tuple[Tensor, list[Tensor]]:
    """Rename the global ids of a batch to local ones by Fused-Map's kernels; on a GPU only.

    ``dst`` ``[n]`` (unique) are the seeds, ``neighbors`` one tensor of ids per hop, all of one id
    dtype. ``nodes`` is how many distinct ids to make room for first; 0: as many as there are ids.
    Returns ``src_nodes``, the seeds first and new ids in any order, those of a hop before those of
    the next, and the local ids of each hop's neighbours, int32. Raises ``UsageError``.
    """
    src_nodes, *local = call("fused_id_map", dst, list(neighbors), nodes)
    return src_nodes, local


def trimmed(
    padded: Sequence[Tensor], seeds: int, took: Sequence[int], frontier: str
) -> list[Tensor]:
    """The tensors of ``fused_map_padded`` without its sizes, cut to those of the batch."""
    hops = len(took) // 2
    stride = len(padded) // hops
    out = []
    rows, edges = seeds, 0
    for hop in range(hops):
        nodes, drawn = took[2 * hop : 2 * hop + 2]
        edges = drawn + (edges if frontier == "new" else 0)
        indptr, indices, src_nodes, *rest = padded[stride * hop : stride * (hop + 1)]
        out += [indptr[: rows + 1], indices[:edges], src_nodes[:nodes]]
        out += [t[:edges] for t in rest]
        rows = nodes
    return out


def _taken(flat: Sequence[Tensor], hops: int, frontier: str) -> list[int]:
    """Nodes and edges of each hop, from the flat result of an operator."""
    stride = len(flat) // hops
    edges = [t.numel() for t in flat[1::stride]]
    if frontier == "new":
        edges[1:] = [upto - before for before, upto in pairwise(edges)]
    took = [0] * (2 * hops)
    took[::2] = [t.numel() for t in flat[2::stride]]
    took[1::2] = edges
    return took


class _Operator(Protocol):
    def __call__(self, *args: object) -> list[Tensor]: ...


@cache
def _operator(name: str) -> _Operator:
    load_native()
    return getattr(torch.ops.gnnbench, name).default


def call(name: str, *args: object) -> list[Tensor]:
    """Call a whole-batch operator by name; raises gnnbench's errors in place of torch's."""
    try:
        return _operator(name)(*args)
    except RuntimeError:
        with native_operators():  # entered on this path only: a call takes a tenth of a millisecond
            raise
