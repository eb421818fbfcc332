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
from gnnbench.kernels.library import load_native, native_errors
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
) -> tuple[MiniBatch, list[int]]:
    """Sample a mini-batch straight into CSC over a dense map (FastSample, Algorithm 1).

    ``dense_map``, on the seeds' device, is empty again afterwards, also after an error: only
    entries that the batch touched are reset. Otherwise as :func:`fused_map`.
    """
    spec = pick if isinstance(pick, PickSpec) else PickSpec.of(pick)
    args = (*spec.arguments(), frontier, key, batch, with_positions, dense_map.begin(), capacity)
    flat = call("fastsample", graph_indptr, graph_indices, seeds, fanouts, *args)
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


class CapturedFusedMap:
    """Fused-Map of one shape as a CUDA graph: a batch is one launch and one wait.

    Args:
        graph_indptr: int64 ``[num_nodes + 1]`` on the GPU or in locked memory.
        graph_indices: int32 or int64 ``[num_edges]``, likewise.
        max_seeds: most seeds of a batch.
        fanouts: as for :func:`fused_map`, as are ``pick``, ``frontier`` and ``with_positions``.
        capacity: two numbers a hop, of :class:`HighWater`; what a larger batch needs.
        device: the GPU.

    Raises:
        UsageError: as :func:`fused_map`, or where capacity is empty.
    """

    def __init__(
        self,
        graph_indptr: Tensor,
        graph_indices: Tensor,
        max_seeds: int,
        fanouts: Sequence[int],
        *,
        pick: str | PickSpec,
        frontier: str,
        capacity: Sequence[int],
        device: torch.device | str,
        with_positions: bool = False,
    ) -> None:
        self._graph = (graph_indptr, graph_indices)
        self._fanouts = list(fanouts)
        self._pick = pick if isinstance(pick, PickSpec) else PickSpec.of(pick)
        self._frontier = frontier
        self._with_positions = with_positions
        # Inputs of the recorded kernels: seeds, in 64 bits so that no invalid id is truncated to a
        # valid one, and key, batch and number of seeds.
        self._seeds = torch.zeros(max_seeds, dtype=torch.int64, device=device)
        self._place = torch.zeros(3, dtype=torch.int64, device=device)
        self._host_place = torch.zeros(3, dtype=torch.int64, pin_memory=True)
        self._host_sizes = torch.zeros(2 * len(fanouts) + 1, dtype=torch.int64, pin_memory=True)
        self._record(list(capacity))

    def _record(self, capacity: list[int]) -> None:
        pick = (*self._pick.arguments(), self._frontier, self._place)
        args = (*self._graph, self._seeds, self._fanouts, *pick, self._with_positions, capacity)
        with torch.cuda.device(self._seeds.device):
            # Outside the recording, where the first launch of a kernel may load it; no seeds.
            call("fused_map_padded", *args)
            self._replayed = torch.cuda.CUDAGraph()
            # Other threads may query events during the capture.
            with torch.cuda.graph(self._replayed, capture_error_mode="thread_local"):
                self._place.copy_(self._host_place, non_blocking=True)
                flat = call("fused_map_padded", *args)
                self._host_sizes.copy_(flat[-1], non_blocking=True)
        self._flat: list[Tensor] = flat

    def sample(self, seeds: Tensor, *, key: int, batch: int) -> MiniBatch:
        """Sample the batch of ``seeds``, at most ``max_seeds`` of them, on the GPU or not.

        The blocks are views of memory that the next call writes: use them before, in the same
        stream, or copy them. A batch beyond the capacity is sampled by :func:`fused_map` instead,
        into memory of its own. Raises as that.
        """
        count = seeds.numel()
        is_ids = seeds.dtype in (torch.int32, torch.int64) and seeds.dim() == 1
        if not is_ids or count > self._seeds.numel():
            raise UsageError(
                f"seeds must be ids in one dimension, at most {self._seeds.numel()} as recorded; "
                f"they are {seeds.dtype} {list(seeds.shape)}"
            )
        if not 0 <= batch < 2**32:  # the kernels would cut it to 32 bits
            raise UsageError(f"batch must be at least 0 and below 2^32, it is {batch}")
        seeds = seeds.to(self._seeds.device)
        with torch.cuda.device(self._seeds.device):
            self._seeds[:count].copy_(seeds, non_blocking=True)
            self._host_place.numpy()[:] = key, batch, count
            self._replayed.replay()
            torch.cuda.current_stream().synchronize()
        *took, fault = self._host_sizes.tolist()
        if fault:  # too large, or broken: then this raises the error
            mini, _ = fused_map(
                *self._graph,
                seeds,
                self._fanouts,
                pick=self._pick,
                frontier=self._frontier,
                key=key,
                batch=batch,
                with_positions=self._with_positions,
            )
            return mini
        flat = trimmed(self._flat[:-1], count, took, self._frontier)  # the sizes are the last
        return mini_batch(flat, seeds, self._pick, self._frontier, self._with_positions)


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
    operator: _Operator = getattr(torch.ops.gnnbench, name).default
    return operator


def call(name: str, *args: object) -> list[Tensor]:
    """Call a whole-batch operator by name; raises gnnbench's errors in place of torch's."""
    try:
        return _operator(name)(*args)
    except RuntimeError:
        with native_errors():  # entered on this path only: a call takes a tenth of a millisecond
            raise
