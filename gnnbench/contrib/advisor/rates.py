"""Measure the machine's rates for the kinds of work in the cost model."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from gnnbench.contrib.advisor.facts import WINDOW
from gnnbench.features.base import RowStore
from gnnbench.kernels.match import greedy_order, match_degrees, overlaps
from gnnbench.measure.timed import timed
from gnnbench.roofline.ceilings import COPY, MEMORY, ROWS, WORD, Ceilings

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.minibatch import Batch
    from gnnbench.systems.runtime.runner import SystemRunner

REPEATS = 3
# Epoch numbers that no run uses; the first epoch warms up caches and allocators.
PROBED = (2**34, 2**34 + 1)
UNION_BYTES = 1 << 30  # of rows, at most, in the measured fetch of a union


@dataclass(frozen=True)
class Rates:
    """Rates per second.

    - ``there``: bytes of feature rows read at random and written, in the computing device's memory.
    - ``words``: random 4-byte reads in the same memory.
    - ``fetch``: bytes of this graph's feature rows fetched for a batch. A CPU gathers them; a GPU
      reads them from pinned host memory.
    - ``fetch_union``: the same for the union of several batches.
    - ``order``: ids processed by Greedy Reorder.
    - ``step``: training steps.
    - ``sample``: edges sampled, by sampler.
    """

    there: float
    words: float
    fetch: float
    fetch_union: float
    order: float
    step: float
    sample: dict[str, float]


def ceilings(device: torch.device, row_bytes: int) -> dict[str, float]:
    """Measure the bounds ``there`` (rows read, then copied) and ``words`` of :class:`Rates`."""
    probes = Ceilings(device, [row_bytes])
    names = {(COPY, 0): "copy", (ROWS, row_bytes): "rows", (ROWS, WORD): "words"}
    rates: dict[str, float] = {}
    for probe in probes.all:
        name = names.get((probe.name, probe.row_bytes))
        if name is None or probe.level != MEMORY:
            continue
        probe.amount(probe.run())  # warm-up
        seconds = []
        for _ in range(REPEATS):
            probes.sweep()
            result, spent = timed(probe.run, device)
            amount = probe.amount(result)
            seconds.append(spent)
        rates[name] = amount / statistics.median(seconds)
    read = rates["words"] if row_bytes == WORD else rates["rows"]
    return {"there": 1 / (1 / read + 1 / rates["copy"]), "words": rates["words"] / WORD}


def sampling(system: SystemRunner) -> float:
    """Measure edges per second of a system that only samples."""
    edges: list[int] = []
    spent: list[float] = []
    device, sampler = system.job.device, system.stages.sampler
    for nth, epoch in enumerate(PROBED):
        for number, seeds in enumerate(_full_batches(system, epoch)):

            def draw(s: Tensor = seeds, e: int = epoch, n: int = number) -> Batch:
                batch = sampler.sample(s, e, n)
                batch.sizes()
                return batch

            batch, seconds = timed(draw, device)
            if nth:
                edges.append(batch.sizes().num_edges)
                spent.append(seconds)
    return statistics.median(e / s for e, s in zip(edges, spent, strict=True))


def training(system: SystemRunner) -> dict[str, float]:
    """Measure ``fetch``, ``fetch_union``, ``order`` and ``step``; needs a ``RowStore``."""
    device, store = system.job.device, system.stages.store
    assert isinstance(store, RowStore)
    for epoch in PROBED:
        phase_s, fault = system.probe([epoch])
    if fault:
        raise RuntimeError(f"a probed batch is wrong: {fault}")
    ids = [
        system.stages.sampler.sample(seeds, PROBED[1], number).input_nodes
        for number, seeds in enumerate(_full_batches(system, PROBED[1]))
    ]
    row_bytes = system.graph.feature_dim * system.graph.features.element_size()
    fetched_bytes = [row_bytes * batch.numel() for batch in ids]
    rates = [
        size / seconds
        for size, seconds in zip(fetched_bytes, phase_s["memory_io"], strict=False)
        if size
    ]
    fetch = statistics.median(rates)
    return {
        "fetch": fetch,
        "fetch_union": _union_rate(store, ids, row_bytes, device) or fetch,
        "order": sum(batch.numel() for batch in ids) / _seconds(lambda: _reordered(ids), device),
        "step": 1 / statistics.median(phase_s["compute"]),
    }


def _full_batches(system: SystemRunner, epoch: int) -> list[Tensor]:
    """Seeds of an epoch's first full batches."""
    seeds = system.seeds(epoch)
    return [s for s in seeds if s.numel() == seeds[0].numel()][:WINDOW]


def _reordered(ids: Sequence[Tensor]) -> list[int]:
    return greedy_order(match_degrees(overlaps(ids)))


def _union_rate(
    store: RowStore, ids: Sequence[Tensor], row_bytes: int, device: torch.device
) -> float | None:
    """Bytes per second of fetching a union of batches; None on a CPU or for fewer than two batches.

    The batches have at most ``UNION_BYTES`` of rows in total.
    """
    batches = ids[: UNION_BYTES // max(row_bytes * ids[0].numel(), 1)]
    if device.type == "cpu" or len(batches) < 2:
        return None
    union = torch.cat(list(batches)).unique()
    return union.numel() * row_bytes / _seconds(lambda: store.fetch(union), device)


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    """Median seconds of ``REPEATS`` runs after a warm-up run."""
    run()
    return statistics.median(timed(run, device)[1] for _ in range(REPEATS))
