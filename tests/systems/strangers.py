"""What somebody else might write for gnnbench, one of each kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gnnbench.core.cell import phases
from gnnbench.core.counters import Counts, declare
from gnnbench.core.job import Job
from gnnbench.core.option import Option
from gnnbench.core.stage import option
from gnnbench.features.base import FeatureStore
from gnnbench.features.spec import StoreSpec
from gnnbench.pipelines.order import AsDrawn
from gnnbench.sampling.hop_by_hop import HopByHop
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.system import CheckReport, EpochReport, System

CHUNKS = declare("chunks", "", "pieces in which a stranger's store reads")


class Theirs(HopByHop):
    """The baseline's sampler with an option of its own."""

    name = "theirs"
    summary = "a stranger's sampler"
    devices = ("cpu",)
    options: ClassVar[dict[str, Option]] = {"depth": Option("depth", 1, "how deep", range(1, 4))}

    def __init__(self, setting, depth=1):
        super().__init__(setting)
        self.depth = depth


@dataclass(frozen=True)
class Chunked(StoreSpec):
    """A store with an option of its own."""

    name: ClassVar[str] = "chunked"
    summary: ClassVar[str] = "rows, some at a time"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    rows: int = option(64, "rows at a time", range(1, 1025))

    def build(self, job):
        return ChunkedStore(job, self.rows)


class ChunkedStore(FeatureStore):
    """Rows of the table, some at a time."""

    def __init__(self, job, rows):
        super().__init__(job)
        self._rows = rows

    def load(self, batch):
        parts = batch.input_nodes.long().split(self._rows)
        self.count(batch.input_nodes.numel(), "host")
        self.job.counts.add("features", CHUNKS, len(parts), "host")
        return torch.cat([self.job.graph.features[part] for part in parts])


RECIPE = replace(
    BASELINE,
    name="thirdparty",
    summary="a stranger's system",
    paper="Stranger, On being one",
    sampler=native("theirs", depth=2),
    features=Chunked(),
)


class OwnLoop(System):
    """A system with an epoch loop of its own, that says of itself that it is right."""

    name = "ownloop"
    summary = "a stranger's loop"
    devices = ("cpu",)
    options: ClassVar[dict[str, Option]] = {"size": Option("size", 1, "how much", range(1, 5))}

    def setup(self):
        self.order = AsDrawn().build(Job(self.cell, self.graph, Counts()))

    def check(self):
        law = "without-replacement"
        return CheckReport(True, "", "own", "cumulative", law, "", 9.0, 9.0)

    def run_epoch(self, epoch, timeline):
        for number, _ in enumerate(self.order.batches(epoch)):
            for phase in phases(self.cell.until):
                with timeline.span(phase, number):
                    torch.ones(100_000 * self.cell.recipe["size"]).sum()

    def audit(self, epoch):
        batches = self.order.batches(epoch)
        seeds = sum(b.numel() for b in batches)
        loss = 1 / (epoch + 1) if self.cell.trains else None
        return EpochReport(epoch, len(batches), seeds, 9 * seeds, 9 * seeds, loss)
