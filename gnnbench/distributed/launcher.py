"""Rank 0: launches the other ranks, broadcasts each epoch, gathers and merges the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core.batch_choice import BatchChoice
from gnnbench.core.cell import Until
from gnnbench.core.counters import (
    AGAIN_EDGES,
    AGAIN_NODES,
    RANK_HELD,
    RANK_IDLE,
    RANK_PEAK,
)
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.heartbeat import RUNS, WORKS
from gnnbench.core.job import Job
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.coordination import Coordination
from gnnbench.distributed.merge import MergedEpoch, first_fault
from gnnbench.distributed.partition.split import Split
from gnnbench.distributed.process_group import share_gpus
from gnnbench.distributed.rank_messages import (
    AuditEpoch,
    BuildRank,
    ComparePartition,
    EpochResult,
    MeasurePhases,
    PhaseTimes,
    RunEpoch,
    expect,
)
from gnnbench.distributed.rank_schedule import RankSchedule, process_bytes
from gnnbench.distributed.rank_session import RankSession
from gnnbench.distributed.rank_trainer import rank_trainer
from gnnbench.measure.timeline import Span, Timeline, sweep
from gnnbench.pipelines.rank_audit import RankAudit
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.utilization import add_rows
from gnnbench.sampling.stage import SamplerStage


class LauncherAudit(RankAudit):
    """Checks all ranks' work on behalf of the gate and the audit of rank 0."""

    def __init__(
        self, job: Job, own: RankSchedule, session: RankSession, coordination: Coordination
    ):
        self._job, self._own, self._session = job, own, session
        self._coordination = coordination

    def record_edges(self, enabled: bool) -> None:
        """Set whether the ranks record edges in the next epochs."""
        self._own.rank_audit.record_edges(enabled)

    def copy_batches(self, choice: BatchChoice) -> None:
        """Set which batches the ranks copy aside."""
        self._own.copied = choice

    def own_seeds(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Return rank 0's seeds."""
        return self._own.rank_audit.own_seeds(batches)

    def own_numbers(self, batches: int) -> range:
        """Return the numbers of rank 0's batches."""
        return self._own.rank_audit.own_numbers(batches)

    def trained_batches(self, batches: int) -> int:
        """Return on how many batches rank 0 trained."""
        return self._own.rank_audit.trained_batches(batches)

    def sampled_per_seed(
        self, sampler: SamplerStage, batches: Sequence[Tensor]
    ) -> tuple[float, float] | None:
        """Return edges and nodes per seed as all ranks sample them."""
        return self._own.rank_audit.sampled_per_seed(sampler, batches)

    def compare(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """Compare what the ranks' partitions sample and load with the whole graph's stages."""
        partition = self._own.partition
        if partition is None:
            return ""
        message = ComparePartition(epoch, [batch.cpu() for batch in batches])
        own, others = self._session.run(message, lambda: partition.compare(epoch, batches), WORKS)
        return first_fault([own, *expect(str, others)])

    def merge(self, epoch: int, reason: str) -> MergedEpoch:
        """Merge the results of all ranks, each audited by itself; ``reason`` is rank 0's fault."""
        own, others = self._session.run(AuditEpoch(epoch), lambda: self._own.results(reason), WORKS)
        with self._session.failing_together():
            merged = self._coordination.merge(epoch, [own, *others])
        self._job.counts.add("schedule", AGAIN_EDGES, merged.again_edges)
        self._job.counts.add("schedule", AGAIN_NODES, merged.again_nodes)
        return merged


class Launcher(Schedule):
    """Rank 0, in the process that built the object; the others are its child processes.

    ``own`` is rank 0's part of an epoch. An exception of a rank is raised here. If a rank dies or
    hangs ``RankDiedError`` is raised, or ``MemoryError`` if the kernel killed it for lack of
    memory. Then all ranks are ended. Each rank has an equal share of the threads during an epoch.
    """

    def __init__(
        self,
        job: Job,
        own: RankSchedule,
        coordination: Coordination | None = None,
        split: Split | None = None,
    ) -> None:
        ranks = own.ranks
        self.own, self.coordination, self._split = own, coordination or Coordination(), split
        self._all_threads = torch.get_num_threads()
        self._threads = max(self._all_threads // ranks, 1)
        self._stamp: tuple[int, ...] | None = None  # of the trainer, at the end of the last epoch
        _check_devices(job, ranks)
        if split is not None and job.graph.path is not None:
            # Once, before the start: a rank that waits for a partition looks like one that hangs.
            from gnnbench.distributed.partitioned import partition_of

            partition_of(job.graph, ranks, split)
        self.session = RankSession(job, own, self.coordination)
        self.peers = self.session.peers
        self._job = replace(job, peers=self.peers)
        self.rank_audit = LauncherAudit(self._job, own, self.session, self.coordination)
        self.session.start(self._build_message)

    def _build_message(self, rank: int) -> BuildRank:
        job, device = self._job, None
        if job.device.type == "cuda":
            device = ((job.device.index or 0) + rank) % torch.cuda.device_count()
        return BuildRank(
            self.session.peers.port, job.cell, job.graph, rank, self.own.ranks, self._threads,
            device, self._split,
        )  # fmt: skip

    @property
    def pids(self) -> list[int]:
        """Process ids of the other ranks."""
        return [process.pid for process in self.session.processes.processes]

    def start(self, stages: Stages) -> None:
        """Build rank 0's partition, wait until all ranks are built, and join them."""
        self.own.start(stages)
        if self._split is not None:
            from gnnbench.distributed.partitioned import RankPartition

            with self.session.failing_together():
                self.own.partition = RankPartition(
                    self._job, self._split, 0, self.own.ranks, stages
                )
                self.setup_counts = self.own.partition.setup_counts()
        self._join()

    def _join(self) -> None:
        session = self.session
        session.check()
        if self.own.group is not None:
            return
        with session.failing_together():
            session.gather()
            message = self.coordination.join_message(self._measure)
        session.run(message, lambda: self.own.join(session.peers, self._job, message), RUNS)

    def _measure(self, rank: int) -> PhaseTimes:
        """Have one rank run an epoch alone."""
        self.session.processes.broadcast(MeasurePhases(rank))
        times = self.session.gather()[rank - 1]
        assert isinstance(times, PhaseTimes)
        return times

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Have all ranks run their parts; the spans of each have their own lane."""
        self._join()
        own = Timeline.on(str(self._job.device))
        trainer, records_edges = rank_trainer(stages), self.own.records_edges
        # The other ranks do not know what was trained, or restored, on rank 0 since the last epoch.
        self.own.broadcasts_state = trainer is not None and trainer.stamp() != self._stamp
        message = RunEpoch(epoch, records_edges, self.own.broadcasts_state, self.own.copied)

        def run_own_part() -> None:
            own.start()
            self.own.epoch(epoch, batches, stages, own, until)
            own.stop()
            if self.own.group is not None and self.own.group.aborted:
                raise LostError("NCCL was ended: a rank did not come")

        with self.coordination.epoch(batches, stages, until, records_edges):
            torch.set_num_threads(self._threads)
            try:
                _, answers = self.session.run(message, run_own_part, RUNS, own)
            finally:
                torch.set_num_threads(self._all_threads)
            self._stamp = None if trainer is None else trainer.stamp()
            self._count(own, expect(EpochResult, answers), stages, timeline)

    def _count(
        self, own: Timeline, results: list[EpochResult], stages: Stages, timeline: Timeline
    ) -> None:
        """Count what all ranks did in an epoch, and add their spans to the timeline."""
        spans_by_rank: list[list[Span]] = [own.spans(), *(result.spans for result in results)]
        for spans in spans_by_rank:
            timeline.add(spans)
        counts, device = self._job.counts, self._job.device
        for result in results:
            add_rows(counts, result.counts)
        for rank, spans in enumerate(spans_by_rank):
            idle_s = sweep(spans, own.begin, own.end).idle
            counts.add("schedule", RANK_IDLE, idle_s, str(rank))
        measure = RANK_PEAK if device.type == "cuda" else RANK_HELD
        own_bytes, apart = process_bytes(device, stages), self.own.bytes_apart
        sizes = [own_bytes + apart, *(result.peak_bytes for result in results)]
        for rank, size in enumerate(sizes):
            counts.add("schedule", measure, size, str(rank))
        self.coordination.count(counts, spans_by_rank)
        self.peak_bytes = sum(sizes[1:]) + apart

    def close(self) -> None:
        """End all ranks and leave the group."""
        self.session.close()


def _check_devices(job: Job, ranks: int) -> None:
    """Raise ``UnsupportedError`` if this process has a group already, or too few GPUs."""
    if dist.is_initialized():
        raise UnsupportedError(
            "ranks train one system in a process, and another has a group of ranks already;"
            " close that first"
        )
    devices = torch.cuda.device_count() if job.device.type == "cuda" else ranks
    if devices < ranks and not share_gpus():
        raise UnsupportedError(f"{ranks} ranks need as many GPUs, and {devices} are here")
