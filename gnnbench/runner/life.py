"""One pair of fresh processes: started, gated, warmed up, measured in turn, checked again."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gnnbench.cell import Cell
from gnnbench.experiment import Measure
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch, throttling
from gnnbench.measure.work import drawn_class, same_updates
from gnnbench.runner import audit, clocks, gathers, isolation
from gnnbench.runner.bounds import link_bytes
from gnnbench.runner.doubt import pair_doubt
from gnnbench.runner.environment import store
from gnnbench.runner.failures import Failure
from gnnbench.runner.keeper import Keeper
from gnnbench.runner.ledger import Ledger, Record
from gnnbench.runner.losses import losses_fault, trend_fault
from gnnbench.runner.plan import Pair
from gnnbench.runner.probing import probe_fault, shared_by_ranks
from gnnbench.runner.process import WorkerFailed, WorkerProcess, started

T = TypeVar("T")
# Between blocks: OpenMP threads spin a few ms after their last region before they sleep.
SETTLE_S = 0.02
EPOCHS = 2**30  # numbers that an epoch may have
PROBE_EPOCHS = 3
PROBES = 3
COPIED_BYTES = 1 << 32  # at most, to see how fast the link is
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
        self.thorough = not self.ledger.lives(self.pair) or secrets.randbelow(THOROUGH) == 0

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
            for _, worker in workers:
                worker.close()
        finally:
            for _, worker in workers:
                worker.kill()
        last = self.ledger.last_life(self.pair)
        threads = max(machine.resolve_threads(c.threads) for c in cells)
        doubt = pair_doubt(self._samples(), max(machine.usable_cores() - threads, 0))
        self.ledger.record(
            "life", pair=self.pair.id, life=self.number, start_s=start_s,
            seconds=time.monotonic() - began, looks_s=self._spent, rounds=count, doubt=doubt,
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
            before = [w.cpu_seconds() for w in idle]
            own, busy = worker.cpu_seconds(), machine.busy_seconds()
            start = time.monotonic()
            timing = self._ask(cell, lambda w=worker: w.timed("epoch", epoch=epoch))  # type: ignore[misc]
            block_s = time.monotonic() - start
            own, busy = worker.cpu_seconds() - own, machine.busy_seconds() - busy
            idle_s = sum(w.cpu_seconds() - b for w, b in zip(idle, before, strict=True))
            where: dict[str, Any] = {
                "life": self.number,
                "worker": worker.pid,
                "round": number,
                "order": order,
                "warmup": warmup,
                "block_s": block_s,
                "idle_cpu_s": idle_s,
                "isolation": changed or self._isolation_doubt(workers),
                **worker.rest.taken(),
                "cpu_s": own,
                "foreign_cpu_s": busy - idle_s - own,
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
            report["counts"] = [*report["counts"], *self._copies(cell, worker, report)]
            if self.measure.roofline and not warmup:
                where["roofline"] = self._roofline(cell, worker, epoch)
            if cell.evaluate:
                where |= self._ask(cell, lambda w=worker: w.call("evaluate"))  # type: ignore[misc]
            sample = self.ledger.add_sample(self.pair, cell, where, timing, report)
            facts = self.ledger.reports[cell.id]["facts"]
            self._left_behind(cell, worker)
            fault = "" if report["ok"] else report["reason"]
            fault = fault or audit.phase_fault(cell, epoch, timing["busy"])
            if fault := fault or audit.sample_fault(cell, facts, epoch, sample):
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
        asked = {"served": gathers.served(report), "batches": report["batches"]}
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
                fault = clocks.parent_fault(samples)
                fault = fault or clocks.quiet_fault(samples) or audit.loss_fault(samples)
                if not fault and self.thorough:
                    fault = self._probe(cell, worker, samples)
                if fault:
                    self._fail(cell, Failure("incorrect", fault))
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
            work = drawn_class(*checks)
            rounds = list(zip(*(by_cell[c.id] for c in cells), strict=True))
            ours, theirs = (self.ledger.life(self.pair, c, self.number) for c in cells)
            reordered = any(check["details"].get("order_window", 1) > 1 for check in checks)
            fault = audit.edges_fault(rounds, work)
            followed = bool(self.pair.system.evaluate)
            # Other updates lead elsewhere: there is nothing to hold such losses against.
            if same_updates(*checks):
                fault = fault or losses_fault(ours, theirs, work, reordered, followed)
                fault = fault or trend_fault(self._lives(), work, reordered, followed)
            if fault:
                self._fail(self.pair.system, Failure("incorrect", fault))

    def _lives(self) -> list[tuple[list[Record], list[Record]]]:
        """Samples of the reference and of the system: of all lives that count, this one last."""
        assert self.pair.reference is not None
        pair, one, other = self.pair, self.pair.reference, self.pair.system
        numbers = [*(r["life"] for r in self.ledger.lives(pair)), self.number]
        return [(self.ledger.life(pair, one, n), self.ledger.life(pair, other, n)) for n in numbers]

    def _probe(self, cell: Cell, worker: WorkerProcess, samples: list[Record]) -> str:
        """The phases one by one, and again where one looks wrong: it may be other programs."""
        times: dict[str, list[float]] = {}
        for _ in range(PROBES):
            epochs = [secrets.randbelow(EPOCHS) for _ in range(PROBE_EPOCHS)]
            answer = self._ask(cell, lambda e=epochs: worker.call("probe", epochs=e))  # type: ignore[misc]
            if fault := answer["reason"]:
                return f"when its phases were run one by one: {fault}"
            for phase, found in answer["alone"].items():
                times.setdefault(phase, []).extend(found)
            # On a busy machine a batch may take many times as long, and never less.
            alone = {phase: min(found) for phase, found in times.items()}
            if not (fault := probe_fault(samples, alone, shared_by_ranks(cell))):
                break
        median = {phase: statistics.median(found) for phase, found in times.items()}
        self.ledger.record(
            "probed", cell=cell.id, worker=worker.pid, alone=alone, median=median,
            cores=machine.usable_cores(), copied=self._copied(cell, worker, samples),
        )  # fmt: skip
        return fault

    def _copied(
        self, cell: Cell, worker: WorkerProcess, samples: list[Record]
    ) -> dict[str, float] | None:
        """What copying takes of the bytes that an epoch has come over the link, or of a part of
        them: bytes and seconds; None where there are none, or no room for them on the GPU.

        Each rank has a link of its own, of which this worker is one.
        """
        whole = statistics.median(link_bytes(s) for s in samples) if samples else 0.0
        if not whole or not cell.composed or cell.gathers or shared_by_ranks(cell):
            return None
        size = int(min(whole, COPIED_BYTES))
        batches = max(1, round(samples[-1]["batches"] * size / whole))
        try:
            found = worker.call("copies", served={"host_copy": size}, batches=batches)["counts"]
        except WorkerFailed as failed:
            if failed.failure.status != "oom_gpu":
                self._fail(cell, failed.failure)
            return None
        return {"bytes": size, "seconds": found[0][-1]} if found else None

    def _left_behind(self, cell: Cell, worker: WorkerProcess) -> None:
        """Fail whose processes outlived their parents: the system where nothing tells whose."""
        left = isolation.strays(*started())
        own = [p for p in left if isolation.mark(p) == worker.mark]
        if fault := isolation.strays_fault(own):
            self._fail(cell, Failure("incorrect", fault))
        if fault := isolation.strays_fault([p for p in left if not isolation.mark(p)]):
            self._fail(self.pair.system, Failure("incorrect", fault))

    def _isolation_doubt(self, workers: list[tuple[Cell, WorkerProcess]]) -> str:
        """Whether anything has changed how threads run: of the workers, or of this process."""
        threads = {t for _, worker in workers for t in isolation.running(worker.pid)}
        return isolation.running_doubt(threads | {isolation.Running.own()}, self.running)

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
            if fault := audit.digests_fault(one, other, work):
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
