"""What a forecast of more ranks goes by: counts of batches split among them, and ceilings.

Counts are facts of graph, sampler and partition: any process can draw what a rank would draw, for
draws know no rank. Ceilings are measured by the ranks that there are. Neither is in any epoch.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.minibatch import Batch
from gnnbench.partition.places import owner_of
from gnnbench.stages.counts import (
    EXCHANGE_LATENCY,
    EXCHANGE_RATE,
    FLOOR,
    REDUCE_LATENCY,
    REDUCE_RATE,
    SPLIT_ALL_EDGES,
    SPLIT_ALL_ROWS,
    SPLIT_AWAY_ROWS,
    SPLIT_EDGES,
    SPLIT_ROWS,
    SPLIT_SENT,
    Measure,
)
from gnnbench.stages.schedule.base import Stages
from gnnbench.stages.schedule.split import NONE, SEEDS, VANILLA

if TYPE_CHECKING:
    from gnnbench.partition.places import Partition

Fact = list[Any]  # of (stage, measure, where, value)

COUNTED = tuple(2**n for n in range(11))  # ranks: 1 to 1,024
BATCHES = 2  # that are counted
TINY_CALLS, LARGE_CALLS, FLOORS = 50, 5, 10  # by which something is measured
LARGE = 1 << 22  # numbers of 4 bytes


class Held(Protocol):
    """A rank's part of a graph (``gnnbench.stages.schedule.partitioned``)."""

    @property
    def mode(self) -> str:
        """How it is split."""

    def into(self, parts: int) -> Partition | None:
        """The partition into so many parts."""


def counted(stages: Stages, batches: Sequence[Tensor], held: Held | None) -> list[Fact]:
    """What ranks would draw, fetch and send for the first of an epoch's batches, by their number.

    Each of ``batches`` (seeds) is split in contiguous stretches, or where the graph is, by whose
    part owns a seed; without a partition into so many parts nothing is counted, nor of more ranks
    than a batch has seeds.
    """
    whole = [b for b in batches[:BATCHES] if b.numel() == batches[0].numel()]
    facts, mode = list[Fact](), NONE if held is None else held.mode
    for ranks in COUNTED:
        if not whole or ranks > whole[0].numel():
            break
        made = None
        if held is not None and (made := held.into(ranks)) is None:
            continue
        sums: Counter[tuple[str, Measure]] = Counter()
        with _one_thread():
            for number, seeds in enumerate(whole):
                _count(stages, seeds, number, ranks, mode, made, sums)
        facts += [[s, what.name, str(ranks), n / len(whole)] for (s, what), n in sums.items()]
    return facts


def _count(
    stages: Stages,
    seeds: Tensor,
    number: int,
    ranks: int,
    mode: str,
    made: Partition | None,
    sums: Counter[tuple[str, Measure]],
) -> None:
    """Add what so many ranks do for a batch."""
    graph = stages.sampler.job.graph
    parts = seeds.tensor_split(ranks) if made is None else _owned(seeds, made)
    most_rows = most_edges = 0
    for rank, own in enumerate(parts):
        if not own.numel():
            continue
        batch = stages.sampler.sample(own, 0, number)
        sizes = batch.sizes()
        most_rows, most_edges = max(most_rows, sizes.num_nodes), max(most_edges, sizes.num_edges)
        sums["features", SPLIT_ALL_ROWS] += sizes.num_nodes
        sums["sampler", SPLIT_ALL_EDGES] += sizes.num_edges
        if made is None or mode == SEEDS:
            continue
        away = _away(batch.input_nodes, made, rank)
        row, one = graph.features[:1].nbytes, graph.indices.element_size()
        sums["features", SPLIT_AWAY_ROWS] += int(away.sum())
        sums["features", SPLIT_SENT] += int(away.sum()) * (row + one)
        if mode == VANILLA:
            sums["sampler", SPLIT_SENT] += one * sum(_asked(batch, made, rank))
    sums["features", SPLIT_ROWS] += most_rows
    sums["sampler", SPLIT_EDGES] += most_edges


def _owned(seeds: Tensor, made: Partition) -> list[Tensor]:
    owners = owner_of(made.places[seeds.cpu().long()], made.offsets).to(seeds.device)
    return [seeds[owners == part] for part in range(made.parts)]


def _away(nodes: Tensor, made: Partition, rank: int) -> Tensor:
    return owner_of(made.places[nodes.cpu().long()], made.offsets) != rank


def _asked(batch: Batch, made: Partition, rank: int) -> Iterator[int]:
    """Numbers that go to and fro for each hop beyond the first: ids, counts and neighbours."""
    for block in batch.blocks[:-1]:
        away = _away(block.dst_nodes, made, rank)
        yield 2 * int(away.sum()) + int(block.indptr.diff().cpu()[away].sum())


@contextmanager
def _one_thread() -> Iterator[None]:
    """Batches of a few seeds are drawn sooner by one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def ceilings(device: torch.device, exchanges: bool) -> list[Fact]:
    """What collectives take at least: one number, and the rate of many. All ranks call it."""
    ranks = dist.get_world_size()
    one, many = torch.zeros(1, device=device), torch.zeros(LARGE, device=device)
    told: list[tuple[Measure, float]] = []
    latency = _seconds(lambda: dist.all_reduce(one), device, TINY_CALLS)
    told.append((REDUCE_LATENCY, latency))
    if ranks > 1:
        took = _seconds(lambda: dist.all_reduce(many), device, LARGE_CALLS)
        # What a ring sends: each rank all but an Nth of it, twice.
        told.append((REDUCE_RATE, 2 * (1 - 1 / ranks) * many.nbytes / _beyond(took, latency)))
    if exchanges:
        few, got = torch.zeros(ranks, device=device), torch.zeros_like(many)
        latency = _seconds(lambda: dist.all_to_all_single(few.clone(), few), device, TINY_CALLS)
        told.append((EXCHANGE_LATENCY, latency))
        if ranks > 1:
            took = _seconds(lambda: dist.all_to_all_single(got, many), device, LARGE_CALLS)
            told.append((EXCHANGE_RATE, (1 - 1 / ranks) * many.nbytes / _beyond(took, latency)))
    return [["schedule", what.name, "", value] for what, value in told]


def _seconds(call: Callable[[], Any], device: torch.device, times: int) -> float:
    """Of a call until it is over, launches among it: the median of several after a first one."""
    spent = []
    for _ in range(1 + times):
        _wait(device)
        began = time.perf_counter()
        call()
        _wait(device)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent[1:])


def _beyond(took: float, latency: float) -> float:
    """What a large call takes longer than a small one; all of it where the machine was disturbed
    so much that it took no longer."""
    return took - latency if took > latency else took


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def floors(stages: Stages, seed: Tensor, threads: int) -> list[Fact]:
    """Seconds of each phase of a batch of one seed, launches among them, by this process alone. The
    model is left as it was."""
    trainer: Any = stages.trainer
    assert trainer is not None and stages.store is not None
    device, kept, before = stages.sampler.job.device, trainer.kept(), torch.get_num_threads()
    torch.set_num_threads(threads)
    stages.store.forget()
    batch = stages.sampler.sample(seed, 0, 0)
    rows = stages.load([batch], 0)
    phases: dict[str, Callable[[], Any]] = {
        "sample": lambda: stages.sampler.sample(seed, 0, 0),
        "memory_io": lambda: stages.load([batch], 0),
        "compute": lambda: trainer.step(batch, rows.clone()),
    }
    found = {phase: _seconds(phases[phase], device, FLOORS) for phase in FLOOR}
    torch.set_num_threads(before)
    trainer.restore(kept)
    trainer.take_losses()
    return [["schedule", FLOOR[phase].name, "", value] for phase, value in found.items()]
