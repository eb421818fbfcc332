"""What a run keeps for the lives of its workers: prepared graphs, opened but once checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnnbench.cell import Cell
from gnnbench.errors import UsageError
from gnnbench.runner.failures import Failure
from gnnbench.runner.process import WorkerFailed, WorkerProcess


@dataclass
class Keeper:
    """One per run. A dataset is prepared, and every byte of it checked, once and in a process of
    its own; workers are told where it lies and map it."""

    logs: Path
    timeout_s: float
    _graphs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def prepare(self, cell: Cell) -> Failure | None:
        """Make the cell's dataset ready; what became of it where that fails.

        Raises ``UsageError`` where the store cannot be written.
        """
        worker = WorkerProcess(cell, self.logs / f"prepare-{cell.id}.log", self.timeout_s)
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
        self._graphs[cell.dataset] = answer["graph"]
        return None

    def graph(self, cell: Cell) -> dict[str, Any] | None:
        """What a worker is told of the cell's graph; None where the run has not prepared it."""
        return self._graphs.get(cell.dataset)
