"""What a run keeps for its workers' lives: graphs checked but once, tables copied but once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError
from gnnbench.harness.environment import shared
from gnnbench.harness.failures import Failure
from gnnbench.harness.interpreter import HERE, Environments
from gnnbench.harness.process import WorkerFailed, WorkerProcess


@dataclass
class Keeper:
    """One per run, or for several in a row (``serve``): what one held serves the next.

    A dataset is prepared, and every byte of it checked, once and in a process of its own; workers
    are told where it lies and map its files. Arrays that a cell's stages ask for
    (``Spec.shared``) are copied into memory by another process, which makes those that have no
    file; it holds those of one dataset at a time. Workers map them, and lock them in place. Should
    that process be killed, workers keep what they have mapped, and the next one that asks has it
    filled anew. Its own processes run in the run's own environment, workers in that of
    ``environments`` that their cell names.
    """

    logs: Path = field(default_factory=Path)
    timeout_s: float = 0.0
    environments: Environments = HERE
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # of what was held, by dataset
    prepared: dict[str, dict[str, Any]] = field(default_factory=dict)  # what that took, by dataset
    _graphs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _holder: WorkerProcess | None = None
    _held: dict[str, str] = field(default_factory=dict)  # array -> address, of the holder's dataset

    def serve(self, logs: Path, timeout_s: float, environments: Environments, first: str) -> None:
        """Another run, which begins with the dataset ``first``: what is held of it stays."""
        self.logs, self.timeout_s, self.environments = logs, timeout_s, environments
        if self._holder is not None and self._holder.cell.dataset != first:
            self.close()

    def prepare(self, cell: Cell) -> Failure | None:
        """Make the cell's dataset ready; what became of it where that fails.

        Raises ``UsageError`` where the store cannot be written.
        """
        worker = self._helper(cell, "prepare")
        try:
            answer = worker.prepare()
        except WorkerFailed as failed:
            return failed.failure
        finally:
            worker.kill()
        if answer.get("exit_code") == UsageError.exit_code:
            raise UsageError(answer["error"])
        if "error" in answer:
            return Failure("missing_data", answer["error"])
        known = self._graphs.get(cell.dataset)
        if known is not None and known != answer["graph"]:  # made anew since: so is what is held
            self.close()
        self._graphs[cell.dataset] = answer["graph"]
        self.prepared[cell.dataset] = answer["facts"]
        return None

    def graph(self, cell: Cell) -> dict[str, Any] | None:
        """What a worker is told of the cell's graph; None where the run has not prepared it.

        Raises ``WorkerFailed`` where what the cell asks for cannot be held.
        """
        graph = self._graphs.get(cell.dataset)
        if graph is None:
            return None
        arrays = tuple(dict.fromkeys((*graph["made"], *shared(cell))))
        if not arrays:
            return graph
        held = self._hold(cell, graph, arrays)
        return {**graph, "held": {array: held[array] for array in arrays}}

    def _hold(self, cell: Cell, graph: dict[str, Any], arrays: tuple[str, ...]) -> dict[str, str]:
        holder = self._holder
        if holder is None or not holder.alive or holder.cell.dataset != cell.dataset:
            self.close()
            holder = self._holder = self._helper(cell, "keeper")
        if missing := [array for array in arrays if array not in self._held]:
            try:
                answer = holder.call("hold", arrays=missing, **graph)
            except BaseException:
                self.close()
                raise
            self._held |= answer["held"]
            self.facts.setdefault(cell.dataset, {}).update(answer["facts"])
        return self._held

    def worker(self, cell: Cell, memory_limit_gib: float = 0.0) -> WorkerProcess:
        """A process for the cell, in the environment that it names; its log has its name."""
        log = self.logs / f"{cell.id}-{cell.system}.log"
        return WorkerProcess(cell, log, self.timeout_s, memory_limit_gib, self.environments)

    def _helper(self, cell: Cell, what: str) -> WorkerProcess:
        log = self.logs / f"{what}-{cell.id}.log"
        return WorkerProcess(replace(cell, env=""), log, self.timeout_s)

    def close(self) -> None:
        """Give up what is held; it is freed when no worker maps it any more."""
        holder, self._holder, self._held = self._holder, None, {}
        if holder is not None:
            holder.kill()
