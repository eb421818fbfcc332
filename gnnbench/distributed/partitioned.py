"""A rank's part of a partitioned graph, and the exchange of the other ranks' parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from gnnbench.core.counters import (
    CALLS,
    CUT_SHARE,
    EDGES_CUT,
    EXCHANGE_TIME,
    FEATURE_BYTES,
    PART_BYTES,
    PART_IMBALANCE,
    PART_TIME,
    PARTITION_TIME,
    ROUNDS,
    SENT_BYTES,
    SIZE_ROUNDS,
    Counts,
)
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.distributed.partition import features, vanilla
from gnnbench.distributed.partition.exchange import Exchange, Traffic
from gnnbench.distributed.partition.features import OwnFeatures
from gnnbench.distributed.partition.methods import partition
from gnnbench.distributed.partition.quality import Quality, imbalance
from gnnbench.distributed.partition.split import HYBRID, VANILLA, Split
from gnnbench.distributed.partition.stored import load_or_make
from gnnbench.distributed.partition.vanilla import VanillaSampler
from gnnbench.kernels.features import gather
from gnnbench.kernels.picks import WEIGHTED
from gnnbench.pipelines.schedule import Stages
from gnnbench.validation.same_work import same_work
from gnnbench.version import __version__

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.distributed.partition.assignment import Partition

STAGES = {vanilla.PURPOSE: "sampler", features.PURPOSE: "features"}  # by the purpose of an exchange


class ShardSampler(Protocol):
    """Samples a rank's batches."""

    def sample(self, seeds: Tensor, epoch: int, number: int, /) -> Batch:
        """Sample one batch; ``number`` is its position in the epoch."""


class RankPartition:
    """A rank's seeds of each batch, its edges and rows, and the exchange with other ranks.

    Built before the ranks join their group. ``stages`` have the whole graph: they serve what the
    mode does not partition, and ``compare`` checks the partition against them.
    ``samples_together`` and ``loads_together``: all ranks sample, or load, at the same time, also a
    rank without seeds.
    """

    def __init__(self, job: Job, split: Split, rank: int, ranks: int, stages: Stages) -> None:
        began = time.perf_counter()
        graph, device = job.graph, job.device
        self._job, self._split, self._stages = job, split, stages
        waiting = nullcontext if job.peers is None else job.peers.pulse.waiting
        self.exchange = Exchange(place=(rank, ranks), waiting=waiting)
        self.partition = partition_of(graph, ranks, split)
        mine = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mine[self.partition.nodes_of(rank)] = True
        self._mine = mine.to(device)
        self.samples_together = split.mode == VANILLA and not job.cell.gathers
        self.loads_together = split.mode in (VANILLA, HYBRID) and stages.store is not None
        self._sampler: ShardSampler = stages.sampler
        if self.samples_together:
            self._sampler = self._vanilla_sampler()
        self._rows: OwnFeatures | None = None
        if self.loads_together:
            on_host = job.cell.stage_name("features") == "host"
            kept = torch.device("cpu") if on_host else device
            self._rows = OwnFeatures(graph, self.partition, self.exchange, device, kept)
            on_gpu = "host_copy" if on_host else "device"
            self._where = "host" if device.type == "cpu" else on_gpu
        job.counts.settled_by(self._settle)
        self._setup_s = time.perf_counter() - began

    def _vanilla_sampler(self) -> VanillaSampler:
        job, stage = self._job, self._stages.sampler
        weighted = stage.pick in WEIGHTED
        if weighted and job.graph.weights is None:
            raise UnsupportedError(
                f"pick '{stage.pick}' needs edge weights, and '{job.graph.name}' stores none"
            )
        return VanillaSampler(
            job.graph,
            self.partition,
            job.cell.fanouts,
            self.exchange,
            job.device,
            pick=stage.pick,
            frontier=stage.frontier,
            seed=job.cell.seed,
            weights="graph" if weighted else None,
        )

    def check_agreement(self) -> None:
        """Raise ``UsageError`` on all ranks unless they have the same partition."""
        of = {"version": __version__, "split": self._split, "partition": self.partition.digest()}
        self.exchange.agree(self._job.device, of)

    def seeds(self, batch: Tensor) -> Tensor:
        """Return those of a batch's seeds that the rank owns, in their order, perhaps none."""
        return batch[self._mine[batch.long()]]

    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Sample for the rank's own seeds; all ranks call it if ``samples_together``."""
        return self._sampler.sample(seeds, epoch, number)

    def load(self, batch: Batch | None) -> Tensor:
        """Load the rows of the batch's input nodes; None: no rows, for a rank without seeds."""
        if self._rows is None:
            assert batch is not None and self._stages.store is not None
            return self._stages.store.load(batch)
        if batch is None:
            ids = torch.empty(0, dtype=torch.int64, device=self._job.device)
        else:
            ids = batch.input_nodes
        return self._rows.rows(ids)

    def count_traffic(self, counts: Counts) -> None:
        """Count what was exchanged since the last call."""
        traffic, self.exchange.traffic = self.exchange.traffic, Traffic()
        rank = self.exchange.rank
        for purpose, stage in STAGES.items():
            if not traffic.rounds[purpose]:
                continue
            if rank == 0:  # every rank takes part in each
                counts.add(stage, ROUNDS, traffic.rounds[purpose])
                counts.add(stage, SIZE_ROUNDS, traffic.sizes[purpose])
            counts.add(stage, SENT_BYTES, traffic.sent[purpose], str(rank))
        if self._rows is None:
            return
        size = self._job.graph.features[:1].nbytes
        for where, n in ((self._where, self._rows.own_rows), ("network", self._rows.other_rows)):
            counts.add("features", FEATURE_BYTES, n * size, where)
            counts.add("features", CALLS, traffic.rounds[features.PURPOSE] // 2, where)
        self._rows.own_rows = self._rows.other_rows = 0

    def _settle(self) -> None:
        """Count the times of exchanges, which are read from the device only now."""
        for purpose, seconds in self.exchange.spent.take().items():
            self._job.counts.add(STAGES[purpose], EXCHANGE_TIME, seconds, str(self.exchange.rank))

    def compare(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """Compare the partition's batches and rows of own seeds with those of the whole graph.

        All ranks call it. Its exchanges are not counted. Returns the fault, or "".
        """
        fault, graph = "", self._job.graph
        for number, all_seeds in enumerate(batches):
            seeds = self.seeds(all_seeds.to(self._job.device))
            takes_part = seeds.numel() or self.samples_together
            batch = self.sample(seeds, epoch, number) if takes_part else None
            rows = self.load(batch) if batch is not None or self.loads_together else None
            if batch is None or not seeds.numel() or fault:
                continue
            right = self._stages.sampler.sample(seeds, epoch, number)
            assert isinstance(batch, MiniBatch) and isinstance(right, MiniBatch)
            if difference := same_work(right, batch, batch.frontier):
                fault = (
                    f"batch {number + 1}: a part draws otherwise than the whole graph: {difference}"
                )
            elif self._rows is not None and rows is not None:
                table = gather(graph.features, batch.input_nodes.cpu())
                if not torch.equal(rows.cpu(), table):
                    fault = f"batch {number + 1}: rows of other ranks are not the table's"
        self.count_traffic(Counts())
        return fault

    def setup_counts(self) -> list[list[str | float]]:
        """Return cost and quality of the partition, rows of (stage, measure, where, value)."""
        graph = self._job.graph
        quality = Quality.of(graph, self.partition)
        numbers = [
            (PART_TIME, self._setup_s),
            (EDGES_CUT, quality.cut),
            (CUT_SHARE, quality.cut_share),
            *(
                (measure, imbalance(getattr(quality, name)))
                for name, measure in PART_IMBALANCE.items()
            ),
        ]
        if self.partition.made_s is not None:
            numbers.insert(0, (PARTITION_TIME, self.partition.made_s))
        rows: list[list[str | float]] = [
            ["partition", measure.name, "", value] for measure, value in numbers
        ]
        bytes_by_rank = {}
        if self.loads_together:
            bytes_by_rank["features"] = quality.nodes * graph.features[:1].nbytes
        if self.samples_together:
            bytes_by_rank["sampler"] = quality.edges * graph.indices[:1].nbytes
        for stage, sizes in bytes_by_rank.items():
            for rank, size in enumerate(sizes.tolist()):
                rows.append([stage, PART_BYTES.name, str(rank), size])
        return rows


def partition_of(graph: Graph, parts: int, split: Split) -> Partition:
    """Return the stored partition, made if missing; a new one for a graph outside the store."""
    if graph.path is None:
        return partition(graph, parts, split.method, split.seed)
    return load_or_make(graph, parts, split.method, split.seed)
