"""Datasets verified once per run, and arrays copied to shared memory once for all its workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError
from gnnbench.harness.environment import cell_facts
from gnnbench.harness.failures import Failure
from gnnbench.harness.interpreter import HERE, Environments
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import (
    COPY_TO_MEMORY,
    PREPARE,
    ArrayFacts,
    GraphLocation,
    PreparationFacts,
)
from gnnbench.harness.template_pool import Template, TemplatePool


@dataclass
class SharedMemoryCache:
    """Prepared datasets and shared arrays of one run, or of several in a row (``start_run``).

    A separate process prepares a dataset and checks every byte of it once; workers map its files.
    Another process copies the arrays that a cell's stages need (``Spec.shared``) to memory, and
    computes those that have no file. It keeps the arrays of one dataset at a time. Workers map and
    lock them in place. If that process is killed, workers keep what they have mapped, and the next
    request fills the memory again. These processes run in the run's own Python environment;
    workers run in the one of ``environments`` that their cell names.

    ``facts`` of arrays in memory and the costs of preparation (``prepared``) are by dataset.
    """

    logs: Path = field(default_factory=Path)
    timeout_s: float = 0.0
    environments: Environments = HERE
    facts: dict[str, dict[str, ArrayFacts]] = field(default_factory=dict)
    prepared: dict[str, PreparationFacts] = field(default_factory=dict)
    _graphs: dict[str, GraphLocation] = field(default_factory=dict)  # by dataset
    _owner: WorkerProcess | None = None  # the process that owns the memory
    _pool: TemplatePool | None = None
    _addresses: dict[str, str] = field(default_factory=dict)  # by array of the owner's dataset

    def start_run(
        self, logs: Path, timeout_s: float, environments: Environments, first_dataset: str
    ) -> None:
        """Serve another run, and free the arrays unless they are of its first dataset."""
        self.logs, self.timeout_s, self.environments = logs, timeout_s, environments
        if self._owner is not None and self._owner.cell.dataset != first_dataset:
            self._free()

    def prepare(self, cell: Cell) -> Failure | None:
        """Prepare the cell's dataset; returns the failure if that is impossible.

        Raises ``UsageError`` where the store cannot be written.
        """
        worker = self._start_helper(cell, "prepare")
        try:
            answer = worker.call(PREPARE, dataset=cell.dataset)
        except WorkerFailed as failed:
            return failed.failure
        finally:
            worker.kill()
        if answer.get("exit_code") == UsageError.exit_code:
            raise UsageError(answer["error"])
        if "error" in answer:
            return Failure("missing_data", answer["error"])
        known = self._graphs.get(cell.dataset)
        if known is not None and known != answer["graph"]:  # the files have been replaced
            self._free()
        self._graphs[cell.dataset] = answer["graph"]
        self.prepared[cell.dataset] = answer["facts"]
        return None

    def graph(self, cell: Cell) -> GraphLocation | None:
        """Return where a worker maps the cell's graph; None where the run has not prepared it.

        Raises ``WorkerFailed`` where an array cannot be copied to memory.
        """
        graph = self._graphs.get(cell.dataset)
        if graph is None:
            return None
        arrays = tuple(dict.fromkeys((*graph["made"], *cell_facts(cell).shared)))
        if not arrays:
            return graph
        addresses = self._copy_to_memory(cell, graph, arrays)
        return {**graph, "shared": {array: addresses[array] for array in arrays}}

    def _copy_to_memory(
        self, cell: Cell, graph: GraphLocation, arrays: Sequence[str]
    ) -> dict[str, str]:
        owner = self._owner
        if owner is None or not owner.alive or owner.cell.dataset != cell.dataset:
            self._free()
            owner = self._owner = self._start_helper(cell, "keeper")
        if missing := [array for array in arrays if array not in self._addresses]:
            try:
                answer = owner.call(COPY_TO_MEMORY, arrays=missing, **graph)
            except BaseException:
                self._free()
                raise
            self._addresses |= answer["shared"]
            self.facts.setdefault(cell.dataset, {}).update(answer["facts"])
        return self._addresses

    def worker(
        self, cell: Cell, memory_limit_gib: float = 0.0, template: Template | None = None
    ) -> WorkerProcess:
        """Start a process for the cell, in the Python environment that it names."""
        log = self.logs / f"{cell.id}-{cell.system}.log"
        return WorkerProcess(
            cell, log, self.timeout_s, memory_limit_gib, self.environments, template
        )

    def templates(self, cells: Sequence[Cell], trial: int) -> list[Template | None]:
        """Return the templates that fork the workers of one trial; all sides start alike."""
        if self._pool is None or self._pool.environments != self.environments:
            self._close_templates()
            self._pool = TemplatePool(self.environments)
        templates = [self._pool.get(cell, trial) for cell in cells]
        return templates if all(templates) else [None] * len(cells)

    def _close_templates(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _start_helper(self, cell: Cell, purpose: str) -> WorkerProcess:
        log = self.logs / f"{purpose}-{cell.id}.log"
        return WorkerProcess(replace(cell, env=""), log, self.timeout_s)

    def close(self) -> None:
        """End the templates and give up the arrays."""
        self._close_templates()
        self._free()

    def _free(self) -> None:
        """Give up the arrays; memory is freed when no worker maps it any more."""
        owner, self._owner, self._addresses = self._owner, None, {}
        if owner is not None:
            owner.kill()
