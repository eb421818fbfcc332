"""The process of a rank above 0: builds the cell's system and runs the rank's part of each epoch.

Started by ``gnnbench.distributed.rank_processes`` with its parent's pid and the file descriptors of
a socket and of the ranks' heartbeats. It ends with the socket, with its parent, or after its first
error, which it reports.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TypedDict

import torch

from gnnbench.core import integrity
from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.heartbeat import RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.producer_messages import GoneError, receive, send
from gnnbench.distributed.rank_messages import (
    AuditEpoch,
    BuildRank,
    ComparePartition,
    EpochResult,
    JoinGroup,
    MeasurePhases,
    PhaseTimes,
    RunEpoch,
)
from gnnbench.distributed.rank_schedule import process_bytes
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.features.policies.policy import PROBED
from gnnbench.features.spec import StoreSpec
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.pipelines.serial import Serial, SerialSchedule
from gnnbench.sampling.stage import SamplerSpec
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.systems.runtime.stage_setup import prepare_store
from gnnbench.systems.runtime.stochastic import verifier


class Arguments(TypedDict):
    """The command-line argument, in JSON; ``more`` are file descriptors of other sockets."""

    parent: int
    socket: int
    board: int
    rank: int
    ranks: int
    more: dict[str, int]


class WorkerRank:
    """A system that runs one rank's part of each epoch."""

    def __init__(self, message: BuildRank, more: Mapping[str, int], pulse: Pulse) -> None:
        torch.set_num_threads(message.threads)
        if message.device is not None:
            torch.cuda.set_device(message.device)
        system = find(message.cell.system).build(message.cell, message.graph)
        assert isinstance(system, SystemRunner)
        rank, ranks, recipe = message.rank, message.ranks, system.recipe
        plan = plan_of(recipe.schedule)
        schedule = plan.rank_schedule(rank, ranks)
        is_derived = recipe.features is not None and recipe.features.derived
        alone = plan.alone() if is_derived else Serial()
        system.recipe = replace(recipe.of_rank(rank), schedule=alone)
        peers = Peers.another(rank, ranks, message.peers_port, pulse)
        system.job = replace(system.job, peers=peers)
        system.setup()
        self._system, self._fault, self._seen = system, "", list[bytes]()
        self._sampler, self._features, self._pulse = recipe.sampler, recipe.features, pulse
        self._rank_schedule = system.schedule = schedule
        if message.split is not None:
            from gnnbench.distributed.partitioned import RankPartition

            schedule.partition = RankPartition(
                system.job, message.split, rank, ranks, system.stages
            )
        schedule.start(system.stages)
        schedule.connect(more)

    def answer(self, message: object) -> object:
        """Do the work of a message; returns the answer to rank 0."""
        if isinstance(message, MeasurePhases):
            return self._measure(message)
        if isinstance(message, JoinGroup):
            self._join(message)
            return None
        if isinstance(message, RunEpoch):
            return self._run_epoch(message)
        if isinstance(message, ComparePartition):
            return self._compare(message)
        if isinstance(message, AuditEpoch):
            return self._audit(message)
        return None

    def _join(self, message: JoinGroup) -> None:
        """Join the other ranks; builds sampler and store again if the rank's role needs others."""
        system, schedule = self._system, self._rank_schedule
        assert system.job.peers is not None
        schedule.join(system.job.peers, system.job, message)
        sampler = schedule.sampler_spec(self._sampler, system.recipe.sampler)
        features = self._role_store(sampler)
        if features is not None and system.stages.store is not None:
            system.stages.store.close()  # first, so that a topology has its memory
        self._use_sampler(sampler)
        if features is not None:
            self._use_store(features)

    def _role_store(self, sampler: SamplerSpec) -> StoreSpec | None:
        """Return the spec of the store that the rank's role needs; None: it has that store.

        A ratio that is derived from free memory depends on the sampler's topology.
        """
        recipe = self._system.recipe
        if self._features is None or recipe.features is None or self._system.stages.store is None:
            return None
        features = self._rank_schedule.store_spec(self._features, recipe.features)
        is_derived_again = features.derived and sampler != recipe.sampler
        return features if is_derived_again or features != recipe.features else None

    def _use_sampler(self, sampler: SamplerSpec) -> None:
        system = self._system
        if sampler == system.recipe.sampler:
            return
        system.stages.sampler.close()
        system.recipe = replace(system.recipe, sampler=sampler)
        system.stages.sampler = sampler.stage_of(system.job)

    def _use_store(self, features: StoreSpec) -> None:
        system = self._system
        system.recipe = replace(system.recipe, features=features)
        system.stages.store = features.build(system.job)
        self._pulse.now(WORKS)  # no spans: the store is filled
        system.schedule = system.recipe.schedule.build(system.job)  # alone, as in set-up
        try:
            prepare_store(system)
        finally:
            system.schedule = self._rank_schedule
        system.counts.clear()

    def _measure(self, message: MeasurePhases) -> PhaseTimes | None:
        """Run an unnumbered epoch twice; returns seconds of a batch in the second one."""
        system = self._system
        if message.rank != self._rank_schedule.rank:
            return None
        saved = None if system.trainer is None else system.trainer.kept()
        system.schedule = SerialSchedule()
        for _ in range(2):  # the first one warms up
            timeline = Timeline.on(str(system.job.device))
            self._pulse.now(RUNS, timeline)
            timeline.start()
            system.run_epoch(PROBED, timeline)
            timeline.stop()
            batches = len(system.recorder.batches)
            system.recorder.clear()
        system.schedule = self._rank_schedule
        if system.trainer is not None and saved is not None:
            system.trainer.restore(saved)
            system.trainer.take_losses()
        system.counts.clear()
        busy = timeline.sweep().busy
        phases = ("sample", "memory_io", "compute")
        return PhaseTimes(*(busy.get(phase, 0.0) / batches for phase in phases))

    def _compare(self, message: ComparePartition) -> str:
        """Compare the rank's partition with the stages that have the whole graph."""
        if self._rank_schedule.partition is None:
            return ""
        with self._system.job.peak.apart():
            fault = self._rank_schedule.partition.compare(message.epoch, message.batches)
        self._system.counts.clear()
        return fault

    def _run_epoch(self, message: RunEpoch) -> EpochResult:
        """Run the rank's part of an epoch."""
        system = self._system
        self._fault = ""
        self._rank_schedule.records_edges = message.record_edges
        self._rank_schedule.broadcasts_state = message.broadcast_state
        every_batch = None
        if message.record_edges:
            every_batch = verifier(system.job, system.recipe.sampler, system.stages.sampler)
        system.recorder.verifier = every_batch
        system.copy_batches(message.copied)
        timeline = Timeline.on(str(system.job.device))
        self._pulse.now(RUNS, timeline)
        with system.job.peak.apart() if message.record_edges else nullcontext():
            timeline.start()
            system.run_epoch(message.number, timeline)
            timeline.stop()
        self._seen = []
        if every_batch is not None:
            self._fault, self._seen = every_batch.fault, every_batch.digests
        system.recorder.verifier = None
        counts = system.counts.rows()
        system.counts.clear()
        return EpochResult(
            counts,
            timeline.spans(),
            process_bytes(system.job.device, system.stages) + self._rank_schedule.bytes_apart,
        )

    def _audit(self, message: AuditEpoch) -> object:
        """Audit the rank's part of the last epoch."""
        report = self._system.audit(message.number)
        with self._system.job.peak.apart():
            return self._rank_schedule.results(self._fault or report.reason, self._seen)

    def close(self) -> None:
        """Free the system."""
        self._system.close()


def serve(connection: Connection[object, object], more: Mapping[str, int], pulse: Pulse) -> None:
    """Answer messages until rank 0 closes the connection.

    The first error ends the rank: its broken connection notifies the other ranks at once. ``more``
    are other sockets by name; ``pulse`` shows the rank's progress.
    """
    rank: WorkerRank | None = None
    check_code = integrity.record()  # before plug-ins are imported
    while True:
        message = receive(connection)
        runs_batches = isinstance(message, JoinGroup | RunEpoch | MeasurePhases)
        pulse.now(RUNS if runs_batches else WORKS)
        try:
            answer: object = None
            if isinstance(message, BuildRank):
                rank = WorkerRank(message, more, pulse)
            elif rank is not None:
                answer = rank.answer(message)
            check_code()
        except Exception as error:
            traceback.print_exc()
            send(connection, RemoteFailure.by(error))
            return
        send(connection, answer)
        pulse.now(RESTS)


def main() -> None:
    """Entry point; the argument is the JSON text of ``Arguments``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    arguments: Arguments = json.loads(sys.argv[1])
    die_with_parent(arguments["parent"])
    os.dup2(2, 1)  # the parent's output may carry a protocol
    pulse = Pulse(Board(arguments["ranks"], arguments["board"]), arguments["rank"])
    pulse.beats()
    with Connection(arguments["socket"]) as connection, suppress(GoneError):
        search_path = receive(connection)  # stages are found as in the parent
        assert isinstance(search_path, list)
        sys.path[:] = search_path
        serve(connection, arguments["more"], pulse)
    sys.stderr.flush()
    os._exit(0)  # without waiting for collectives


if __name__ == "__main__":
    main()
