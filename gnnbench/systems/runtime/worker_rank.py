"""The process of a rank above 0: the cell's system, built anew, that runs its part of each epoch.

Started by ``gnnbench.distributed.launcher`` with its parent's pid, the numbers of a socket and of
the ranks' board. It ends with the socket, with its parent, or by its first error, which it tells.
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
from typing import Any

import torch

from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.heartbeat import RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.producer import GoneError, receive, send
from gnnbench.distributed.ranks import (
    Audit,
    Compare,
    Epoch,
    Join,
    Measure,
    Measured,
    Part,
    Ran,
    Start,
    own_bytes,
)
from gnnbench.features.policies.policy import PROBED
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import Failed
from gnnbench.pipelines.serial import Serial
from gnnbench.sampling.stage import SamplerSpec
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import Composed
from gnnbench.systems.runtime.stochastic import verifier


class Follower:
    """A system of which a rank's part is run."""

    def __init__(self, start: Start, more: Mapping[str, int], pulse: Pulse) -> None:
        torch.set_num_threads(start.threads)
        if start.device is not None:
            torch.cuda.set_device(start.device)
        system = find(start.cell.system).build(start.cell, start.graph)
        assert isinstance(system, Composed)
        recipe = system.recipe
        part = recipe.schedule.part(start.rank, start.ranks)
        assert isinstance(part, Part)
        system.recipe = replace(recipe.of_rank(start.rank), schedule=Serial())
        peers = Peers.another(start.rank, start.ranks, start.peers_port, pulse)
        system.job = replace(system.job, peers=peers)
        system.setup()
        self._system, self._fault, self._seen = system, "", list[bytes]()
        self._sampler, self._pulse = recipe.sampler, pulse
        self._part = system._schedule = part
        if start.split is not None:
            from gnnbench.distributed.partitioned import Parts

            part.held = Parts(system.job, start.split, start.rank, start.ranks, system.stages)
        part.attach(system.stages)
        part.connect(more)

    def join(self, word: Join) -> None:
        """Meet the other ranks."""
        job = self._system.job
        assert job.peers is not None
        self._part.meet(job.peers, job, word)
        self._equip(self._part.draws_by(self._sampler, self._system.recipe.sampler))

    def _equip(self, sampler: SamplerSpec) -> None:
        """Draw by ``sampler``, where the rank's part, known by now, needs another than it has."""
        system = self._system
        if sampler == system.recipe.sampler:
            return
        system.stages.sampler.close()
        system.recipe = replace(system.recipe, sampler=sampler)
        system.stages.sampler = sampler.stage_of(system.job)

    def measure(self, word: Measure) -> Measured | None:
        """Run an epoch that no harness numbers twice, and tell a batch's seconds of the second."""
        system = self._system
        if word.rank != self._part.rank:
            return None
        kept = None if system.trainer is None else system.trainer.kept()
        system._schedule = Serial()
        for _ in range(2):  # the first one finds nothing in its place
            timeline = Timeline.on(str(system.job.device))
            self._pulse.now(RUNS, timeline)
            timeline.start()
            system.run_epoch(PROBED, timeline)
            timeline.stop()
            batches = len(system._kept)
            system._kept, system._last = [], None
        system._schedule = self._part
        if system.trainer is not None and kept is not None:
            system.trainer.restore(kept)
            system.trainer.take_losses()
        system.counts.clear()
        busy = timeline.sweep().busy
        phases = ("sample", "memory_io", "compute")
        return Measured(*(busy.get(phase, 0.0) / batches for phase in phases))

    def compare(self, word: Compare) -> str:
        """Hold what the rank draws and loads from its part against the whole graph's."""
        if self._part.held is None:
            return ""
        with self._system.job.peak.apart():
            fault = self._part.held.compare(word.epoch, word.batches)
        self._system.counts.clear()
        return fault

    def epoch(self, word: Epoch) -> Ran:
        """Run the rank's part of an epoch."""
        system = self._system
        self._fault = ""
        self._part.look(word.looks)
        self._part.shares = word.shares
        looking = None
        if word.looks:
            looking = verifier(system.job, system.recipe.sampler, system.stages.sampler)
        system._verifier = looking
        timeline = Timeline.on(str(system.job.device))
        self._pulse.now(RUNS, timeline)
        with system.job.peak.apart() if word.looks else nullcontext():
            timeline.start()
            system.run_epoch(word.number, timeline)
            timeline.stop()
        self._seen = []
        if looking is not None:
            self._fault, self._seen = looking.fault, looking.seen
        system._verifier = None
        counts = system.counts.rows()
        system.counts.clear()
        return Ran(counts, timeline.spans(), own_bytes(system.job.device, system.stages))

    def audit(self, word: Audit) -> Any:
        """Look at the rank's part of the last epoch again."""
        report = self._system.audit(word.number)
        with self._system.job.peak.apart():
            return self._part.audited(self._fault or report.reason, self._seen)

    def close(self) -> None:
        """Give back what the system holds."""
        self._system.close()


def serve(connection: Connection, more: Mapping[str, int], pulse: Pulse) -> None:
    """Do what is asked until nobody asks any more. The first error ends it: the others wait for
    this rank, and its broken connection tells them at once. ``more`` are other sockets, by name;
    ``pulse`` shows that the rank gets on."""
    follower: Follower | None = None
    while True:
        word = receive(connection)
        pulse.now(RUNS if isinstance(word, Join | Epoch | Measure) else WORKS)
        try:
            answer: Any = None
            if isinstance(word, Start):
                follower = Follower(word, more, pulse)
            elif follower is not None and isinstance(word, Measure):
                answer = follower.measure(word)
            elif follower is not None and isinstance(word, Join):
                follower.join(word)
            elif follower is not None and isinstance(word, Epoch):
                answer = follower.epoch(word)
            elif follower is not None and isinstance(word, Compare):
                answer = follower.compare(word)
            elif follower is not None and isinstance(word, Audit):
                answer = follower.audit(word)
        except Exception as error:
            traceback.print_exc()
            send(connection, Failed.by(error))
            return
        send(connection, answer)
        pulse.now(RESTS)


def main() -> None:
    """Entry point; the arguments are ``{"parent": pid, "socket": number, "board": number, "rank",
    "ranks", "more": numbers of other sockets by name}``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    told = json.loads(sys.argv[1])
    die_with_parent(told["parent"])
    os.dup2(2, 1)  # the parent's output may be a protocol of its own
    pulse = Pulse(Board(told["ranks"], told["board"]), told["rank"])
    pulse.beats()
    with Connection(told["socket"]) as connection, suppress(GoneError):
        sys.path[:] = receive(connection)  # stages are found as in the parent
        serve(connection, told["more"], pulse)
    sys.stderr.flush()
    os._exit(0)  # nothing here is anybody's: no collective is waited for


if __name__ == "__main__":
    main()
