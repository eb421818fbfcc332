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
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench import bootstrap
from gnnbench.cell import Until
from gnnbench.errors import GnnbenchError, UnsupportedError
from gnnbench.measure.machine import oom_kills
from gnnbench.measure.timeline import Span, Timeline, sweep
from gnnbench.stages.counts import (
    AGAIN_EDGES,
    AGAIN_NODES,
    IMBALANCE,
    MEASURES,
    RANK_BUSY,
    RANK_IDLE,
    RANK_PEAK,
    Counts,
)
from gnnbench.stages.job import Job
from gnnbench.stages.peers import Peers
from gnnbench.stages.schedule.base import FLAT, Stages
from gnnbench.stages.schedule.desk import LostError
from gnnbench.stages.schedule.handed import Failed
from gnnbench.stages.schedule.outlook import counted, floors
from gnnbench.stages.schedule.producer import GoneError, receive, send
from gnnbench.stages.schedule.ranks import (
    HOST,
    SILENCE_S,
    Audit,
    Ceilings,
    Compare,
    Epoch,
    Join,
    Part,
    Ran,
    Start,
    own_bytes,
)
from gnnbench.stages.schedule.split import NONE, Split
from gnnbench.stages.schedule.united import United, unite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLLOWER = "gnnbench.composition.follower"
END_S = 10.0
WATCH_S = 0.2  # between looks at whether all ranks are alive
# In errors of a rank that lost another.
BROKEN = ("gloo", "Gloo", "NCCL", "Dist", "onnection", LostError.__name__)


class RankDiedError(GnnbenchError):
    """A rank's process has ended by itself, or does not answer."""


class Leader(Part):
    """Rank 0, in the process that made the object; the others are its children, built with it.

    An exception of a rank is raised here; where one has died or is silent ``RankDiedError`` is, or
    ``MemoryError`` where the kernel killed it for lack of memory. Then all ranks are ended. Each
    rank has an equal part of the threads while an epoch runs.
    """

    def __init__(
        self, job: Job, ranks: int, split: Split | None = None, gradients: str = FLAT
    ) -> None:
        super().__init__(0, ranks, gradients)
        self._split = split
        self._job, self._all_threads = job, torch.get_num_threads()
        self._threads = max(self._all_threads // ranks, 1)
        self._oom_kills = oom_kills()
        self._ranks: list[tuple[subprocess.Popen[bytes], Connection]] = []
        self._failed: Exception | None = None
        self._stamp: tuple[int, ...] | None = None  # of the trainer, at the last epoch's end
        if dist.is_initialized():
            raise UnsupportedError(
                "ranks train one system in a process, and another has a group of ranks already;"
                " close that first"
            )
        first = 0
        if job.device.type == "cuda":
            first = job.device.index or 0
            if (there := torch.cuda.device_count()) < ranks:
                raise UnsupportedError(f"{ranks} ranks need as many GPUs, and {there} are here")
        self.peers = Peers.first(ranks, self._all_there)
        for rank in range(1, ranks):
            self._ranks.append(self._started(rank))
            number = None
            if job.device.type == "cuda":
                number = (first + rank) % torch.cuda.device_count()
            start = Start(
                self.peers.port, job.cell, job.graph, rank, ranks, self._threads, number, split
            )
            self._say(rank, sys.path)
            self._say(rank, start)

    def _started(self, rank: int) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = socket.socketpair()
        more = self._more_sockets(rank)
        told = {"parent": os.getpid(), "socket": theirs.fileno()}
        told |= {name: one.fileno() for name, one in more.items()}
        with theirs:
            process = subprocess.Popen(
                [*bootstrap.command(sys.executable, FOLLOWER), json.dumps(told)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *(one.fileno() for one in more.values())],
            )
        for one in more.values():
            one.close()
        return process, Connection(ours.detach())

    def _more_sockets(self, rank: int) -> dict[str, socket.socket]:
        """Ends of sockets that a rank is given beside its own, by name."""
        return {}

    def _join(self, port: int) -> Join:
        """The word by which ranks meet; all are built."""
        return Join(port)

    def _unite(self, ranks: list[Any]) -> United:
        """What ranks tell of the last epoch, put together."""
        return unite(ranks)

    def _tell_of(self, ranks: list[list[Span]]) -> None:
        """Count what the ranks' spans of an epoch tell."""
        rank_phases(self._job.counts, ranks)
        work = [sum(s.end - s.begin for s in some if s.phase != "compute") for some in ranks]
        if sum(work):
            self._job.counts.add("schedule", IMBALANCE, max(work) * len(work) / sum(work))

    @property
    def pids(self) -> list[int]:
        """Process ids of the other ranks."""
        return [process.pid for process, _ in self._ranks]

    def attach(self, stages: Stages) -> None:
        """Copy rank 0's part of a split graph, while the others copy theirs."""
        super().attach(stages)
        if self._split is None:
            return
        from gnnbench.stages.schedule.partitioned import Parts

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
            self._answers(None)
            store = dist.TCPStore(
                HOST, 0, self.ranks, is_master=True, wait_for_workers=False,
                timeout=timedelta(seconds=SILENCE_S),
            )  # fmt: skip
            word = self._join(store.port)
            self._tell(word)
            self.meet(store, self._job, word)
            self._answers(SILENCE_S)
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
            with self._watching():
                own.start()
                super().epoch(epoch, batches, stages, own, until)
                own.stop()
            meet = until is Until.COMPUTE or (self.held is not None and self.held.meets)
            found: list[Ran] = self._answers(SILENCE_S if meet else None)
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
        held = [own_bytes(self._job.device, stages), *(ran.peak_bytes for ran in found)]
        for rank, size in enumerate(held):
            counts.add("schedule", RANK_PEAK, size, str(rank))
        self._tell_of(spans)
        self.peak_bytes = sum(held[1:])

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """On GPUs the host begins collectives and goes on, to wait for all of them at the end: end
        them where a rank that should come has ended, or does nothing."""
        group = self.group
        if group is None or self._job.device.type != "cuda":
            yield
            return
        over = threading.Event()
        self.began = time.monotonic()

        def watch() -> None:
            while not over.wait(WATCH_S):
                if self._silent() or any(process.poll() is not None for process, _ in self._ranks):
                    group.abort()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
        if group.aborted:
            raise RuntimeError("NCCL timed out: a rank did not come")

    def _silent(self) -> bool:
        """Whether no batch was begun for too long."""
        return time.monotonic() - self.began > SILENCE_S

    def compared(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """What is wrong with these batches as ranks draw and load them from their parts, or ""."""
        if self.held is None:
            return ""
        self._still()
        try:
            self._tell(Compare(epoch, [batch.cpu() for batch in batches]))
            found = [self.held.compare(epoch, batches), *self._answers(SILENCE_S)]
        except BaseException as error:
            self._give_up(error)
        return next((f"rank {rank}: {fault}" for rank, fault in enumerate(found) if fault), "")

    def outlook(self, stages: Stages, batches: Sequence[Tensor]) -> list[list[Any]]:
        """One rank counts what more of them would do, two measure what a batch takes at least."""
        if stages.trainer is None or self.ranks > 2:
            return []
        self._still()
        try:
            self._tell(Ceilings())
            with self._watching():
                found = self.ceilings()
            self._answers(SILENCE_S)
        except BaseException as error:
            self._give_up(error)
        if self.ranks == 2:
            return found + floors(stages, batches[0][:1], self._threads)
        mode = NONE if self._split is None else self._split.mode
        into = (lambda parts: None) if self.held is None else self.held.into
        return found + counted(stages, batches, mode, into)

    def united(self, epoch: int, reason: str) -> United:
        """The epoch of all ranks, each audited by itself; ``reason`` is what is wrong here."""
        self._still()
        try:
            self._tell(Audit(epoch))
            found = self._unite([self.audited(reason), *self._answers(None)])
        except BaseException as error:
            self._give_up(error)
        self._job.counts.add("schedule", AGAIN_EDGES, found.again_edges)
        self._job.counts.add("schedule", AGAIN_NODES, found.again_nodes)
        return found

    def close(self) -> None:
        """End all ranks and leave the group."""
        for _, connection in self._ranks:
            connection.close()
        for process, _ in self._ranks:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        super().close()

    def _still(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _all_there(self) -> None:
        """While ranks are built: end all where one has ended, and raise what it failed by."""
        for rank, (process, connection) in enumerate(self._ranks, 1):
            if process.poll() is None:
                continue
            error: BaseException | None = None
            with suppress(GoneError):
                while error is None:
                    word = receive(connection)
                    error = word.exception() if isinstance(word, Failed) else None
            self._give_up(error or self._death(rank))

    def _tell(self, word: Any) -> None:
        for rank in range(1, self.ranks):
            self._say(rank, word)

    def _say(self, rank: int, word: Any) -> None:
        try:
            send(self._ranks[rank - 1][1], word)
        except GoneError:
            raise self._death(rank) from None

    def _answers(self, patience_s: float | None) -> list[Any]:
        """One word of each rank, in their order. Raises what one of them failed by."""
        left = {connection: rank for rank, (_, connection) in enumerate(self._ranks, 1)}
        found: dict[int, Any] = {}
        while left:
            ready = wait(list(left), patience_s)
            if not ready:
                raise RankDiedError(f"rank {min(left.values())} did not answer; run again")
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = left.pop(connection)
                try:
                    word = receive(connection)
                except GoneError:
                    raise self._death(rank) from None
                if isinstance(word, Failed):
                    raise word.exception()
                found[rank] = word
        return [found[rank] for rank in sorted(found)]

    def _give_up(self, error: BaseException) -> Any:
        """End all ranks and raise why: what another rank says or died by comes before the broken
        connection that it leaves here."""
        cause = error
        if isinstance(error, RuntimeError):
            cause = self._cause(error)
        for process, connection in self._ranks:
            process.kill()
            process.wait()
            connection.close()
        with suppress(Exception):  # on GPUs what waits for them is ended first
            super().close()
        if isinstance(cause, Exception):
            self._failed = cause
        raise cause from (None if cause is error else error)

    def _cause(self, error: RuntimeError) -> BaseException:
        for rank, (_, connection) in enumerate(self._ranks, 1):
            told = False
            with suppress(OSError):
                told = connection.poll(1.0)
            if not told:
                continue
            try:
                word = receive(connection)
            except GoneError:
                return self._death(rank)
            if isinstance(word, Failed) and not any(w in word.words for w in BROKEN):
                return word.exception()
        if isinstance(error, LostError):
            return RankDiedError(f"{error}; run again")
        if "imed out" in str(error) or "imeout" in str(error):
            return RankDiedError(
                f"a rank did not come to the others within {SILENCE_S:g} s: it hangs; run again"
            )
        return error

    def _death(self, rank: int) -> Exception:
        """What to raise where a rank has ended by itself."""
        process, _ = self._ranks[rank - 1]
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            return MemoryError(f"cannot allocate memory: the kernel killed rank {rank} for it")
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        return RankDiedError(f"the process of rank {rank} died {how}; run with --only-failed")


def rank_phases(counts: Counts, ranks: Iterable[Iterable[Span]]) -> None:
    """Note each rank's time in each phase."""
    for rank, spans in enumerate(ranks):
        for span in spans:
            counts.add("schedule", RANK_BUSY[span.phase], span.end - span.begin, str(rank))
