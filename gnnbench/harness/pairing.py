"""Measure a comparison: pairs of fresh processes, until the stopping rule ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell, Until
from gnnbench.harness.environment import cell_facts
from gnnbench.harness.idle_wait import IdleWait
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.protocol import (
    COUNTERS,
    EPOCH_NUMBERS,
    KERNELS,
    MEMORY,
    PROFILE,
    SETUP,
    TRACE,
    Command,
    ProfileAnswer,
)
from gnnbench.harness.reduce.comparison import round_logs
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.trial import Trial
from gnnbench.harness.trial_context import CellFailed
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch
from gnnbench.schema.events import TrialEvent
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.estimates import mean_interval
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.stopping_rule import even_rounds, fitting_rounds

if TYPE_CHECKING:
    from gnnbench.systems.runtime.system import StageRow

MOST_DOUBTED = 0.05  # of the pairs of a long calibration, where they are left out


class Observer(Protocol):
    """Receives the progress of a run."""

    def note(self, text: str) -> None:
        """Receive a message for the user."""

    def plan(self, pairs: int, budget_s: float) -> None:
        """Receive the amount of work, before anything is measured."""

    def step(self, text: str, fraction: float) -> None:
        """Receive the present step, and the progress of the current pair (0 to 1)."""

    def pair_done(self) -> None:
        """Receive the end of the current pair."""


@dataclass
class Pairing:
    """Runs comparisons sequentially; every worker process ends with its trial."""

    journal: RunJournal
    measure: MeasureLimits
    observer: Observer
    shared_cache: SharedMemoryCache
    calibrations: Sequence[Calibration] = ()
    gpu: GpuWatch = field(default_factory=GpuWatch)
    idle_wait: IdleWait = field(default_factory=IdleWait)

    def run(self, pair: CellPair) -> None:
        """Measure a comparison; failures are recorded in the journal.

        If the reference fails, the system is measured alone. After any other error no worker is
        left.
        """
        try:
            self._run(pair)
        except CellFailed as failed:
            lost = pair.reference is not None and failed.cell.id == pair.reference.id
            if lost and not pair.direct:
                self.run(CellPair(pair.system))

    def _run(self, pair: CellPair) -> None:
        rule = self.measure.rule
        while True:
            lives = self.journal.trials(pair)
            took = [r["seconds"] for r in lives]  # the first has the whole gate in it
            prior = noise.prior(self.calibrations, pair.system.device) if pair.reference else None
            why = rule.stop(
                round_logs(self.journal, pair), prior, sum(took), min(took, default=0.0),
                self.measure.time_budget_s, compares=pair.reference is not None,
            )  # fmt: skip
            if why := why or self._doubted(pair, lives):
                break
            number = self.journal.next_trial(pair)
            Trial(
                pair, number, self.journal, self.measure, self.shared_cache, self.gpu,
                self._step,
            ).run(lambda life_s, round_s: self._rounds(pair, life_s, round_s))  # fmt: skip
            last = self.journal.last_trial(pair)
            if last is not None and last["void"]:
                self.observer.note(f"pair {number + 1} is void ({last['doubt']}): once more")
                self.idle_wait.wait(self.observer.note)
        self._profile(pair)
        self.journal.record("done", pair=pair.id, why=why)

    def _doubted(self, pair: CellPair, lives: Sequence[TrialEvent]) -> str:
        """Return ``doubt`` if unreliable pairs prevent a verdict and no more pairs are planned.

        A calibration may have a few such pairs and ends at once if it has more.
        """
        rule = self.measure.rule
        doubted = sum(bool(r["doubt"]) for r in lives)
        if not doubted or not rule.gives_verdicts:
            return ""
        if pair.system.replica:
            return "doubt" if doubted > MOST_DOUBTED * rule.analyses[-1] else ""
        return "doubt" if len(lives) >= rule.analyses[0] else ""

    def _rounds(self, pair: CellPair, life_s: float, round_s: float) -> int:
        """Return the rounds of each trial of a pair, from costs and known noise only; set in the
        first trial.
        """
        if pair.id not in self.journal.rounds_of:
            rounds = self.measure.rounds
            if not rounds:
                threads = machine.resolve_threads(pair.system.threads)
                known = noise.best(self.calibrations, pair.system, threads)
                key = primary_metric.of(pair.system.until).key
                spread = noise.USUAL[pair.system.device]
                if known is not None and key in known.spreads:
                    spread = known.spreads[key]
                best = even_rounds(life_s, round_s, spread.s_life, spread.s_round)
                look, budget_s = self.measure.pairs[0], self.measure.time_budget_s
                rounds = min(best, fitting_rounds(look, budget_s, life_s, round_s))
            self.journal.record("rounds", pair=pair.id, rounds=rounds)
        return self.journal.rounds_of[pair.id]

    def _profile(self, pair: CellPair) -> None:
        """Profile both sides in separate, untimed processes.

        Stages and kernels of samplers, curves of caches, overlap of batches, memory: one process
        each; samplers that run alone get ``measure.looks``. Measured times do not depend on it.
        """
        cells = [c for c in (pair.reference, pair.system) if c is not None and self._unprofiled(c)]
        earlier: dict[str, list[ProfileAnswer]] = {c.id: [] for c in cells}
        for look in range(self.measure.looks - 1):
            for cell in filter(_samples_only, cells):
                self._step(cell, "looking inside", 0.99)
                earlier[cell.id].append(self._run_profile(cell, PROFILE, look))
        for cell in cells:
            self._step(cell, "looking inside", 0.99)
            tables, means = ProfileAnswer(), {}
            for command in self._profiles(cell):
                answer = self._run_profile(cell, command)
                if facts := [*tables.get("facts", []), *answer.get("facts", [])]:
                    answer["facts"] = facts
                tables |= answer
            if "stages" in tables and earlier[cell.id]:
                stages = [answer.get("stages", []) for answer in earlier[cell.id]]
                means = {"stages": mean_over_processes([*stages, tables["stages"]])}
            self.journal.record("profile", cell=cell.id, profile={**tables, **means})

    def _unprofiled(self, cell: Cell) -> bool:
        done = cell.id in self.journal.profiles or cell.id in self.journal.failures
        return not done and bool(self._profiles(cell))

    def _run_profile(
        self, cell: Cell, command: Command[ProfileAnswer], look: int = -1
    ) -> ProfileAnswer:
        """Return the answer of a fresh process, or the error with which it failed.

        Templates fork it in turn (``look``), except where memory is measured: a forked process
        shares its template's.
        """
        templates = [None] if command == MEMORY else self.shared_cache.templates([cell], look)
        worker = self.shared_cache.worker(cell, self.measure.memory_limit_gib, *templates)
        try:
            graph = self.shared_cache.graph(cell)
            worker.open(graph)
            if command != MEMORY:  # which measures the set-up itself
                worker.call(SETUP)
            path = str(self.journal.folder / "traces" / f"{cell.system}-{cell.id}.json.gz")
            more = {"path": path} if command == TRACE else {}
            answer = worker.call(command, epoch=EPOCH_NUMBERS, graph=graph, **more)
            worker.close()
        except WorkerFailed as failed:
            answer = {"error": failed.failure.reason}
            self.observer.note(f"{cell.who}: nothing was seen inside: {failed.failure.reason}")
        finally:
            worker.kill()
        return answer

    def _profiles(self, cell: Cell) -> list[Command[ProfileAnswer]]:
        """Return the profiling commands for a cell; empty if there is nothing to profile."""
        wanted = {
            COUNTERS: self.measure.roofline and cell.trains and cell.composed,
            MEMORY: self.measure.memory and cell.composed,
            KERNELS: self.measure.kernels and runs_kernels(cell),
            TRACE: self.measure.trace and cell.composed,
            PROFILE: _has_profile(cell),
        }
        return [command for command, is_wanted in wanted.items() if is_wanted]

    def _step(self, cell: Cell, text: str, fraction: float) -> None:
        what = cell.model or f"until {cell.until}"
        self.observer.step(f"{cell.dataset} {what} {cell.who}: {text}", fraction)


def runs_kernels(cell: Cell) -> bool:
    """Whether a cell runs GPU kernels that its samples do not report."""
    beyond = cell.goes_until is not Until.SAMPLE
    return cell.composed and cell.device == "cuda" and beyond


def _samples_only(cell: Cell) -> bool:
    return cell.goes_until is Until.SAMPLE


def _has_profile(cell: Cell) -> bool:
    """Whether a cell is profiled beyond its timed epochs."""
    if cell.goes_until is not Until.MEMORY_IO:
        return _samples_only(cell)
    return cell_facts(cell).traced


def mean_over_processes(profiles: Sequence[Sequence[StageRow]]) -> list[Mapping[str, object]]:
    """Return the rows of the last profile, with times averaged over all profiles.

    ``host_s`` and ``device_s`` become means with Student's interval (``host_low_s``,
    ``host_high_s``); ``looks`` is the number of processes. The process is the unit, because its
    medians over batches share what differs between processes. A stage that some profile lacks keeps
    the times of the last one.
    """
    averaged: list[Mapping[str, object]] = []
    for row in profiles[-1]:
        matches = [[r for r in rows if _key(r) == _key(row)] for rows in profiles]
        rows = [match[0] for match in matches if match]
        means: dict[str, float] = {}
        if len(rows) == len(profiles):
            means |= _mean_fields("host", [r.get("host_s") for r in rows])
            means |= _mean_fields("device", [r.get("device_s") for r in rows])
        averaged.append({**row, **means})
    return averaged


def _key(row: StageRow) -> tuple[str, int | None]:
    return row["stage"], row["hop"]


def _mean_fields(time: str, values: Sequence[float | None]) -> dict[str, float]:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return {}
    mean = mean_interval(known)
    return {f"{time}_s": mean.value, f"{time}_low_s": mean.low, f"{time}_high_s": mean.high,
            "looks": mean.n}  # fmt: skip
