"""What a rank keeps of a graph that is split over all ranks, and what it asks of the others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

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

STAGES = {vanilla.PURPOSE: "sampler", features.PURPOSE: "features"}  # by purpose of a round


class Parts:
    """A rank's part: its seeds of each batch, its edges and rows, and the exchange of the others'.

    Made before the ranks meet. ``stages`` are those of the whole graph: what the mode does not
    split is theirs, and what it does is held against them (``compare``). ``asks`` and ``fetches``:
    all ranks sample, or load, together, one without seeds too.
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
        self.asks = split.mode == VANILLA and not job.cell.gathers
        self.fetches = split.mode in (VANILLA, HYBRID) and stages.store is not None
        self._sampler: Any = self._vanilla() if self.asks else stages.sampler
        self._rows: OwnFeatures | None = None
        if self.fetches:
            on_host = job.cell.recipe["features"]["name"] == "host"
            kept = torch.device("cpu") if on_host else device
            self._rows = OwnFeatures(graph, self.partition, self.exchange, device, kept)
            away = "host_copy" if on_host else "device"
            self._where = "host" if device.type == "cpu" else away
        job.counts.settled_by(self._settle)
        self._seconds = time.perf_counter() - began

    def _vanilla(self) -> VanillaSampler:
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

    @property
    def mode(self) -> str:
        """How the graph is split."""
        return self._split.mode

    def agree(self) -> None:
        """Raise ``UsageError`` on all ranks unless they have one partition; they have just met."""
        of = {"version": __version__, "split": self._split, "partition": self.partition.digest()}
        self.exchange.agree(self._job.device, of)

    def seeds(self, batch: Tensor) -> Tensor:
        """Those of a batch's seeds that the rank owns, in their order; there may be none."""
        return batch[self._mine[batch.long()]]

    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Draw for the rank's own seeds. Where it ``asks`` all ranks call it, one without seeds
        too."""
        found: Batch = self._sampler.sample(seeds, epoch, number)
        return found

    def load(self, batch: Batch | None) -> Tensor:
        """Rows of the batch's input nodes; None: of none, by a rank without seeds."""
        if self._rows is None:
            assert batch is not None and self._stages.store is not None
            return self._stages.store.load(batch)
        if batch is None:
            ids = torch.empty(0, dtype=torch.int64, device=self._job.device)
        else:
            ids = batch.input_nodes
        return self._rows.rows(ids)

    def tell(self, counts: Counts) -> None:
        """Count what was exchanged since the last call, and forget it."""
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
        """Tell the times of what was exchanged, for which nobody has waited before."""
        for purpose, seconds in self.exchange.spent.take().items():
            self._job.counts.add(STAGES[purpose], EXCHANGE_TIME, seconds, str(self.exchange.rank))

    def compare(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """Draw and load what the rank owns of batches by its part, and by the stages that have the
        whole graph: how the two differ, or "". All ranks call it; what is exchanged is not counted.
        """
        fault, graph = "", self._job.graph
        for number, whole in enumerate(batches):
            seeds = self.seeds(whole.to(self._job.device))
            batch = self.sample(seeds, epoch, number) if seeds.numel() or self.asks else None
            rows = self.load(batch) if batch is not None or self.fetches else None
            if batch is None or not seeds.numel() or fault:
                continue
            right = self._stages.sampler.sample(seeds, epoch, number)
            assert isinstance(batch, MiniBatch) and isinstance(right, MiniBatch)
            if found := same_work(right, batch, batch.frontier):
                fault = f"batch {number + 1}: a part draws otherwise than the whole graph: {found}"
            elif self._rows is not None and rows is not None:
                table = gather(graph.features, batch.input_nodes.cpu())
                if not torch.equal(rows.cpu(), table):
                    fault = f"batch {number + 1}: rows of other ranks are not the table's"
        self.tell(Counts())
        return fault

    def told(self) -> list[list[Any]]:
        """What the partition took and is, as rows of (stage, measure, where, value)."""
        graph = self._job.graph
        found = Quality.of(graph, self.partition)
        numbers = [
            (PART_TIME, self._seconds),
            (EDGES_CUT, found.cut),
            (CUT_SHARE, found.cut_share),
            *((what, imbalance(getattr(found, name))) for name, what in PART_IMBALANCE.items()),
        ]
        if self.partition.made_s is not None:
            numbers.insert(0, (PARTITION_TIME, self.partition.made_s))
        rows: list[list[Any]] = [["partition", what.name, "", value] for what, value in numbers]
        kept = {}
        if self.fetches:
            kept["features"] = found.nodes * graph.features[:1].nbytes
        if self.asks:
            kept["sampler"] = found.edges * graph.indices[:1].nbytes
        for stage, sizes in kept.items():
            for rank, size in enumerate(sizes.tolist()):
                rows.append([stage, PART_BYTES.name, str(rank), size])
        return rows


def partition_of(graph: Graph, parts: int, split: Split) -> Partition:
    """The stored one, made where it is not there; of a graph that is not of the store a new one."""
    if graph.path is None:
        return partition(graph, parts, split.method, split.seed)
    return load_or_make(graph, parts, split.method, split.seed)
