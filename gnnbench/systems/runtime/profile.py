"""A look inside a sampler's batches, apart from their timing: stages by hop, memory, kernels."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.kernels.trace import Mark, traced
from gnnbench.measure.kernels import kernels_of
from gnnbench.pipelines.order import Order
from gnnbench.sampling.stage import SamplerStage
from gnnbench.systems.runtime.system import ProfileTables, StageRow

WARM_UP = 3  # batches, before any that is looked at
BATCHES = 20
KERNEL_BATCHES = 10
WHOLE = "batch"  # the stage that is the whole call


@dataclass(frozen=True)
class _Look:
    """What is looked into."""

    job: Job
    sampler: SamplerStage
    order: Order
    epoch: int

    def sample(self, seeds: Tensor, number: int) -> Batch:
        """One batch as timed."""
        return self.sampler.sample(seeds, self.epoch, number)

    @property
    def gpu(self) -> bool:
        """Whether there is device time and memory to look at."""
        return self.job.device.type == "cuda"

    def batches(self) -> Iterator[tuple[Tensor, int]]:
        """The epoch's batches, over and over, each with its number."""
        id_type = self.job.graph.indices.dtype
        drawn = [b.to(id_type) for b in self.order.batches(self.epoch, self.job.device)]
        return cycle([(seeds, number) for number, seeds in enumerate(drawn)])


def profile_samples(job: Job, sampler: SamplerStage, order: Order, epoch: int) -> ProfileTables:
    """Rows of ``stages.csv`` and ``kernels.csv`` without the cell's id; medians per batch.

    The batches of ``epoch`` are sampled in three passes: plainly (whole calls, memory), with the
    native trace on where the sampler is native (stages), and under torch's profiler on a GPU.
    """
    look = _Look(job, sampler, order, epoch)
    todo = look.batches()
    for seeds, number in islice(todo, WARM_UP):
        look.sample(seeds, number)
    whole, hops = _whole_calls(look, islice(todo, BATCHES))
    stages = [whole]
    if sampler.native:
        stages += _stages(look, islice(todo, BATCHES), hops)
    kernels = []
    if look.gpu:
        batches = list(islice(todo, KERNEL_BATCHES))
        kernels = kernels_of(lambda: _sample(look, batches), len(batches), job.device)
    return {"stages": stages, "kernels": kernels}


def _sample(look: _Look, batches: Iterable[tuple[Tensor, int]]) -> None:
    for seeds, number in batches:
        look.sample(seeds, number)


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _whole_calls(
    look: _Look, batches: Iterable[tuple[Tensor, int]]
) -> tuple[StageRow, list[StageRow]]:
    """The row of the whole call; destinations and edges of each hop."""
    gpu, on = look.gpu, look.job.device
    host, device, extra, sizes, counted = [], [], [], [], []
    for seeds, number in batches:
        if gpu:
            torch.cuda.synchronize(on)
            torch.cuda.reset_peak_memory_stats(on)
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            before = torch.cuda.memory_allocated(on)
            events[0].record(torch.cuda.current_stream(on))
        begin = time.perf_counter()
        drawn = look.sample(seeds, number)
        host.append(time.perf_counter() - begin)
        if gpu:
            events[1].record(torch.cuda.current_stream(on))
            torch.cuda.synchronize(on)
            device.append(events[0].elapsed_time(events[1]) / 1e3)
        size = spanned_bytes(drawn.tensors())
        sizes.append(size)
        if gpu:
            peak = torch.cuda.max_memory_allocated(on)
            # What the sampler holds from one batch to the next counts: tables, buffers.
            allocated = before - _others_bytes(look, seeds, before)
            extra.append(peak - before + allocated - size)
        batch_sizes = drawn.sizes()
        counted.append(
            (batch_sizes.num_nodes, [(dst.numel(), edges) for dst, edges in batch_sizes.hops])
        )
        del drawn, batch_sizes  # the next batch's peak is its own
    hops: list[StageRow] = [
        {
            "nodes": round(_median(by_hop[hop][0] for _, by_hop in counted)),
            "edges": round(_median(by_hop[hop][1] for _, by_hop in counted)),
        }
        for hop in range(len(look.job.cell.fanouts))
    ]
    block_bytes = round(_median(sizes))
    row: StageRow = {
        "stage": WHOLE,
        "hop": None,
        "batches": len(host),
        "host_s": _median(host),
        "device_s": _median(device) if device else None,
        "nodes": round(_median(nodes for nodes, _ in counted)),
        "edges": round(_median(sum(n for _, n in by_hop) for _, by_hop in counted)),
        "block_bytes": block_bytes or None,
    }
    if extra and block_bytes:
        row |= {
            "extra_bytes": round(_median(extra)),
            "extra_ratio": _median(e / s for e, s in zip(extra, sizes, strict=True)),
        }
    return row, hops


def _others_bytes(look: _Look, seeds: Tensor, allocated: int) -> int:
    """Of the device memory in use what is the graph's and the batch order's."""
    train, cell = look.job.graph.train_idx, look.job.cell
    epoch_seeds = min(train.numel(), (cell.max_batches or train.numel()) * seeds.numel())
    order = train.numel() * train.element_size() + epoch_seeds * seeds.element_size()
    return min(allocated, look.sampler.graph_bytes() + order)


def spanned_bytes(tensors: Sequence[Tensor]) -> int:
    """Bytes from the first to the last that is used of every storage: views of one count once."""
    spans: dict[int, tuple[int, int]] = {}
    for t in tensors:
        if t.numel() == 0:
            continue
        begin = t.data_ptr()
        end = begin + t.numel() * t.element_size()
        storage = t.untyped_storage().data_ptr()
        low, high = spans.get(storage, (begin, end))
        spans[storage] = (min(low, begin), max(high, end))
    return sum(high - low for low, high in spans.values())


def _stages(
    look: _Look, batches: Iterable[tuple[Tensor, int]], hops: Sequence[StageRow]
) -> list[StageRow]:
    host: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    device: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    count, where = 0, look.sampler.sampled_on
    for seeds, number in batches:
        _, marks = traced(lambda s=seeds, n=number: look.sample(s, n), where)  # type: ignore[misc]
        count += 1
        for key, (host_s, device_s) in _summed(marks).items():
            host[key].append(host_s)
            device[key].append(device_s)
    gpu = where.type == "cuda"
    return [
        {
            "stage": stage,
            "hop": None if hop < 0 else hop + 1,
            "batches": count,
            "host_s": _median(host[stage, hop]),
            "device_s": _median(device[stage, hop]) if gpu else None,
            **(hops[hop] if hop >= 0 else {}),
        }
        for stage, hop in host
    ]


def _summed(marks: Iterable[Mark]) -> dict[tuple[str, int], tuple[float, float]]:
    """Host and device seconds of a batch by (stage, hop), in the order of the first marks."""
    times: dict[tuple[str, int], tuple[float, float]] = {}
    for m in marks:
        host_s, device_s = times.get((m.stage, m.hop), (0.0, 0.0))
        times[m.stage, m.hop] = (host_s + m.host_s, device_s + m.device_s)
    return times
