"""One pair of fresh processes: started, gated, warmed up, measured in turn, checked again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gnnbench.config.experiment import Measure
from gnnbench.core.cell import Cell
from gnnbench.harness import gather_rates, isolation, report_audit, suspects
from gnnbench.harness.doubt import pair_doubt
from gnnbench.harness.environment import store
from gnnbench.harness.failures import Failure
from gnnbench.harness.journal import Ledger, Record
from gnnbench.harness.plan import Pair
from gnnbench.harness.probe_run import link_copy, probe_phases
from gnnbench.harness.process import WorkerFailed, WorkerProcess, started
from gnnbench.harness.retraining import EPOCHS, TrainingCheck
from gnnbench.harness.shared_cache import Keeper
from gnnbench.harness.surroundings import Disturbers, Surroundings
from gnnbench.harness.training_check import REPEATS, Excess, divergence
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch, throttling
from gnnbench.statistics.work_class import drawn_class

T = TypeVar("T")
SETTLE_S = 0.02  # between blocks: OpenMP threads spin a few ms before they sleep
WAITS = ("runner_wait_s", "worker_wait_s", "threads_wait_s")
THOROUGH = 4  # after the first life one of so many, nobody knows which


class CellFailed(Exception):
    """A cell of the pair failed; the ledger knows."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell.id)
        self.cell = cell


@dataclass
class Life:
    """The ``number``-th pair of processes of ``pair``; a system alone is one process.

    Odd lives are started and measured the other way round. Epochs are numbered at random, alike on
    both sides, and told with the command: nobody can work ahead
    but an oracle of our own (``features=cache`` with ``policy=optimal``).
    """

    pair: Pair
    number: int
    ledger: Ledger
    measure: Measure
    keeper: Keeper
    gpu: GpuWatch
    step: Callable[[Cell, str, float], None]
    running: isolation.Running = field(default_factory=isolation.Running.own)

    def __post_init__(self) -> None:
        """The first life is looked at whole: all batches of an epoch, its phases one by one."""
        self._spent: dict[str, float] = {}  # s, by what was looked at
        self._last = self.ledger.last_life(self.pair)
        self._suspects: dict[str, suspects.Suspect] = {}  # by cell id
        self._late_stops: list[Record] = []  # after the last epoch
        repeats = bool(self._last and self._last.get("suspects"))
        first = not self.ledger.lives(self.pair)
        self.thorough = first or repeats or secrets.randbelow(THOROUGH) == 0
        self._disturbers = Disturbers()

    def run(self, rounds: Callable[[float, float], int]) -> None:
        """Measure; ``rounds(life_s, round_s)`` says how many, once both costs are known.

        The ledger has the samples and, once all is found right, the life. Raises ``CellFailed``.
        """
        cells = [c for c in (self.pair.reference, self.pair.system) if c is not None]
        for cell in cells:  # the first time all is copied
            self._ask(cell, lambda c=cell: self.keeper.graph(c))  # type: ignore[misc]
        began = time.monotonic()
        workers: list[tuple[Cell, WorkerProcess]] = []
        try:
            workers = self._ready(cells[:: -1 if self.number % 2 else 1])
            for cell, worker in workers:
                self._left_behind(cell, worker)
            start_s = time.monotonic() - began
            warm = [self._round(nth, True, workers) for nth in range(self.measure.warmup_epochs)]
            life_s = time.monotonic() - began - self._spent["gate"]  # no later life has one
            count = rounds(life_s, warm[-1] if warm else start_s)
            secret = secrets.randbelow(count)
            for nth in range(count):
                if nth == secret and self.thorough:
                    with self._told("verify"):
                        self._verify(workers)
                self.step(self.pair.system, f"pair {self.number + 1}, round {nth + 1}", nth / count)
                self._round(nth, False, workers)
            self._audit(workers)
            self._late_stops = [
                {"id": c.id, "system": c.system, "stopped_s": w.take_stopped_s()}
                for c, w in workers
            ]
            for _, worker in workers:
                worker.close()
        finally:
            for _, worker in workers:
                worker.kill()
        excess = self._training_excess()
        doubt = self._doubt(cells)
        if excess is not None:
            doubt = f"{excess.text}; correct systems rarely differ as much"
        self.ledger.record(
            "life", pair=self.pair.id, life=self.number, start_s=start_s,
            seconds=time.monotonic() - began, looks_s=self._spent, rounds=count, doubt=doubt,
            void=excess is not None or self._is_void(doubt),
            excess=excess.quantity if excess else "",
            suspects={ident: found.kind for ident, found in self._suspects.items()},
            busy=self._disturbers.record(),
            load=machine.load(), gpus=machine.gpus(),
        )  # fmt: skip

    def _doubt(self, cells: list[Cell]) -> str:
        """Why this pair should not count: what disturbed it, and what looks wrong in its times."""
        untimed = [*self._samples(warmup=True), *self._late_stops]
        found = [pair_doubt(self._samples(), self._free_cores(cells), untimed)]
        found += [
            f"'{c.who}': {self._suspects[c.id].text}" for c in cells if c.id in self._suspects
        ]
        return "; ".join(filter(None, found))

    def _free_cores(self, cells: list[Cell]) -> int:
        threads = max(machine.resolve_threads(c.threads) for c in cells)
        return max(machine.usable_cores() - threads, 0)

    def _is_void(self, doubt: str) -> bool:
        """Whether the pair is to be measured again: no more than a few times."""
        if self.ledger.void_lives(self.pair) >= suspects.most_void(
            self.measure.rule.looks, bool(self.pair.system.replica)
        ):
            return False
        twice = self._last is not None and self._last["void"]
        return bool(self._suspects) or (
            bool(doubt) and self.measure.rule.gives_verdicts and not twice
        )

    def _samples(self, warmup: bool = False) -> list[Record]:
        return [
            s
            for s in self.ledger.samples
            if s["pair"] == self.pair.id and s["life"] == self.number and s["warmup"] == warmup
        ]

    def _ready(self, cells: list[Cell]) -> list[tuple[Cell, WorkerProcess]]:
        """Workers that passed their gates, all started at once; none is left after a failure."""
        found: list[tuple[Cell, WorkerProcess]] = []
        try:
            for cell in cells:
                found.append((cell, self.keeper.worker(cell, self.measure.memory_limit_gib)))
            self._each(found, "opening", lambda w: w.send_open(self.keeper.graph(w.cell)), dict)
            self._each(
                found, "setting up", lambda w: w.send("setup"), lambda answer: {"setup": answer}
            )
            with self._told("gate"):
                self._gate(found)
            self._glance(found)
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
    ) -> list[dict[str, Any]]:
        """One command to all, then their answers; the first life's are reported."""
        answers = []
        for cell, worker in workers:
            self.step(cell, what, 0.0)
            self._ask(cell, lambda w=worker: send(w))  # type: ignore[misc]
        for cell, worker in workers:
            answer = self._ask(cell, lambda w=worker: w.receive(what))  # type: ignore[misc]
            answers.append(answer)
            found = report(answer)
            if not found.keys() <= self.ledger.reports.get(cell.id, {}).keys():
                self.ledger.record("report", cell=cell.id, report=found)
        return answers

    def _untimed(
        self, workers: list[tuple[Cell, WorkerProcess]], op: str, **arguments: Any
    ) -> Iterator[tuple[Cell, WorkerProcess, dict[str, Any]]]:
        """Answers to a command that is in no statistic.

        All at once where systems run on GPUs: what takes long then are looks by some of the host's
        cores. In turn on a CPU: threads that spin for work would take the other's cores.
        """
        at_once = all(cell.device == "cuda" for cell, _ in workers)
        if at_once:
            for cell, worker in workers:
                self._ask(cell, lambda w=worker: w.send(op, **arguments))  # type: ignore[misc]
        for cell, worker in workers:

            def answer(worker: WorkerProcess = worker) -> dict[str, Any]:
                return worker.receive(op) if at_once else worker.call(op, **arguments)

            yield cell, worker, self._ask(cell, answer)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """The life's record says what it took."""
        began = time.monotonic()
        yield
        self._spent[what] = self._spent.get(what, 0.0) + time.monotonic() - began

    def _gate(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """The whole gate, once a cell."""

        def passed(cell: Cell) -> bool:
            return bool(self.ledger.reports[cell.id].get("check", {"ok": False})["ok"])

        new = [(cell, worker) for cell, worker in workers if not passed(cell)]
        for cell, _ in new:
            self.step(cell, "checking", 0.0)
        for cell, _, check in self._untimed(new, "check"):
            self.ledger.record("report", cell=cell.id, report={"check": check})
            if not check["ok"]:
                self._fail(cell, Failure("incorrect", check["reason"]))

    def _glance(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """The gate's first seeds in every life: their edges must be the first life's."""
        found = self._each(
            workers,
            "checking",
            lambda w: w.send("glance"),
            lambda answer: {} if answer["reason"] else {"glance": answer},
        )
        for (cell, _), glance in zip(workers, found, strict=True):
            fault = glance["reason"]
            if not fault and glance["digest"] != self.ledger.reports[cell.id]["glance"]["digest"]:
                fault = "the gate's first seeds have other edges than in its first life"
            if fault:
                self._fail(cell, Failure("incorrect", f"in life {self.number + 1}: {fault}"))

    def _round(self, number: int, warmup: bool, workers: list[tuple[Cell, WorkerProcess]]) -> float:
        """One epoch of each worker, in turn A B, B A; its cost (s)."""
        began = time.monotonic()
        ordered = workers if number % 2 == 0 else workers[::-1]
        epoch = self._epoch(number, warmup)
        for order, (cell, worker) in enumerate(ordered):
            idle = [w for _, w in workers if w is not worker]
            self._foresee(cell, worker, epoch)
            time.sleep(SETTLE_S)
            gpu = self.gpu.read() if cell.device == "cuda" else None
            changed = self._isolation_doubt(workers)
            surroundings = Surroundings(worker, idle)
            timing = self._ask(cell, lambda w=worker: w.timed("epoch", epoch=epoch))  # type: ignore[misc]
            where: dict[str, Any] = {
                "life": self.number,
                "worker": worker.pid,
                "round": number,
                "order": order,
                "warmup": warmup,
                **surroundings.taken(),
                "isolation": changed or self._isolation_doubt(workers),
                **worker.rest.taken(),
                "stopped_s": worker.take_stopped_s(),
                **{key: timing[key] for key in WAITS},
            }
            self._disturbers.note(where, self._free_cores([cell]))
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
            report["counts"] = [*report["counts"], *self._copies(cell, worker, report)]
            if self.measure.roofline and not warmup:
                where["roofline"] = self._roofline(cell, worker, epoch)
            if cell.evaluate:
                where |= self._ask(cell, lambda w=worker: w.call("evaluate"))  # type: ignore[misc]
            sample = self.ledger.add_sample(self.pair, cell, where, timing, report)
            facts = self.ledger.reports[cell.id]["facts"]
            self._left_behind(cell, worker)
            fault = "" if report["ok"] else report["reason"]
            fault = fault or report_audit.phase_fault(cell, epoch, timing["busy"])
            if fault := fault or report_audit.sample_fault(cell, facts, epoch, sample):
                self._fail(cell, Failure("incorrect", fault))
        return time.monotonic() - began

    def _epoch(self, number: int, warmup: bool) -> int:
        """A number that nobody can know before; that of the same round of the same life of every
        comparison where it is followed how models learn."""
        if not self.pair.system.evaluate:
            return secrets.randbelow(EPOCHS)
        return self.ledger.drawn(f"{self.number} {number} {warmup}") % EPOCHS

    def _copies(self, cell: Cell, worker: WorkerProcess, report: Record) -> list[list[Any]]:
        """After an epoch of gathers, and in turn as they are: what mere copying takes."""
        if not (cell.gathers and cell.composed):
            return []
        asked = {"served": gather_rates.served(report), "batches": report["batches"]}
        found: list[list[Any]] = self._ask(cell, lambda: worker.call("copies", **asked))["counts"]
        return found

    def _roofline(self, cell: Cell, worker: WorkerProcess, epoch: int) -> list[Record]:
        """After an epoch that trains, in turn as it is: its kernels and the machine's ceilings."""
        if not (cell.trains and cell.composed):
            return []
        answer = self._ask(cell, lambda: worker.call("roofline", epoch=epoch))
        if answer["reason"]:
            self._fail(cell, Failure("incorrect", f"run by itself, {answer['reason']}"))
        found: list[Record] = answer["records"]
        return found

    def _foresee(self, cell: Cell, worker: WorkerProcess, epoch: int) -> None:
        """Tell an oracle the epoch that comes next, before the clock runs."""
        features = store(cell)
        if features is not None and features.foresees:
            self._ask(cell, lambda: worker.call("foresee", epoch=epoch))

    def _audit(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """Hold what was measured against what is known, and check each worker again."""
        own = self._samples()
        by_cell = {c.id: [s for s in own if s["id"] == c.id] for c, _ in workers}
        with self._told("probe"):
            for cell, worker in workers:
                samples = by_cell[cell.id]
                if fault := report_audit.loss_fault(samples):
                    self._fail(cell, Failure("incorrect", fault))
                if (found := suspects.of_clocks(samples)) is not None:
                    self._suspect(cell, found)
                elif self.thorough:
                    self._probe(cell, worker, samples)
        with self._told("recheck"):
            brief = not self.thorough
            again = self._untimed(workers, "recheck", epoch=secrets.randbelow(EPOCHS), brief=brief)
            for cell, _, answer in again:
                if answer["reason"]:
                    fault = f"after timing: {answer['reason']}"
                    self._fail(cell, Failure("incorrect", fault))
        if self.pair.reference is not None:
            cells = (self.pair.reference, self.pair.system)
            checks = [self.ledger.reports[c.id]["check"] for c in cells]
            rounds = list(zip(*(by_cell[c.id] for c in cells), strict=True))
            if fault := report_audit.edges_fault(rounds, drawn_class(*checks)):
                self._fail(self.pair.system, Failure("incorrect", fault))

    def _training_excess(self) -> Excess | None:
        """What both sides' training differs by, if correct systems do not differ by as much.

        Raises ``CellFailed`` where ``REPEATS`` earlier trials had the same excess, and where the
        training of the reference, or of a system alone, diverged.
        """
        first = self.pair.reference or self.pair.system
        if diverged := divergence(self.ledger.life(self.pair, first, self.number)):
            self._fail(first, Failure("unstable", diverged))
        if self.pair.reference is None:
            return None
        check = TrainingCheck(self.pair, self.ledger, self.measure, self.keeper, self.step)
        if fault := check.fault(self.number):
            self._fail(self.pair.system, Failure("incorrect", fault))
        with self._told("training"):
            found = check.excess(self.number)
        before = list(self.ledger.excesses(self.pair).values())
        if found is not None and before.count(found.quantity) >= REPEATS:
            self._fail(self.pair.system, Failure("incorrect", f"again in {found.text}"))
        return found

    def _suspect(self, cell: Cell, found: suspects.Suspect, probe: Record | None = None) -> None:
        """Note what looks wrong in a cell's times, or fail the cell where it is confirmed."""
        cells = [c for c in (self.pair.reference, self.pair.system) if c is not None]
        samples = self.ledger.life(self.pair, cell, self.number)
        free = self._free_cores(cells)
        if fault := suspects.confirmed(found, cell, self._last, samples, free, probe):
            self._fail(cell, Failure("incorrect", fault))
        self._suspects[cell.id] = found

    def _probe(self, cell: Cell, worker: WorkerProcess, samples: list[Record]) -> None:
        """The phases one by one, and again where one looks wrong: it may be other programs."""
        surroundings = Surroundings(worker)
        probed = self._ask(cell, lambda: probe_phases(cell, worker, samples))
        if probed.wrong:
            self._fail(cell, Failure("incorrect", probed.wrong))
        use = surroundings.taken()
        self.ledger.record(
            "probed", cell=cell.id, worker=worker.pid, alone=probed.alone, median=probed.median,
            cores=machine.usable_cores(), copied=self._copied(cell, worker, samples),
        )  # fmt: skip
        if probed.fault:
            self._suspect(cell, suspects.Suspect(suspects.PROBE, probed.fault), use)

    def _copied(
        self, cell: Cell, worker: WorkerProcess, samples: list[Record]
    ) -> dict[str, float] | None:
        try:
            return link_copy(cell, worker, samples)
        except WorkerFailed as failed:
            if failed.failure.status != "oom_gpu":
                self._fail(cell, failed.failure)
            return None

    def _left_behind(self, cell: Cell, worker: WorkerProcess) -> None:
        """Fail whose processes outlived their parents: the system where nothing tells whose."""
        left = isolation.strays(*started())
        own = [p for p in left if isolation.mark(p) == worker.mark]
        if fault := isolation.strays_fault(own):
            self._fail(cell, Failure("incorrect", fault))
        if fault := isolation.strays_fault([p for p in left if not isolation.mark(p)]):
            self._fail(self.pair.system, Failure("incorrect", fault))

    def _isolation_doubt(self, workers: list[tuple[Cell, WorkerProcess]]) -> str:
        return isolation.workers_doubt([worker.pid for _, worker in workers], self.running)

    def _verify(self, workers: list[tuple[Cell, WorkerProcess]]) -> None:
        """One epoch of each worker of which every batch is looked at; it is in no statistic."""
        epoch = secrets.randbelow(EPOCHS)
        digests = {}
        for cell, worker in workers:
            self._foresee(cell, worker, epoch)
        for cell, worker, report in self._untimed(workers, "verify", epoch=epoch):
            self.ledger.record("verified", cell=cell.id, worker=worker.pid, **report)
            if not report["ok"]:
                fault = f"when every batch was looked at: {report['reason']}"
                self._fail(cell, Failure("incorrect", fault))
            digests[cell.id] = report["digest"]
        if self.pair.reference is not None:
            cells = (self.pair.reference, self.pair.system)
            work = drawn_class(*(self.ledger.reports[c.id]["check"] for c in cells))
            one, other = (digests[c.id] for c in cells)
            if fault := report_audit.digests_fault(one, other, work):
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
