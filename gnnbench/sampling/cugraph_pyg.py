"""cuGraph-PyG as a stage: its ``NeighborLoader`` over a ``GraphStore`` on one GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.kernels.cugraph_import import ALLOCATORS, CuGraph, CuGraphBatch, cugraph_missing
from gnnbench.sampling.pyg_batch import PygBatch
from gnnbench.sampling.stage import SamplerSpec, SamplerStage


@dataclass(frozen=True)
class CuGraphSampler(SamplerSpec):
    """cuGraph's sampler, which draws many batches in one call."""

    name: ClassVar[str] = "cugraph-pyg"
    summary: ClassVar[str] = "NVIDIA's cuGraph-PyG: NeighborLoader over its GraphStore, on one GPU"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    frontiers: ClassVar[tuple[str, ...]] = ("new",)
    batches_per_call: int = option(
        0,
        "batches that one call draws; 0: cuGraph's own number, from fanouts and GPU memory",
        range(4097),
    )
    allocator: str = option(
        ALLOCATORS[0],
        "RMM's resource: async: a pool of the driver; cuda: cudaMalloc, RMM's default; managed:"
        " unified memory, as in cuGraph's examples",
        ALLOCATORS,
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """cuGraph-PyG's wheels, PyG and a GPU are required."""
        return cugraph_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """cuGraph-PyG has one pick function."""
        return ("cugraph-pyg",)

    def build(self, job: Job) -> CuGraphStage:
        """Build the stage, with the graph in cuGraph's form."""
        return CuGraphStage(self, job)


class CuGraphStage(SamplerStage):
    """A loader over the batches that remain in the epoch.

    The first batch of a call waits for all of its batches; the others are only cut out of its
    result. A batch outside the announced epoch (at the gate, in a profile) is an epoch by itself.
    ``replace`` and ``weighted`` are other laws of the loader, for certificates.
    """

    def __init__(
        self, spec: CuGraphSampler, job: Job, replace: bool = False, weighted: bool = False
    ) -> None:
        super().__init__(spec, job)
        self._batches_per_call, self._replace = spec.batches_per_call, replace
        self._expected: Sequence[Tensor] = ()
        self._pending: list[Tensor] = []  # in reverse
        self._last_position = 0
        self._drawn: Iterator[CuGraphBatch] = iter(())
        self._graph = CuGraph(job.graph, spec.allocator, weighted)
        torch.cuda.empty_cache()  # of the edges' temporary copies, which cuGraph cannot use
        torch.cuda.manual_seed(job.cell.seed)

    def expect(self, epoch: int, batches: Sequence[Tensor]) -> None:
        """Remember the epoch's seeds."""
        self._expected, self._pending, self._last_position = batches, [], 0

    def _remaining(self, seeds: Tensor) -> list[Tensor]:
        """Batches from ``seeds`` on that one loader can cut: of equal sizes, but for the last."""
        last, size = self._last_position, len(self._expected)
        for position in chain(range(last, size), range(min(last, size))):
            if self._expected[position] is seeds:
                self._last_position = position
                break
        else:
            return [seeds]
        batches = [seeds]
        for batch in self._expected[position + 1 :]:
            if batches[-1].numel() < seeds.numel() or batch.numel() > seeds.numel():
                break
            batches.append(batch)
        return batches

    def sample(self, seeds: Tensor, epoch: int, number: int) -> CuGraphPygBatch:
        """Return the next batch of the loader, or draw from ``seeds`` on."""
        default = torch.cuda.default_stream(self.job.device)
        current = torch.cuda.current_stream(self.job.device)
        default.wait_stream(current)
        with torch.cuda.stream(default):  # cuGraph's own, for which other streams do not wait
            if not (self._pending and self._pending[-1] is seeds):
                self._draw_from(seeds)
            self._pending.pop()
            batch = CuGraphPygBatch(
                number, next(self._drawn), len(self.job.cell.fanouts), self.job.device
            )
            if not self._pending:
                self._drawn = iter(())  # frees the result of the call
        if current != default:
            current.wait_stream(default)
            for tensor in batch.tensors():
                tensor.record_stream(current)
        return batch

    def _draw_from(self, seeds: Tensor) -> None:
        batches, size = self._remaining(seeds), seeds.numel()
        self._pending = batches[::-1]
        self._drawn = self._graph.batches(
            torch.cat(batches).to(self.job.device),
            list(self.job.cell.fanouts),
            size,
            self._replace,
            self._batches_per_call * size or None,
        )

    def close(self) -> None:
        """Free the graph; the last stage ends WholeGraph's state."""
        self._drawn = iter(())
        self._graph.close()


class CuGraphPygBatch(PygBatch):
    """A ``Data`` of cuGraph-PyG's loader; its seeds come in cuGraph's order, not in the given one.

    cuGraph counts nodes by the largest id that edges name, so it misses seeds without neighbours
    that come last, and counts fewer nodes at a hop that finds no new one. Here a batch has as many
    seeds as were given, and no hop takes nodes away.
    """

    def __init__(
        self, number: int, data: CuGraphBatch, num_hops: int, device: torch.device
    ) -> None:
        from torch_geometric.sampler import SamplerOutput

        nodes = data.n_id.to(device, non_blocking=True)  # the loader gives them on the host
        row, col = data.edge_index
        reported = list(accumulate(int(count) for count in data.num_sampled_nodes))[1:]
        known = list(accumulate([int(data.batch_size), *reported], max))
        out = SamplerOutput(
            node=nodes,
            row=row,
            col=col,
            edge=data.e_id,
            num_sampled_nodes=[known[0], *(b - a for a, b in pairwise(known))],
            num_sampled_edges=[int(count) for count in data.num_sampled_edges],
            metadata=(nodes[: known[0]], None),
        )
        super().__init__(number, out, num_hops, None)
