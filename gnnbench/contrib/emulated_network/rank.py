"""One rank of a life of gnnbench's own: epochs of its systems in turn.

``python -m gnnbench.contrib.emulated_network.rank PLAN OUT`` in the environment that torchrun
sets; ``OUT`` gets a
JSON list, a record for each epoch.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.contrib.emulated_network.distdgl import OWNERS
from gnnbench.contrib.emulated_network.network import counters
from gnnbench.contrib.emulated_network.plan import Plan
from gnnbench.contrib.emulated_network.records import EpochReport, Measured
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.datasets.graph import Graph
from gnnbench.datasets.prepare import load_dataset
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.ranks import Rank, RankFeatures, RankSampler, join
from gnnbench.distributed.partition.rendezvous import contents, meeting
from gnnbench.distributed.partition.stored import load_or_make
from gnnbench.distributed.partition.train import Trainer

DGL = "dgl"  # the partition that DistDGL has
# FastSample's Fig. 6: the bars, by mode of the partition and by sampler.
SYSTEMS = {
    "vanilla": ("vanilla", "fastsample"),
    "hybrid": ("hybrid", "hop-by-hop"),
    "hybrid-fused": ("hybrid", "fastsample"),
}


class _Timed:
    """A rank's sampler and store of features with the time that each takes, and what is drawn."""

    def __init__(self, rank: Rank) -> None:
        self._sampler: RankSampler = rank.sampler
        self._features: RankFeatures = rank.features
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.seconds = {"sample": 0.0, "features": 0.0}
        self.edges: list[int] = []
        self.nodes: list[int] = []
        self.seeds = 0

    def sample(self, seeds: Tensor, epoch: int = 0, batch: int = 0) -> MiniBatch:
        begun = time.perf_counter()
        batch_blocks = self._sampler.sample(seeds, epoch=epoch, batch=batch)
        self.seconds["sample"] += time.perf_counter() - begun
        self.edges.append(batch_blocks.sizes().num_edges)
        self.nodes.append(batch_blocks.input_nodes.numel())
        self.seeds += seeds.numel()
        return batch_blocks

    def rows(self, nodes: Tensor) -> Tensor:
        begun = time.perf_counter()
        rows = self._features.rows(nodes)
        self.seconds["features"] += time.perf_counter() - begun
        return rows


class _Few(Trainer):
    """A trainer of an epoch's first steps: ``most``, 0 for all."""

    most = 0

    def batches(self, epoch: int) -> list[Tensor]:
        batches = super().batches(epoch)
        return batches[: self.most] if self.most else batches


def live(plan: Plan) -> list[EpochReport]:
    """All epochs of a life, as this rank saw them. Raises as ``meeting`` and ``join`` do."""
    torch.set_num_threads(1)
    methods = () if plan.method == DGL else (plan.method,)
    definition = {k: v for k, v in asdict(plan).items() if k != "folder"}
    definition |= contents(plan.dataset, methods, plan.seed)
    rows: list[EpochReport] = []
    with meeting(definition) as (_, ranks):
        graph = load_dataset(plan.dataset)
        partition = _partition(plan, graph, ranks)
        systems: dict[str, tuple[Rank, _Timed, _Few]] = {}
        for system in dict.fromkeys(system for system, _ in plan.epochs):
            mode, sampler = SYSTEMS[system]
            rank = join(graph, partition, mode, plan.fanouts, sampler=sampler, seed=plan.seed)
            timed = _Timed(rank)
            trainer = _Few(
                replace(rank, sampler=timed, features=timed),
                hidden=plan.hidden,
                batch_size=plan.batch_size,
                learning_rate=plan.learning_rate,
                seed=plan.seed,
            )
            systems[system] = (rank, timed, trainer)
        for place, (system, number) in enumerate(plan.epochs):
            systems[system][2].most = plan.steps(number)
            measured = _epoch(*systems[system], number)
            rows.append({"place": place, "system": system, "epoch": number, **measured})
    return rows


def _partition(plan: Plan, graph: Graph, ranks: int) -> Partition:
    if plan.method != DGL:
        return load_or_make(graph, ranks, plan.method, plan.seed)
    owners = torch.from_numpy(np.load(Path(plan.folder) / OWNERS))
    return Partition.of_owners(owners, ranks, DGL, plan.seed)


def _epoch(rank: Rank, timed: _Timed, trainer: Trainer, number: int) -> Measured:
    """One epoch between two barriers, whose few bytes are in the link's count."""
    traffic = rank.exchange.traffic
    timed.forget()
    counts = {key: value for key, value in vars(traffic).items() if isinstance(value, Counter)}
    before = {key: value.copy() for key, value in counts.items()}
    dist.barrier()
    link = counters()
    begun = time.perf_counter()
    losses = trainer.epoch(number)
    wall = time.perf_counter() - begun
    dist.barrier()
    sent, received = (now - then for now, then in zip(counters(), link, strict=True))
    grown = {key: value - before[key] for key, value in counts.items()}
    return {
        "rank": rank.rank,
        "wall_s": wall,
        "sample_s": timed.seconds["sample"],
        "features_s": timed.seconds["features"],
        "steps": len(losses),
        "seeds": timed.seeds,
        "edges": timed.edges,
        "nodes": timed.nodes,
        "losses": losses,
        "rounds": sum(grown["rounds"].values()),
        "size_calls": sum(grown["sizes"].values()),
        "reduces": sum(grown["reduces"].values()),
        "sample_bytes": grown["sent"]["sample"],
        "features_bytes": grown["sent"]["features"],
        "size_bytes": sum(grown["size_bytes"].values()),
        "reduced_bytes": sum(grown["reduced_bytes"].values()),
        "link_sent_bytes": sent,
        "link_received_bytes": received,
    }


def main() -> None:
    """The program; an error of the user's is one line, with its exit code."""
    plan, out = map(Path, sys.argv[1:])
    try:
        rows = live(Plan.read(plan))
    except GnnbenchError as error:
        print(f"gnnbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    out.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
