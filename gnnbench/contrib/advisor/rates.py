"""What this machine does a second of the work that the model counts: ceilings and probes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gnnbench.contrib.advisor.facts import WINDOW
from gnnbench.features.base import RowStore
from gnnbench.kernels.match import greedy_order, match_degrees, overlaps
from gnnbench.measure.timed import timed
from gnnbench.roofline.ceilings import COPY, MEMORY, ROWS, WORD, Ceilings

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.systems.runtime.runner import SystemRunner

TURNS = 3
# Epochs that no harness numbers; the first one warms caches and allocators up.
PROBED = (2**34, 2**34 + 1)
UNION_BYTES = 1 << 30  # of rows that are fetched at once to see what a union is worth


@dataclass(frozen=True)
class Rates:
    """All per second. Of the memory of the device that computes: ``there`` (B of feature rows read
    at random and written again), ``words`` (random reads of 4 bytes). ``fetch``: B of rows of this
    graph's table on their way to a batch, on a CPU gathered by the cores, on a GPU read by it out
    of locked host memory; ``fetch_union`` those of the union of some batches. ``sample``: edges by
    sampler; ``order``: ids that Greedy Reorder looks at; ``step``: batches that the model is
    trained on.
    """

    there: float
    words: float
    fetch: float
    fetch_union: float
    order: float
    step: float
    sample: dict[str, float]


def ceilings(device: torch.device, row_bytes: int) -> dict[str, float]:
    """``there`` and ``words`` of :class:`Rates`, at most: rows read, then copied."""
    made = Ceilings(device, [row_bytes])
    wanted = {(COPY, 0): "copy", (ROWS, row_bytes): "rows", (ROWS, WORD): "words"}
    found: dict[str, float] = {}
    for one in made.all:
        name = wanted.get((one.name, one.row_bytes))
        if name is None or one.level != MEMORY:
            continue
        one.amount(one.run())  # what a first run loads and touches is there
        seconds = []
        for _ in range(TURNS):
            made.sweep()
            result, spent = timed(one.run, device)
            amount = one.amount(result)
            seconds.append(spent)
        found[name] = amount / statistics.median(seconds)
    read = found["words"] if row_bytes == WORD else found["rows"]
    return {"there": 1 / (1 / read + 1 / found["copy"]), "words": found["words"] / WORD}


def sampling(system: SystemRunner) -> float:
    """Edges a second of a system that only samples."""
    edges: list[int] = []
    spent: list[float] = []
    device, sampler = system.job.device, system.stages.sampler
    for nth, epoch in enumerate(PROBED):
        for number, seeds in enumerate(_whole(system, epoch)):

            def draw(s: Tensor = seeds, e: int = epoch, n: int = number) -> Any:
                batch = sampler.sample(s, e, n)
                batch.sizes()
                return batch

            batch, seconds = timed(draw, device)
            if nth:
                edges.append(batch.sizes().num_edges)
                spent.append(seconds)
    return statistics.median(e / s for e, s in zip(edges, spent, strict=True))


def training(system: SystemRunner) -> dict[str, float]:
    """``fetch``, ``fetch_union``, ``order`` and ``step`` of a system whose store fetches rows."""
    device, store = system.job.device, system.stages.store
    assert isinstance(store, RowStore)
    for epoch in PROBED:
        alone, fault = system.probe([epoch])
    if fault:
        raise RuntimeError(f"a batch that was to be looked at is wrong: {fault}")
    ids = [
        system.stages.sampler.sample(seeds, PROBED[1], number).input_nodes
        for number, seeds in enumerate(_whole(system, PROBED[1]))
    ]
    row_bytes = system.graph.feature_dim * system.graph.features.element_size()
    moved = [row_bytes * batch.numel() for batch in ids]
    rates = [
        size / seconds for size, seconds in zip(moved, alone["memory_io"], strict=False) if size
    ]
    fetch = statistics.median(rates)
    return {
        "fetch": fetch,
        "fetch_union": _of_unions(store, ids, row_bytes, device) or fetch,
        "order": sum(batch.numel() for batch in ids) / _seconds(lambda: _arranged(ids), device),
        "step": 1 / statistics.median(alone["compute"]),
    }


def _whole(system: SystemRunner, epoch: int) -> list[Tensor]:
    """Seeds of an epoch's first batches, none of them short."""
    seeds = system.seeds(epoch)
    return [s for s in seeds if s.numel() == seeds[0].numel()][:WINDOW]


def _arranged(ids: Sequence[Tensor]) -> list[int]:
    return greedy_order(match_degrees(overlaps(ids)))


def _of_unions(
    store: RowStore, ids: Sequence[Tensor], row_bytes: int, device: torch.device
) -> float | None:
    """B a second of the union of batches that ``UNION_BYTES`` hold; None of fewer than two."""
    few = ids[: UNION_BYTES // max(row_bytes * ids[0].numel(), 1)]
    if device.type == "cpu" or len(few) < 2:
        return None
    union = torch.cat(list(few)).unique()
    return union.numel() * row_bytes / _seconds(lambda: store.fetch(union), device)


def _seconds(run: Callable[[], Any], device: torch.device) -> float:
    """Seconds, the median of some turns after a first one."""
    run()
    return statistics.median(timed(run, device)[1] for _ in range(TURNS))
