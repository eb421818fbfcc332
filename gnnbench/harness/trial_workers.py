"""The worker processes of one trial: start together, run commands in turn, end together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from gnnbench.core.cell import Cell
from gnnbench.harness import stray_processes
from gnnbench.harness.failures import Failure
from gnnbench.harness.process import WorkerProcess, live_workers
from gnnbench.harness.protocol import OPEN, SETUP, Command
from gnnbench.harness.trial_context import TrialContext
from gnnbench.schema.samples import EpochSample

A = TypeVar("A")


class TrialWorkers:
    """Workers of both sides of a trial, in the order in which they were started."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._members: list[tuple[Cell, WorkerProcess]] = []

    def __iter__(self) -> Iterator[tuple[Cell, WorkerProcess]]:
        return iter(self._members)

    def in_order(self, reverse: bool) -> list[tuple[Cell, WorkerProcess]]:
        """Return the workers in the order of their start, or in reverse."""
        return self._members[:: -1 if reverse else 1]

    @property
    def pids(self) -> list[int]:
        """Process ids."""
        return [worker.pid for _, worker in self._members]

    @property
    def are_forked(self) -> bool:
        """Whether templates forked the workers."""
        return all(worker.is_forked for _, worker in self._members)

    def start(self, cells: Sequence[Cell]) -> None:
        """Start a worker for each cell, open the graphs and set the systems up, all at once."""
        context = self._context
        limit_gib = context.measure.memory_limit_gib
        templates = context.shared_cache.templates(cells, context.number)
        for cell, template in zip(cells, templates, strict=True):
            worker = context.shared_cache.worker(cell, limit_gib, template)
            self._members.append((cell, worker))
        for cell, opened in self.broadcast(OPEN, "opening", self._send_open):
            context.report_once(cell, opened)
        for cell, setup in self.broadcast(SETUP, "setting up"):
            context.report_once(cell, {"setup": setup})

    def _send_open(self, worker: WorkerProcess) -> None:
        worker.send_open(self._context.shared_cache.graph(worker.cell))

    def broadcast(
        self,
        command: Command[A],
        progress: str,
        send: Callable[[WorkerProcess], None] | None = None,
    ) -> Iterator[tuple[Cell, A]]:
        """Send one command to all workers, then yield their answers; they work concurrently."""
        for cell, worker in self._members:
            self._context.show_progress(cell, progress, 0.0)
            action = partial(worker.send, command) if send is None else partial(send, worker)
            self._context.attempt(cell, action)
        for cell, worker in self._members:
            yield cell, self._context.attempt(cell, partial(worker.receive, command))

    def run_untimed(
        self,
        command: Command[A],
        members: Sequence[tuple[Cell, WorkerProcess]] | None = None,
        **arguments: object,
    ) -> Iterator[tuple[Cell, WorkerProcess, A]]:
        """Yield the answers to a command that is part of no measurement.

        GPU systems run it concurrently: most of the time is spent in checks on the host. CPU
        systems run it in turn, because spinning threads would take the other side's cores.
        """
        members = self._members if members is None else members
        concurrently = all(cell.device == "cuda" for cell, _ in members)
        if concurrently:
            for cell, worker in members:
                self._context.attempt(cell, partial(worker.send, command, **arguments))
        for cell, worker in members:
            action = partial(worker.receive, command)
            if not concurrently:
                action = partial(worker.call, command, **arguments)
            yield cell, worker, self._context.attempt(cell, action)

    def check_left_behind(self, cell: Cell, worker: WorkerProcess) -> None:
        """Fail the cell whose worker left processes behind that outlived their parent.

        The system fails where a process does not show which worker started it.
        """
        strays = stray_processes.find_strays(*live_workers())
        marks = [(process, stray_processes.mark_of(process)) for process in strays]
        for owner, owned_by in ((cell, worker.mark), (self._context.pair.system, "")):
            processes = [process for process, mark in marks if mark == owned_by]
            if fault := stray_processes.strays_fault(processes):
                self._context.fail(owner, Failure("incorrect", fault))

    def close(self) -> list[EpochSample]:
        """End the workers; returns by cell how long each was stopped by signals at last (s)."""
        stops = [
            EpochSample(id=cell.id, system=cell.system, stopped_s=worker.take_stopped_s())
            for cell, worker in self._members
        ]
        for _, worker in self._members:
            worker.close()
        return stops

    def kill(self) -> None:
        """Kill all workers; those that have ended are left alone."""
        for _, worker in self._members:
            worker.kill()
