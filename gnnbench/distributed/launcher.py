"""Rank 0's side: it starts the other ranks, tells them each epoch, and puts all together."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core import bootstrap, process_activity
from gnnbench.core.cell import Until
from gnnbench.core.counters import (
    AGAIN_EDGES,
    AGAIN_NODES,
    MEASURES,
    RANK_HELD,
    RANK_IDLE,
    RANK_PEAK,
)
from gnnbench.core.errors import GnnbenchError, UnsupportedError
from gnnbench.core.heartbeat import RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.core.job import Job
from gnnbench.core.peer_failure import LostError, is_late, is_lost
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.merge import United, unite
from gnnbench.distributed.partition.split import Split
from gnnbench.distributed.process_group import share_gpus
from gnnbench.distributed.producer import GoneError, receive, send
from gnnbench.distributed.ranks import Audit, Compare, Epoch, Join, Part, Ran, Start, own_bytes
from gnnbench.distributed.watch import SETTLE_S, Loss, Watch
from gnnbench.measure.machine import oom_kills
from gnnbench.measure.timeline import Span, Timeline, sweep
from gnnbench.pipelines.batch_buffer import Failed
from gnnbench.pipelines.schedule import FLAT, Stages
from gnnbench.pipelines.utilization import count_busy, count_imbalance

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLLOWER = "gnnbench.systems.runtime.worker_rank"
END_S = 5.0  # that ranks may take to end, all together


class RankDiedError(GnnbenchError):
    """A rank's process has ended by itself, or does not answer."""


class Leader(Part):
    """Rank 0, in the process that made the object; the others are its children, built with it.

    An exception of a rank is raised here; where one has died or hangs ``RankDiedError`` is, or
    ``MemoryError`` where the kernel killed it for lack of memory. Then all ranks are ended. Each
    rank has an equal part of the threads while an epoch runs.
    """

    peers: Peers

    def __init__(
        self, job: Job, ranks: int, split: Split | None = None, gradients: str = FLAT
    ) -> None:
        super().__init__(0, ranks, gradients)
        self._split = split
        self._all_threads = torch.get_num_threads()
        self._threads = max(self._all_threads // ranks, 1)
        self._oom_kills = oom_kills()
        self._ranks: list[tuple[subprocess.Popen[bytes], Connection]] = []
        self._failed: Failed | None = None
        self._stamp: tuple[int, ...] | None = None  # of the trainer, at the last epoch's end
        if dist.is_initialized():
            raise UnsupportedError(
                "ranks train one system in a process, and another has a group of ranks already;"
                " close that first"
            )
        there = torch.cuda.device_count() if job.device.type == "cuda" else ranks
        if there < ranks and not share_gpus():
            raise UnsupportedError(f"{ranks} ranks need as many GPUs, and {there} are here")
        if split is not None and job.graph.path is not None:
            # Once for all: ranks that wait for a partition could not be told from ones that hang.
            from gnnbench.distributed.partitioned import partition_of

            partition_of(job.graph, ranks, split)
        self._board = Board(ranks)
        own = Pulse(self._board, 0)
        self.peers = Peers.first(ranks, self._still, own)
        self._job = replace(job, peers=self.peers)
        own.now(WORKS)
        processes: list[subprocess.Popen[bytes]] = []
        self._watch = Watch(self._board, own, processes, lost=self._lost, stuck=self._stuck)
        try:
            for rank in range(1, ranks):
                Pulse(self._board, rank).now(WORKS)
                self._ranks.append(self._started(rank))
                processes.append(self._ranks[-1][0])
            self._watch.begin()
            for rank in range(1, ranks):
                self._say(rank, sys.path)
                self._say(rank, self._start(rank))
        except BaseException as error:
            self._give_up(error)

    def _start(self, rank: int) -> Start:
        job, device = self._job, None
        if job.device.type == "cuda":
            device = ((job.device.index or 0) + rank) % torch.cuda.device_count()
        return Start(
            self.peers.port, job.cell, job.graph, rank, self.ranks, self._threads, device,
            self._split,
        )  # fmt: skip

    def _started(self, rank: int) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = socket.socketpair()
        more = self._more_sockets(rank)
        sockets = {name: one.fileno() for name, one in more.items()}
        told = {
            "parent": os.getpid(), "socket": theirs.fileno(), "rank": rank, "ranks": self.ranks,
            "board": self._board.descriptor, "more": sockets,
        }  # fmt: skip
        given = [theirs.fileno(), self._board.descriptor, *sockets.values()]
        with theirs:
            process = subprocess.Popen(
                [*bootstrap.command(sys.executable, FOLLOWER), json.dumps(told)],
                stdin=subprocess.DEVNULL,
                pass_fds=given,
            )
        for one in more.values():
            one.close()
        return process, Connection(ours.detach())

    def _more_sockets(self, rank: int) -> dict[str, socket.socket]:
        """Ends of sockets that a rank is given beside its own, by name."""
        return {}

    def _join(self) -> Join:
        """The word by which ranks meet; all are built."""
        return Join()

    def _unite(self, ranks: list[Any]) -> United:
        """What ranks tell of the last epoch, put together."""
        return unite(ranks)

    def _tell_of(self, ranks: list[list[Span]]) -> None:
        """Count what the ranks' spans of an epoch tell."""
        count_busy(self._job.counts, ranks)
        count_imbalance(self._job.counts, ranks, {"": range(self.ranks)})

    @property
    def pids(self) -> list[int]:
        """Process ids of the other ranks."""
        return [process.pid for process, _ in self._ranks]

    def attach(self, stages: Stages) -> None:
        """Copy rank 0's part of a split graph, while the others copy theirs."""
        super().attach(stages)
        if self._split is None:
            return
        from gnnbench.distributed.partitioned import Parts

        try:
            self.held = Parts(self._job, self._split, 0, self.ranks, stages)
            self.told = self.held.told()
        except BaseException as error:
            self._give_up(error)

    def ready(self) -> None:
        """Wait until all ranks are built, and meet them. Raises what one could not be built for."""
        self._still()
        if self.group is not None:
            return
        try:
            self._answers()
            word = self._join()
            self._tell(word)
            with self._does(RUNS):
                self.meet(self.peers, self._job, word)
                self._answers()
        except BaseException as error:
            self._give_up(error)

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """All ranks run their parts; the spans of each are on a lane of its own."""
        self.ready()
        own = Timeline.on(str(self._job.device))
        trainer: Any = stages.trainer
        # What was trained, or put back, here alone since the last epoch the others do not know.
        self.shares = trainer is not None and trainer.stamp() != self._stamp
        torch.set_num_threads(self._threads)
        try:
            self._tell(Epoch(epoch, self._looks, self.shares))
            with self._does(RUNS, own):
                own.start()
                super().epoch(epoch, batches, stages, own, until)
                own.stop()
                if self.group is not None and self.group.aborted:
                    raise LostError("NCCL was ended: a rank did not come")
                found: list[Ran] = self._answers()
        except BaseException as error:
            self._give_up(error)
        finally:
            torch.set_num_threads(self._all_threads)
        self._stamp = None if trainer is None else trainer.stamp()
        spans = [own.spans(), *(ran.spans for ran in found)]
        for some in spans:
            timeline.add(some)
        counts = self._job.counts
        for ran in found:
            for stage, name, where, value in ran.counts:
                counts.add(stage, MEASURES[name], value, where)
        for rank, some in enumerate(spans):
            counts.add("schedule", RANK_IDLE, sweep(some, own.begin, own.end).idle, str(rank))
        measured = RANK_PEAK if self._job.device.type == "cuda" else RANK_HELD
        held = [own_bytes(self._job.device, stages), *(ran.peak_bytes for ran in found)]
        for rank, size in enumerate(held):
            counts.add("schedule", measured, size, str(rank))
        self._tell_of(spans)
        self.peak_bytes = sum(held[1:])

    @contextmanager
    def _does(self, what: float, timeline: Timeline | None = None) -> Iterator[None]:
        """What rank 0 does in a block, where the others may wait for it."""
        own = self.peers.pulse
        own.now(what, timeline)
        try:
            yield
        finally:
            own.now(RESTS)

    def compared(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """What is wrong with these batches as ranks draw and load them from their parts, or ""."""
        if self.held is None:
            return ""
        self._still()
        try:
            self._tell(Compare(epoch, [batch.cpu() for batch in batches]))
            with self._does(WORKS):
                found = [self.held.compare(epoch, batches), *self._answers()]
        except BaseException as error:
            self._give_up(error)
        return next((f"rank {rank}: {fault}" for rank, fault in enumerate(found) if fault), "")

    def united(self, epoch: int, reason: str) -> United:
        """The epoch of all ranks, each audited by itself; ``reason`` is what is wrong here."""
        self._still()
        try:
            self._tell(Audit(epoch))
            with self._does(WORKS):
                found = self._unite([self.audited(reason), *self._answers()])
        except BaseException as error:
            self._give_up(error)
        self._job.counts.add("schedule", AGAIN_EDGES, found.again_edges)
        self._job.counts.add("schedule", AGAIN_NODES, found.again_nodes)
        return found

    def close(self) -> None:
        """End all ranks and leave the group."""
        self._watch.end()
        for _, connection in self._ranks:
            connection.close()
        self._end_ranks(END_S)
        self._leave()
        self._board.close()

    def _end_ranks(self, patience_s: float) -> None:
        """Wait until all ranks have ended; kill those that have not within ``patience_s``."""
        until = time.monotonic() + patience_s
        for process, _ in self._ranks:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0.0))
        for process, _ in self._ranks:
            process.kill()
        for process, _ in self._ranks:
            process.wait()

    def _leave(self) -> None:
        try:
            super().close()
        finally:
            self.peers.close()

    def _still(self) -> None:
        """Raise what ended the ranks, also where nobody has asked since."""
        if self._failed is not None:
            raise self._failed.exception()
        if (loss := self._watch.loss) is not None:
            self._give_up(LostError(f"rank {loss.rank} is lost"))

    def _tell(self, word: Any) -> None:
        for rank in range(1, self.ranks):
            self._say(rank, word)

    def _say(self, rank: int, word: Any) -> None:
        try:
            send(self._ranks[rank - 1][1], word)
        except GoneError:
            raise LostError(f"rank {rank} has ended") from None

    def _answers(self) -> list[Any]:
        """One word of each rank, in their order. Raises what one of them failed by."""
        left = {connection: rank for rank, (_, connection) in enumerate(self._ranks, 1)}
        found: dict[int, Any] = {}
        with self.peers.pulse.waiting():
            while left:
                for connection in wait(list(left)):  # whoever hangs is killed by the watch
                    assert isinstance(connection, Connection)
                    rank = left.pop(connection)
                    try:
                        word = receive(connection)
                    except GoneError:
                        raise LostError(f"rank {rank} has ended") from None
                    if isinstance(word, Failed):
                        raise word.exception()
                    found[rank] = word
        return [found[rank] for rank in sorted(found)]

    def _lost(self, loss: Loss) -> None:
        """On the watch's thread: a rank is lost, and what waits for it is to end."""
        self._abort()

    def _abort(self) -> None:
        """End what waits on a GPU for ranks that do not come: the host could not."""
        if (group := self.group) is not None and self._job.device.type == "cuda":
            threading.Thread(target=group.abort, daemon=True).start()  # which may itself wait

    def _stuck(self) -> None:
        """On the watch's thread: rank 0 has not come to know that a rank is lost, or hangs."""
        failed = self._failed
        lost = LostError("a rank is lost")
        self._job.stuck(self._cause(lost) if failed is None else failed.exception())

    def _give_up(self, error: BaseException) -> Any:
        """End all ranks and raise why."""
        self._watch.come()
        cause = self._cause(error)
        if isinstance(cause, Exception):
            self._failed = Failed.by(cause)  # the exception itself would hold all that has failed
        self._end_ranks(0.0)
        for _, connection in self._ranks:
            connection.close()
        with suppress(Exception):  # on GPUs what waits for them is ended first
            self._leave()
        self._watch.end()
        self._board.close()
        for failed in (error, cause):  # frames that have ended hold the store, and its port
            traceback.clear_frames(failed.__traceback__)
        raise cause from (None if cause is error else error)

    def _cause(self, error: BaseException) -> BaseException:
        """Why ranks end: what one of them failed by itself comes before what others lost by that,
        and before that one which does nothing; ``error`` is rank 0's own."""
        if not is_lost(error):
            return error
        loss, lost = self._watch.loss, [error]
        left = {connection: rank for rank, (_, connection) in enumerate(self._ranks, 1)}
        ended: list[int] = []
        until = time.monotonic() + (0.0 if loss is not None and loss.why else SETTLE_S)
        while left and (ready := _readable(list(left), until - time.monotonic())):
            for connection in ready:
                try:
                    word = receive(connection)
                except (GoneError, OSError):
                    ended.append(left.pop(connection))
                    continue
                if isinstance(word, Failed):
                    left.pop(connection)
                    if not is_lost(found := word.exception()):
                        return found
                    lost.append(found)
        if loss is not None and loss.why:
            return RankDiedError(f"{loss.why}; run again")
        spared = self._watch.spared or set()
        if fallen := [rank for rank in ended if rank not in spared]:
            return self._death(min(fallen))
        if any(map(is_late, lost)):
            return RankDiedError(
                f"a rank did not come to the others within {process_activity.SILENCE_S:g} s: it"
                " hangs; run again"
            )
        return error

    def _death(self, rank: int) -> Exception:
        """What to raise where a rank has ended by itself."""
        process, _ = self._ranks[rank - 1]
        try:
            code = process.wait(SETTLE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            return MemoryError(f"cannot allocate memory: the kernel killed rank {rank} for it")
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        return RankDiedError(f"the process of rank {rank} died {how}; run with --only-failed")


def _readable(connections: Sequence[Connection], within_s: float) -> list[Any]:
    """Those that have something to say, or have ended; waits for the first of them."""
    try:
        return wait(connections, max(within_s, 0.0))
    except OSError:  # one was closed here
        return []
