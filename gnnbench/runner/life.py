"""One pair of fresh processes: started, gated, warmed up, measured in turn, checked again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gnnbench.cell import Cell
from gnnbench.experiment import Measure
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch, throttling
from gnnbench.measure.work import work_class
from gnnbench.runner import audit
from gnnbench.runner.doubt import pair_doubt
from gnnbench.runner.failures import Failure
from gnnbench.runner.keeper import Keeper
from gnnbench.runner.ledger import Ledger, Record
from gnnbench.runner.plan import Pair
from gnnbench.runner.process import WorkerFailed, WorkerProcess

T = TypeVar("T")
# Between blocks: OpenMP threads spin a few ms after their last region before they sleep.
SETTLE_S = 0.02
EPOCHS = 2**30  # numbers that an epoch may have


class CellFailed(Exception):
    """A cell of the pair failed; the ledger knows."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell.id)
        self.cell = cell


@dataclass
class Life:
    """The ``number``-th pair of processes of ``pair``; a system alone is one process.

    Odd lives are started and measured the other way round. Epochs are numbered at random, alike on
    both sides, and told with the command: nobody can work ahead.
    """

    pair: Pair
    number: int
    ledger: Ledger
    measure: Measure
    logs: Path
    keeper: Keeper
    gpu: GpuWatch
    step: Callable[[Cell, str, float], None]

    def run(self, rounds: Callable[[float, float], int]) -> None:
        """Measure; ``rounds(life_s, round_s)`` says how many, once both costs are known.

        The ledger has the samples and, once all is found right, the life. Raises ``CellFailed``.
        """
        began = time.monotonic()
        cells = [c for c in (self.pair.reference, self.pair.system) if c is not None]
        workers: list[tuple[Cell, WorkerProcess]] = []
        try:
            workers = self._ready(cells[:: -1 if self.number % 2 else 1])
            start_s = time.monotonic() - began
            warm = [self._round(nth, True, workers) for nth in range(self.measure.warmup_epochs)]
            count = rounds(time.monotonic() - began, warm[-1] if warm else start_s)
            for nth in range(count):
                self.step(self.pair.system, f"pair {self.number + 1}, round {nth + 1}", nth / count)
                self._round(nth, False, workers)
            self._audit(workers)
            for _, worker in workers:
                worker.close()
        finally:
            for _, worker in workers:
                worker.kill()
        last = self.ledger.last_life(self.pair)
        doubt = pair_doubt(self._samples())
        self.ledger.record(
            "life", pair=self.pair.id, life=self.number, start_s=start_s,
            seconds=time.monotonic() - began, rounds=count, doubt=doubt,
            void=bool(doubt) and self.measure.rule.gives_verdicts
            and not (last is not None and last["void"]),
            load=machine.load(), gpus=machine.gpus(),
        )  # fmt: skip

    def _samples(self) -> list[Record]:
        return [
            s
            for s in self.ledger.samples
            if s["pair"] == self.pair.id and s["life"] == self.number and not s["warmup"]
        ]

    def _ready(self, cells: list[Cell]) -> list[tuple[Cell, WorkerProcess]]:
        """Workers that passed their gates, all started at once; none is left after a failure."""
        found: list[tuple[Cell, WorkerProcess]] = []
        try:
            for cell in cells:
                log = self.logs / f"{cell.id}-{cell.system}.log"
                limits = (self.measure.cell_timeout_s, self.measure.memory_limit_gib)
                found.append((cell, WorkerProcess(cell, log, *limits)))
            self._each(found, "opening", lambda w: w.send_open(self.keeper.graph(w.cell)), dict)
            self._each(
                found, "setting up", lambda w: w.send("setup"), lambda answer: {"setup": answer}
            )
            for cell, worker in found:
                self._gate(cell, worker)
        except BaseException:
            for _, worker in found:
                worker.kill()
            raise
        return found

    def _each(
        self,
        workers: list[tuple[Cell, WorkerProcess]],
        what: str,
        send: Callable[[WorkerProcess], None],
        report: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        """One command to all, then their answers; the first life's are reported."""
        for cell, worker in workers:
            self.step(cell, what, 0.0)
            self._ask(cell, lambda w=worker: send(w))  # type: ignore[misc]
        for cell, worker in workers:
            answer = self._ask(cell, lambda w=worker: w.receive(what))  # type: ignore[misc]
            found = report(answer)
            if not found.keys() <= self.ledger.reports.get(cell.id, {}).keys():
                self.ledger.record("report", cell=cell.id, report=found)

    def _gate(self, cell: Cell, worker: WorkerProcess) -> None:
        """The whole gate once a cell; of a later life one batch, which must be the first life's."""
        known = self.ledger.reports[cell.id].get("check")
        self.step(cell, "checking", 0.0)
        if known is None or not known["ok"]:
            check = self._ask(cell, lambda: worker.call("check"))
            self.ledger.record("report", cell=cell.id, report={"check": check})
            if not check["ok"]:
                self._fail(cell, Failure("incorrect", check["reason"]))
            return
        glance = self._ask(cell, lambda: worker.call("glance"))
        fault = glance["reason"]
        if not fault and glance["digest"] != known["details"].get("first_digest", ""):
            fault = "its first batch has other edges than in its first life"
        if fault:
            self._fail(cell, Failure("incorrect", f"in life {self.number + 1}: {fault}"))

    def _round(self, number: int, warmup: bool, workers: list[tuple[Cell, WorkerProcess]]) -> float:
        """One epoch of each worker, in turn A B, B A; its cost (s)."""
        began = time.monotonic()
        ordered = workers if number % 2 == 0 else workers[::-1]
        epoch = secrets.randbelow(EPOCHS)
        for order, (cell, worker) in enumerate(ordered):
            idle = [w for _, w in workers if w is not worker]
            time.sleep(SETTLE_S)
            gpu = self.gpu.read() if cell.device == "cuda" else None
            before = [w.cpu_seconds() for w in idle]
            own, busy = worker.cpu_seconds(), machine.busy_seconds()
            start = time.monotonic()
            timing = self._ask(cell, lambda w=worker: w.call("epoch", epoch=epoch))  # type: ignore[misc]
            block_s = time.monotonic() - start
            busy = machine.busy_seconds() - busy
            idle_s = sum(w.cpu_seconds() - b for w, b in zip(idle, before, strict=True))
            where: dict[str, Any] = {
                "life": self.number,
                "worker": worker.pid,
                "round": number,
                "order": order,
                "warmup": warmup,
                "block_s": block_s,
                "idle_cpu_s": idle_s,
                "foreign_cpu_s": max(busy - idle_s - (worker.cpu_seconds() - own), 0.0),
            }
            if cell.device == "cuda":
                now = self.gpu.read()
                where |= {k: (now or {}).get(k) for k in ("sm_clock_mhz", "power_w")}
                where |= {
                    "temperature_c": (now or {}).get("temperature_c"),
                    "throttle": throttling(gpu, now),
                }
            start = time.monotonic()
            report = self._ask(cell, lambda w=worker: w.call("audit", epoch=epoch))  # type: ignore[misc]
            where["audit_s"] = time.monotonic() - start
            sample = self.ledger.add_sample(self.pair, cell, where, timing, report)
            facts = self.ledger.reports[cell.id]["facts"]
            fault = "" if report["ok"] else report["reason"]
            fault = fault or audit.phase_fault(cell, epoch, timing["busy"])
            if fault := fault or audit.sample_fault(cell, facts, epoch, sample):
                self._fail(cell, Failure("incorrect", fault))
        return time.monotonic() - began

    def _audit(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """Hold what was measured against what is known, and check each worker again."""
        first = self.number == 0
        own = self._samples()
        by_cell = {c.id: [s for s in own if s["id"] == c.id] for c, _ in workers}
        for cell, worker in workers:
            samples = by_cell[cell.id]
            fault = audit.clock_fault(samples) or audit.loss_fault(samples)
            if not fault:
                epoch = secrets.randbelow(EPOCHS)
                fault = self._ask(
                    cell,
                    lambda w=worker, e=epoch: w.call("recheck", epoch=e, brief=not first),  # type: ignore[misc]
                )["reason"]
                fault = fault and f"after timing: {fault}"
            if fault:
                self._fail(cell, Failure("incorrect", fault))
        if self.pair.reference is not None:
            cells = (self.pair.reference, self.pair.system)
            work = work_class(*(self.ledger.reports[c.id]["check"] for c in cells))
            rounds = list(zip(*(by_cell[c.id] for c in cells), strict=True))
            if fault := audit.edges_fault(rounds, work):
                self._fail(self.pair.system, Failure("incorrect", fault))

    def _ask(self, cell: Cell, command: Callable[[], T]) -> T:
        try:
            return command()
        except WorkerFailed as failed:
            self._fail(cell, failed.failure)
            raise AssertionError from failed

    def _fail(self, cell: Cell, failure: Failure) -> None:
        """Note a failure and give up the cell."""
        self.ledger.fail(cell, failure)
        raise CellFailed(cell)
