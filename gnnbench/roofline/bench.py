"""Measured peaks and single kernels of a batch, timed in alternating order outside of epochs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic

from torch import Tensor

from gnnbench.core.counters import FEATURE_BYTES
from gnnbench.core.minibatch import Batch
from gnnbench.core.precision import BFLOAT16
from gnnbench.measure.timed import timed
from gnnbench.models.framework import BlockT
from gnnbench.roofline.ceilings import BYTES, FLOPS, Ceiling, Ceilings
from gnnbench.roofline.counters import CounterRecord, on_cpu, on_gpu, run_marked
from gnnbench.roofline.kernels import AggregationCall, Kernel, aggregation_calls
from gnnbench.roofline.passes import aggregations
from gnnbench.roofline.work import ELEMENT, gather_work, sample_work
from gnnbench.schema.roofline import CeilingRecord, KernelRecord, RooflineRecord

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.models.framework import Framework
    from gnnbench.pipelines.schedule import Stages

ROUNDS = 3  # A B C, C B A ..., after a warm-up round
LOCAL_ROWS = {"host", "device", "cache"}  # locations of rows that are read without a link
READS = "read/s"


class Bench(Generic[BlockT]):
    """Times the kernels of a cell's batches, and the measured peaks of the machine.

    Caches contain no data of a kernel when it starts, whatever their size, so that compulsory
    reads go to memory.
    """

    def __init__(self, job: Job, stages: Stages, framework: Framework[BlockT]) -> None:
        self.job, self.stages, self.framework = job, stages, framework
        self._ceilings: Ceilings | None = None
        self._is_correct = False

    def kernels(self, seeds: Tensor, epoch: int) -> list[Kernel]:
        """The kernels of the first batch of an epoch, which is sampled again.

        Aggregations are measured on float32 rows, and so not those of layers in bfloat16.
        """
        stages = self.stages
        batch = self._draw(seeds, epoch)
        kernels = [self._sample(batch, seeds, epoch)]
        if stages.store is not None and stages.window == 1 and self._rows_are_local(batch):
            kernels.append(self._gather(batch))
        if self.job.cell.precision == BFLOAT16:
            return kernels
        return kernels + aggregations(batch, self.framework, self.aggregation_calls(batch))

    def aggregation_calls(self, batch: Batch) -> list[AggregationCall]:
        """The aggregation calls of the cell's model."""
        cell, graph = self.job.cell, self.job.graph
        blocks = batch.blocks
        return aggregation_calls(
            cell.model, blocks, graph.feature_dim, cell.hidden, graph.num_classes
        )

    def run(self, seeds: Tensor, epoch: int) -> tuple[list[RooflineRecord], str]:
        """Time all peaks and kernels; returns their records, and a fault of a result or "".

        Results are checked by the first call. Nothing is timed after a fault.
        """
        kernels = self.kernels(seeds, epoch)
        fault = "" if self._is_correct else next((f for k in kernels if (f := k.wrong())), "")
        self._is_correct = not fault
        records = self._measured(kernels) if self._is_correct else []
        self.job.counts.clear()
        if self.job.device.type == "cuda":  # its peak of memory is the system's
            self._ceilings = None
        return records, fault

    def counters(self, seeds: Tensor, epoch: int, program: Sequence[str]) -> list[CounterRecord]:
        """Hardware counters of the same kernels, untimed (``gnnbench.roofline.counters``).

        ``program`` is a command that calls :meth:`run_marked` for the same cell.
        """
        kernels = self.kernels(seeds, epoch)
        if self.job.device.type == "cuda":
            return on_gpu(kernels, program)
        return on_cpu(kernels, self._ceilings_for(kernels).sweep)

    def run_marked(self, seeds: Tensor, epoch: int) -> None:
        """Run the kernels between marks, for a GPU's profiler."""
        run_marked(self.kernels(seeds, epoch), self.job.device)

    def _measured(self, kernels: Sequence[Kernel]) -> list[RooflineRecord]:
        device, ceilings = self.job.device, self._ceilings_for(kernels)
        times: list[list[float]] = [[] for _ in (*ceilings.all, *kernels)]
        amounts: list[float] = [0.0 for _ in ceilings.all]

        def run_ceiling(nth: int) -> None:
            ceiling = ceilings.all[nth]
            result, seconds = timed(ceiling.run, device)
            amounts[nth] = ceiling.amount(result)
            times[nth].append(seconds)

        def run_kernel(nth: int) -> None:
            run = kernels[nth - len(amounts)].ready()
            ceilings.sweep()
            times[nth].append(timed(run, device)[1])

        order = range(len(times))
        for number in range(ROUNDS + 1):
            for nth in order if number % 2 == 0 else reversed(order):
                (run_ceiling if nth < len(amounts) else run_kernel)(nth)
        split = len(amounts)
        peaks = zip(ceilings.all, amounts, times[:split], strict=True)
        return [
            *(_ceiling_record(ceiling, amount, timings[1:]) for ceiling, amount, timings in peaks),
            *(_kernel_record(k, t[1:]) for k, t in zip(kernels, times[split:], strict=True)),
        ]

    def _ceilings_for(self, kernels: Sequence[Kernel]) -> Ceilings:
        """The measured peaks; reused on a CPU, because all batches have the same row widths."""
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

        def ready() -> Callable[[], object]:
            return lambda: self._draw(seeds, epoch).sizes()

        return Kernel("sample", "", 0, "", 0, 0, work, ready)

    def _rows_are_local(self, batch: Batch) -> bool:
        """Whether all rows of a batch are in the memory whose peaks are measured."""
        counts = self.job.counts
        counts.clear()
        assert self.stages.store is not None
        self.stages.store.forget()
        self.stages.store.load(batch)
        where = {row[2] for row in counts.rows() if row[1] == FEATURE_BYTES.name and row[3]}
        counts.clear()
        return bool(where) and where <= LOCAL_ROWS

    def _gather(self, batch: Batch) -> Kernel:
        store, table = self.stages.store, self.job.graph.features
        assert store is not None
        row_bytes = table.shape[1] * table.element_size()
        work = gather_work(batch.input_nodes, row_bytes)

        def ready() -> Callable[[], object]:
            store.forget()
            return lambda: store.load(batch)

        return Kernel("gather", "", 0, "", table.shape[1], 0, work, ready)


def _spread(seconds: Sequence[float]) -> float:
    """Standard deviation of the logarithms of repeated times."""
    return statistics.stdev(map(math.log, seconds))


def _ceiling_record(ceiling: Ceiling, amount: float, seconds: Sequence[float]) -> CeilingRecord:
    return {
        "kind": "ceiling", "name": ceiling.name, "level": ceiling.level,
        "row_bytes": ceiling.row_bytes, "level_bytes": ceiling.level_bytes, "unit": ceiling.unit,
        "remark": ceiling.remark, "amount": amount, "seconds": statistics.median(seconds),
        "spread": _spread(seconds),
    }  # fmt: skip


def _kernel_record(kernel: Kernel, seconds: Sequence[float]) -> KernelRecord:
    """The rate counts operations; for a kernel without any, random reads or bytes."""
    work = kernel.work
    return {
        "kind": "kernel", **kernel.key(),
        "unit": FLOPS if work.flops else READS if work.reads else BYTES,
        "amount": float(work.flops or work.reads or work.bytes), "flops": work.flops,
        "bytes": work.bytes, "asked": work.asked, "reads": work.reads,
        "seconds": statistics.median(seconds), "spread": _spread(seconds),
    }  # fmt: skip
