"""Measure one pair: set up, gate, warm up, then rounds A B, B A, A B ... until it is enough."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gnnbench.cell import Cell, Until
from gnnbench.experiment import Measure
from gnnbench.measure import judged, machine
from gnnbench.measure.stopping import StoppingRule
from gnnbench.measure.throttle import GpuWatch, throttling
from gnnbench.measure.work import work_class
from gnnbench.runner import audit, clocks, isolation
from gnnbench.runner.failures import Failure
from gnnbench.runner.ledger import Ledger, Record
from gnnbench.runner.losses import losses_fault
from gnnbench.runner.plan import Pair
from gnnbench.runner.probing import probe_fault
from gnnbench.runner.process import WorkerFailed, WorkerProcess, started

T = TypeVar("T")
# Between blocks: OpenMP threads spin a few ms after their last region before they sleep.
SETTLE_S = 0.02
# Far beyond any epoch that is run: its seeds are new to the system.
RECHECK_EPOCH = 1_000_003
PROFILE_EPOCH = 1_000_033
SECRET_EPOCHS = 1 << 31
PROBE_EPOCHS = 3
PROBES = 3


class Observer(Protocol):
    """Is told how a run goes on; shows it or not."""

    def note(self, text: str) -> None:
        """Something the user should know."""

    def plan(self, pairs: int, budget_s: float) -> None:
        """How much there is to do, before anything is measured."""

    def step(self, text: str, fraction: float) -> None:
        """What is being done now, and how far the current pair is (0 to 1)."""

    def pair_done(self) -> None:
        """The current pair is finished."""


class CellFailed(Exception):
    """A cell of the pair failed; the ledger knows."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell.id)
        self.cell = cell


@dataclass
class Pairing:
    """Runs pairs one after the other; the reference's worker lives on within its group."""

    ledger: Ledger
    measure: Measure
    logs: Path
    observer: Observer
    gpu: GpuWatch = field(default_factory=GpuWatch)
    running: isolation.Running = field(default_factory=isolation.Running.own)
    _kept: dict[str, WorkerProcess] = field(default_factory=dict)

    def run(self, pair: Pair) -> None:
        """Measure a pair; failures go to the ledger.

        Where the reference fails, the system goes on alone. Anything else that is raised leaves no
        worker behind.
        """
        try:
            self._drop_others(pair.reference)
            self._run(pair)
            if self._throttled(pair) and not self.ledger.repeats[pair.id]:
                self.observer.note("the GPU was throttled meanwhile: measuring once more")
                self.ledger.retry([], [pair.id])
                self._run(pair)
        except CellFailed as failed:
            lost = pair.reference is not None and failed.cell.id == pair.reference.id
            if lost and not pair.direct:
                self._drop_others(None)
                self.run(Pair(pair.system))
        except BaseException:
            self.kill()
            raise

    def _run(self, pair: Pair) -> None:
        self.close()  # both sides start from the same weights
        self.ledger.record("started", pair=pair.id, load=machine.load(), gpus=machine.gpus())
        attempt = self.ledger.attempts[pair.id]
        workers: list[tuple[Cell, WorkerProcess]] = []
        if pair.reference is not None:
            workers.append((pair.reference, self._keep(pair.reference)))
        system = self._ready(pair.system)
        try:
            for cell, worker in (*workers, (pair.system, system)):
                self._left_behind(pair, cell, worker)
            workers.append((pair.system, system))
            why, half_width = self._rounds(pair, attempt, workers)
            self._audit(pair, attempt, workers)
            self._profile(workers)
        except BaseException:
            system.kill()
            raise
        system.close()
        self.ledger.record(
            "done", pair=pair.id, why=why, half_width=half_width, load=machine.load(),
            gpus=machine.gpus(),
        )  # fmt: skip

    def _throttled(self, pair: Pair) -> bool:
        cells = [pair.system] if pair.reference is None else [pair.system, pair.reference]
        return any(s.get("throttle") for c in cells for s in self.ledger.measured(c, pair))

    def _keep(self, cell: Cell) -> WorkerProcess:
        if cell.id not in self._kept:
            self._kept[cell.id] = self._ready(cell)
        return self._kept[cell.id]

    def _drop_others(self, cell: Cell | None) -> None:
        for key in [k for k in self._kept if cell is None or k != cell.id]:
            self._kept.pop(key).close()

    def close(self) -> None:
        """End the workers that live on."""
        self._drop_others(None)

    def kill(self) -> None:
        """End them at once."""
        while self._kept:
            self._kept.popitem()[1].kill()

    def _ready(self, cell: Cell) -> WorkerProcess:
        """A worker that passed its gate."""
        log = self.logs / f"{cell.id}-{cell.system}.log"
        worker = WorkerProcess(
            cell, log, self.measure.cell_timeout_s, self.measure.memory_limit_gib
        )
        try:
            self._step(cell, "opening", 0.0)
            self._ask(cell, lambda: self._report(cell, {"facts": worker.open()}))
            self._step(cell, "setting up", 0.05)
            self._ask(cell, lambda: self._report(cell, {"setup": worker.call("setup")}))
            self._step(cell, "checking", 0.1)
            check = self._ask(cell, lambda: worker.call("check"))
            self._report(cell, {"check": check})
            if not check["ok"]:
                self._fail(cell, Failure("incorrect", check["reason"]))
        except BaseException:
            worker.kill()
            raise
        return worker

    def _rounds(
        self, pair: Pair, attempt: int, workers: list[tuple[Cell, WorkerProcess]]
    ) -> tuple[str, float]:
        measure = self.measure
        rule = StoppingRule(
            measure.min_rounds, measure.max_rounds, measure.target_half_width,
            measure.time_budget_s,
        )  # fmt: skip
        start = time.monotonic()
        for number in range(measure.warmup_epochs):
            self._round(pair, attempt, number, True, workers)
        number = self._rounds_before(pair)
        secret = number + secrets.randbelow(measure.min_rounds)
        while True:
            series = self._series(pair)
            decision = rule.decide(series, time.monotonic() - start, self._round_s(pair))
            if decision.stop:
                return decision.why, decision.half_width
            fraction = max(
                number / measure.max_rounds, (time.monotonic() - start) / measure.time_budget_s
            )
            self._step(pair.system, f"round {number + 1}", min(0.15 + 0.85 * fraction, 0.99))
            if number == secret:
                self._verify(pair, attempt, workers)
            self._round(pair, attempt, number, False, workers)
            number += 1

    def _round_s(self, pair: Pair) -> float | None:
        """How long a round takes, whatever of it is judged: the mean so far."""
        cells = [c for c in (pair.reference, pair.system) if c is not None]
        taken = [[s["block_s"] for s in self.ledger.measured(c, pair)] for c in cells]
        return sum(sum(t) / len(t) for t in taken) if all(taken) else None

    def _rounds_before(self, pair: Pair) -> int:
        rounds = [s["round"] for s in self.ledger.measured(pair.system, pair)]
        return max(rounds, default=-1) + 1

    def _series(self, pair: Pair) -> list[list[float]]:
        value = judged.of(pair.system.until).value
        if pair.reference is None:
            return [[value(s) for s in self.ledger.measured(pair.system, pair)]]
        rounds = self.ledger.rounds(pair)
        return [[value(r[side]) for r in rounds] for side in (0, 1)]

    def _round(
        self,
        pair: Pair,
        attempt: int,
        number: int,
        warmup: bool,
        workers: list[tuple[Cell, WorkerProcess]],
    ) -> None:
        """One epoch of each worker; even rounds in order A B, odd ones B A."""
        ordered = workers if number % 2 == 0 else workers[::-1]
        epoch = number if warmup else self.measure.warmup_epochs + number
        for order, (cell, worker) in enumerate(ordered):
            idle = [w for _, w in workers if w is not worker]
            time.sleep(SETTLE_S)
            gpu = self.gpu.read() if cell.device == "cuda" else None
            before = [w.cpu_seconds() for w in idle]
            own, busy = worker.cpu_seconds(), machine.busy_seconds()
            doubt = self._isolation_doubt(workers)
            began = time.monotonic()
            timing = self._ask(cell, lambda w=worker: w.timed("epoch", epoch=epoch))  # type: ignore[misc]
            block_s = time.monotonic() - began
            busy = machine.busy_seconds() - busy
            idle_s = sum(w.cpu_seconds() - b for w, b in zip(idle, before, strict=True))
            where: dict[str, Any] = {
                "attempt": attempt,
                "worker": worker.pid,
                "round": number,
                "order": order,
                "warmup": warmup,
                "block_s": block_s,
                "idle_cpu_s": idle_s,
                "isolation": doubt or self._isolation_doubt(workers),
                **worker.rest.taken(),
                "foreign_cpu_s": max(busy - idle_s - (worker.cpu_seconds() - own), 0.0),
            }
            if cell.device == "cuda":
                now = self.gpu.read()
                where |= {k: (now or {}).get(k) for k in ("sm_clock_mhz", "power_w")}
                where |= {
                    "temperature_c": (now or {}).get("temperature_c"),
                    "throttle": throttling(gpu, now),
                }
            began = time.monotonic()
            report = self._ask(cell, lambda w=worker: w.call("audit", epoch=epoch))  # type: ignore[misc]
            where["audit_s"] = time.monotonic() - began
            sample = self.ledger.add_sample(pair, cell, where, timing, report)
            facts = self.ledger.reports[cell.id]["facts"]
            self._left_behind(pair, cell, worker)
            fault = "" if report["ok"] else report["reason"]
            fault = fault or audit.phase_fault(cell, epoch, timing["busy"])
            if fault := fault or audit.sample_fault(cell, facts, epoch, sample):
                self._fail(cell, Failure("incorrect", fault))

    def _isolation_doubt(self, workers: list[tuple[Cell, WorkerProcess]]) -> str:
        """Whether anything has changed how threads run: of the workers, or of this process."""
        threads = {t for _, worker in workers for t in isolation.running(worker.pid)}
        return isolation.running_doubt(threads | {isolation.Running.own()}, self.running)

    def _probe(self, cell: Cell, worker: WorkerProcess, samples: list[Record]) -> str:
        """The phases one by one, and again where one looks wrong: it may be other programs."""
        alone: dict[str, float] = {}
        for _ in range(PROBES):
            epochs = [secrets.randbelow(SECRET_EPOCHS) for _ in range(PROBE_EPOCHS)]
            found = self._ask(cell, lambda e=epochs: worker.call("probe", epochs=e))["alone"]  # type: ignore[misc]
            alone = {phase: min(s, alone.get(phase, s)) for phase, s in found.items()}
            if not (fault := probe_fault(samples, alone)):
                break
        self.ledger.record("probed", cell=cell.id, worker=worker.pid, alone=alone)
        return fault

    def _left_behind(self, pair: Pair, cell: Cell, worker: WorkerProcess) -> None:
        """Fail whose processes outlived their parents: the system where nothing tells whose."""
        left = isolation.strays(*started())
        own = [p for p in left if isolation.mark(p) == worker.mark]
        if fault := isolation.strays_fault(own):
            self._fail(cell, Failure("incorrect", fault))
        if fault := isolation.strays_fault([p for p in left if not isolation.mark(p)]):
            self._fail(pair.system, Failure("incorrect", fault))

    def _verify(self, pair: Pair, attempt: int, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """One epoch of each worker of which every batch is looked at; it is in no statistic."""
        epoch = secrets.randbelow(SECRET_EPOCHS)
        digests = {}
        for cell, worker in workers:
            report = self._ask(cell, lambda w=worker: w.call("verify", epoch=epoch))  # type: ignore[misc]
            self.ledger.record("verified", pair=pair.id, cell=cell.id, attempt=attempt, **report)
            if not report["ok"]:
                fault = f"when every batch was looked at: {report['reason']}"
                self._fail(cell, Failure("incorrect", fault))
            digests[cell.id] = report["digest"]
        if pair.reference is not None:
            reports = [self.ledger.reports[c.id]["check"] for c in (pair.reference, pair.system)]
            one, other = digests[pair.reference.id], digests[pair.system.id]
            if fault := audit.digests_fault(one, other, work_class(*reports)):
                self._fail(pair.system, Failure("incorrect", fault))

    def _audit(self, pair: Pair, attempt: int, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """Hold what was measured against what is known, and check each worker again."""
        for cell, worker in workers:
            samples = self.ledger.measured(cell, pair)
            fault = clocks.parent_fault(samples)
            fault = fault or audit.clock_fault(samples) or audit.loss_fault(samples)
            if not fault:
                fault = self._probe(cell, worker, samples)
            if not fault:
                fault = self._ask(
                    cell, lambda w=worker: w.call("recheck", epoch=RECHECK_EPOCH)  # type: ignore[misc]
                )["reason"]  # fmt: skip
                fault = fault and f"after timing: {fault}"
            if fault:
                self._fail(cell, Failure("incorrect", fault))
        if pair.reference is not None:
            reports = [self.ledger.reports[c.id]["check"] for c in (pair.reference, pair.system)]
            rounds, work = self.ledger.rounds(pair), work_class(*reports)
            ours, theirs = (
                self.ledger.life(pair, c, attempt) for c in (pair.reference, pair.system)
            )
            if fault := audit.edges_fault(rounds, work) or losses_fault(ours, theirs, work):
                self._fail(pair.system, Failure("incorrect", fault))

    def _profile(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """Stages and kernels of sampling cells, once each; what was measured stands without."""
        for cell, worker in workers:
            if cell.goes_until is not Until.SAMPLE or cell.id in self.ledger.profiles:
                continue
            self._step(cell, "looking inside", 0.99)
            try:
                found = worker.call("profile", epoch=PROFILE_EPOCH)
            except WorkerFailed as failed:
                found = {"error": failed.failure.reason}
                self.observer.note(f"{cell.system}: no stages: {failed.failure.reason}")
            self.ledger.record("profile", cell=cell.id, profile=found)
            if not worker.alive:
                self._kept.pop(cell.id, None)

    def _ask(self, cell: Cell, command: Callable[[], T]) -> T:
        try:
            return command()
        except WorkerFailed as failed:
            self._fail(cell, failed.failure)
            raise AssertionError from failed

    def _fail(self, cell: Cell, failure: Failure) -> None:
        """Note a failure and give up the cell."""
        self.ledger.fail(cell, failure)
        if (worker := self._kept.pop(cell.id, None)) is not None:
            worker.kill()
        raise CellFailed(cell)

    def _report(self, cell: Cell, report: dict[str, object]) -> None:
        self.ledger.record("report", cell=cell.id, report=report)

    def _step(self, cell: Cell, text: str, fraction: float) -> None:
        what = cell.model or f"until {cell.until}"
        self.observer.step(f"{cell.dataset} {what} {cell.system}: {text}", fraction)
