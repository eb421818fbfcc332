"""Ceilings and the kernels of a batch, run by themselves in turns; nothing of it is in an epoch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gnnbench.core.counters import FEATURE_BYTES
from gnnbench.core.minibatch import Batch
from gnnbench.measure.timed import timed
from gnnbench.roofline.ceilings import BYTES, FLOPS, Ceiling, Ceilings
from gnnbench.roofline.counters import on_cpu, on_gpu, run_marked
from gnnbench.roofline.kernels import Asked, Kernel, asked_of
from gnnbench.roofline.passes import aggregations
from gnnbench.roofline.work import ELEMENT, gather_work, sample_work

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.models.framework import Framework
    from gnnbench.pipelines.schedule import Stages

TURNS = 3  # A B C, C B A ..., after one that is not counted
HERE = {"host", "device", "cache"}  # rows that no link stands before
READS = "read/s"

Record = dict[str, Any]


class Bench:
    """The kernels of a cell's batches below the machine's ceilings.

    Each run begins with caches that hold nothing of it, so that what must come out of memory does,
    whatever the caches' size.
    """

    def __init__(self, job: Job, stages: Stages, framework: Framework) -> None:
        self.job, self.stages, self.framework = job, stages, framework
        self._ceilings: Ceilings | None = None
        self._right = False

    def kernels(self, seeds: Tensor, epoch: int) -> list[Kernel]:
        """Of the first batch of an epoch, drawn again."""
        stages = self.stages
        batch = self._draw(seeds, epoch)
        found = [self._sample(batch, seeds, epoch)]
        if stages.store is not None and stages.window == 1 and self._rows_are_here(batch):
            found.append(self._gather(batch))
        return found + aggregations(batch, self.framework, self.asked(batch))

    def asked(self, batch: Batch) -> list[Asked]:
        """What the cell's model aggregates."""
        cell, graph = self.job.cell, self.job.graph
        blocks = batch.blocks
        return asked_of(cell.model, blocks, graph.feature_dim, cell.hidden, graph.num_classes)

    def run(self, seeds: Tensor, epoch: int) -> tuple[list[Record], str]:
        """Records of all ceilings and kernels; what is wrong with their results, or "".

        Results are looked at the first time; what is wrong is not measured.
        """
        kernels = self.kernels(seeds, epoch)
        fault = "" if self._right else next((f for k in kernels if (f := k.wrong())), "")
        self._right = not fault
        found = self._measured(kernels) if self._right else []
        self.job.counts.clear()
        if self.job.device.type == "cuda":  # its peak of memory is the system's
            self._ceilings = None
        return found, fault

    def counters(self, seeds: Tensor, epoch: int, program: Sequence[str]) -> list[Record]:
        """Hardware counters of the same kernels, none of it timed (``gnnbench.roofline.counters``).

        ``program`` is the command of a process that calls :meth:`run_marked` of the same cell.
        """
        kernels = self.kernels(seeds, epoch)
        if self.job.device.type == "cuda":
            return on_gpu(kernels, program)
        return on_cpu(kernels, self._ceilings_for(kernels).sweep)

    def run_marked(self, seeds: Tensor, epoch: int) -> None:
        """Run the kernels for a GPU's profiler to look at."""
        run_marked(self.kernels(seeds, epoch), self.job.device)

    def _measured(self, kernels: Sequence[Kernel]) -> list[Record]:
        device, ceilings = self.job.device, self._ceilings_for(kernels)
        times: list[list[float]] = [[] for _ in (*ceilings.all, *kernels)]
        amounts: list[float] = [0.0 for _ in ceilings.all]

        def run_ceiling(nth: int) -> None:
            one = ceilings.all[nth]
            result, seconds = timed(one.run, device)
            amounts[nth] = one.amount(result)
            times[nth].append(seconds)

        def run_kernel(nth: int) -> None:
            run = kernels[nth - len(amounts)].ready()
            ceilings.sweep()
            times[nth].append(timed(run, device)[1])

        order = range(len(times))
        for turn in range(TURNS + 1):
            for nth in order if turn % 2 == 0 else reversed(order):
                (run_ceiling if nth < len(amounts) else run_kernel)(nth)
        told = [{**_of_ceiling(c), "amount": a} for c, a in zip(ceilings.all, amounts, strict=True)]
        told += [_of_kernel(k) for k in kernels]
        return [
            {**one, "seconds": statistics.median(found[1:]), "spread": _spread(found[1:])}
            for one, found in zip(told, times, strict=True)
        ]

    def _ceilings_for(self, kernels: Sequence[Kernel]) -> Ceilings:
        """Made once on a CPU: a batch's kernels are as wide as the next one's."""
        if self._ceilings is None:
            sizes = {k.width * ELEMENT for k in kernels if k.width}
            self._ceilings = Ceilings(self.job.device, sizes)
        return self._ceilings

    def _draw(self, seeds: Tensor, epoch: int) -> Batch:
        self.stages.sampler.expect(epoch, [seeds])
        return self.stages.sampler.sample(seeds, epoch, 0)

    def _sample(self, batch: Batch, seeds: Tensor, epoch: int) -> Kernel:
        graph = self.job.graph
        blocks = sum(t.numel() * t.element_size() for t in batch.tensors())
        work = sample_work(batch.sizes(), graph.indices.element_size(), blocks)

        def ready() -> Callable[[], Any]:
            return lambda: self._draw(seeds, epoch).sizes()

        return Kernel("sample", "", 0, "", 0, 0, work, ready)

    def _rows_are_here(self, batch: Batch) -> bool:
        """Whether all rows of a batch are in the memory that the ceilings are of."""
        counts = self.job.counts
        counts.clear()
        assert self.stages.store is not None
        self.stages.store.forget()
        self.stages.store.load(batch)
        where = {row[2] for row in counts.rows() if row[1] == FEATURE_BYTES.name and row[3]}
        counts.clear()
        return bool(where) and where <= HERE

    def _gather(self, batch: Batch) -> Kernel:
        store, table = self.stages.store, self.job.graph.features
        assert store is not None
        row_bytes = table.shape[1] * table.element_size()
        work = gather_work(batch.input_nodes, row_bytes)

        def ready() -> Callable[[], Any]:
            store.forget()
            return lambda: store.load(batch)

        return Kernel("gather", "", 0, "", table.shape[1], 0, work, ready)


def _spread(seconds: Sequence[float]) -> float:
    """Standard deviation of the logarithms: how far one turn is from the next."""
    return statistics.stdev(map(math.log, seconds))


def _of_ceiling(one: Ceiling) -> Record:
    return {
        "kind": "ceiling", "name": one.name, "level": one.level, "row_bytes": one.row_bytes,
        "level_bytes": one.level_bytes, "unit": one.unit, "remark": one.remark,
    }  # fmt: skip


def _of_kernel(one: Kernel) -> Record:
    """Its rate is that of its operations; of what has none, of random reads or of bytes."""
    work = one.work
    return {
        "kind": "kernel", **one.ident(),
        "unit": FLOPS if work.flops else READS if work.reads else BYTES,
        "amount": float(work.flops or work.reads or work.bytes), "flops": work.flops,
        "bytes": work.bytes, "asked": work.asked, "reads": work.reads,
    }  # fmt: skip
