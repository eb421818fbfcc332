"""Measure one comparison: pairs of fresh processes, until it is known or the time is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gnnbench.config.experiment import Measure
from gnnbench.core.cell import Cell, Until
from gnnbench.harness.environment import feature_store
from gnnbench.harness.idle_wait import IdleWait
from gnnbench.harness.journal import Record, RunJournal
from gnnbench.harness.plan import Pair
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.profile_means import mean_over_processes
from gnnbench.harness.protocol import (
    COUNTERS,
    EPOCH_NUMBERS,
    KERNELS,
    MEMORY,
    PROFILE,
    SETUP,
    Command,
    ProfileAnswer,
)
from gnnbench.harness.reduce.comparison import logs
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.trial import Trial
from gnnbench.harness.trial_context import CellFailed
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.stopping_rule import even_rounds, fitting_rounds

MOST_DOUBTED = 0.05  # of the pairs of a long calibration, where they are left out


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


@dataclass
class Pairing:
    """Runs comparisons one after the other; no process outlives its life."""

    journal: RunJournal
    measure: Measure
    observer: Observer
    shared_cache: SharedMemoryCache
    calibrations: Sequence[Calibration] = ()
    gpu: GpuWatch = field(default_factory=GpuWatch)
    idle_wait: IdleWait = field(default_factory=IdleWait)

    def run(self, pair: Pair) -> None:
        """Measure a comparison; failures go to the journal.

        Where the reference fails, the system goes on alone. Anything else that is raised leaves no
        worker behind.
        """
        try:
            self._run(pair)
        except CellFailed as failed:
            lost = pair.reference is not None and failed.cell.id == pair.reference.id
            if lost and not pair.direct:
                self.run(Pair(pair.system))

    def _run(self, pair: Pair) -> None:
        rule = self.measure.rule
        while True:
            lives = self.journal.trials(pair)
            took = [r["seconds"] for r in lives]  # the first has the whole gate in it
            why = rule.stop(
                logs(self.journal, pair), sum(took), min(took, default=0.0),
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

    def _doubted(self, pair: Pair, lives: Sequence[Record]) -> str:
        """``doubt`` where pairs in doubt leave no verdict, and no more are planned for a ratio.

        A calibration, of equals, may have a few such pairs and ends at once where it has more.
        """
        rule = self.measure.rule
        doubted = sum(bool(r["doubt"]) for r in lives)
        if not doubted or not rule.gives_verdicts:
            return ""
        if pair.system.replica:
            return "doubt" if doubted > MOST_DOUBTED * rule.looks[-1] else ""
        return "doubt" if len(lives) >= rule.looks[0] else ""

    def _rounds(self, pair: Pair, life_s: float, round_s: float) -> int:
        """Rounds of every life of a pair: decided in the first, by cost and known noise alone."""
        if pair.id not in self.journal.rounds_of:
            rounds = self.measure.rounds
            if not rounds:
                threads = machine.resolve_threads(pair.system.threads)
                known = noise.best(self.calibrations, pair.system, threads)
                key = primary_metric.of(pair.system.until).key
                spread = noise.Spread(noise.USUAL_ROUND, noise.USUAL_LIFE)
                if known is not None and key in known.spreads:
                    spread = known.spreads[key]
                best = even_rounds(life_s, round_s, spread.s_life, spread.s_round)
                look, budget_s = self.measure.pairs[0], self.measure.time_budget_s
                rounds = min(best, fitting_rounds(look, budget_s, life_s, round_s))
            self.journal.record("rounds", pair=pair.id, rounds=rounds)
        return self.journal.rounds_of[pair.id]

    def _profile(self, pair: Pair) -> None:
        """Profile both sides in processes of their own, in which nothing is timed.

        Stages and kernels of samplers, curves of caches, overlap of batches, memory. One process
        each; samplers that run alone get ``measure.looks``. Measured times are valid without.
        """
        cells = [c for c in (pair.reference, pair.system) if c is not None and self._unprofiled(c)]
        earlier: dict[str, list[ProfileAnswer]] = {c.id: [] for c in cells}
        for _ in range(self.measure.looks - 1):
            for cell in filter(_samples_only, cells):
                self._step(cell, "looking inside", 0.99)
                earlier[cell.id].append(self._run_profile(cell, PROFILE))
        for cell in cells:
            self._step(cell, "looking inside", 0.99)
            tables: Record = {}
            for command in self._profiles(cell):
                answer = self._run_profile(cell, command)
                facts = [*tables.get("facts", []), *answer.get("facts", [])]
                tables |= {**answer} | ({"facts": facts} if facts else {})
            if "stages" in tables and earlier[cell.id]:
                stages = [answer.get("stages", []) for answer in earlier[cell.id]]
                tables["stages"] = mean_over_processes([*stages, tables["stages"]])
            self.journal.record("profile", cell=cell.id, profile=tables)

    def _unprofiled(self, cell: Cell) -> bool:
        done = cell.id in self.journal.profiles or cell.id in self.journal.failures
        return not done and bool(self._profiles(cell))

    def _run_profile(self, cell: Cell, command: Command[ProfileAnswer]) -> ProfileAnswer:
        """Return the answer of a fresh process, or the error with which it failed."""
        worker = self.shared_cache.worker(cell, self.measure.memory_limit_gib)
        try:
            graph = self.shared_cache.graph(cell)
            worker.open(graph)
            if command != MEMORY:  # which measures the set-up itself
                worker.call(SETUP)
            answer = worker.call(command, epoch=EPOCH_NUMBERS, graph=graph)
            worker.close()
        except WorkerFailed as failed:
            answer = {"error": failed.failure.reason}
            self.observer.note(f"{cell.who}: nothing was seen inside: {failed.failure.reason}")
        finally:
            worker.kill()
        return answer

    def _profiles(self, cell: Cell) -> list[Command[ProfileAnswer]]:
        """Return the profiling commands for a cell; none where there is nothing to profile."""
        wanted = {
            COUNTERS: self.measure.roofline and cell.trains and cell.composed,
            MEMORY: self.measure.memory and cell.composed,
            KERNELS: self.measure.kernels and runs_kernels(cell),
            PROFILE: _has_profile(cell),
        }
        return [command for command, is_wanted in wanted.items() if is_wanted]

    def _step(self, cell: Cell, text: str, fraction: float) -> None:
        what = cell.model or f"until {cell.until}"
        self.observer.step(f"{cell.dataset} {what} {cell.who}: {text}", fraction)


def runs_kernels(cell: Cell) -> bool:
    """Whether a GPU runs any that are not told with the samples."""
    beyond = cell.goes_until is not Until.SAMPLE
    return cell.composed and cell.device == "cuda" and beyond


def _samples_only(cell: Cell) -> bool:
    return cell.goes_until is Until.SAMPLE


def _has_profile(cell: Cell) -> bool:
    """Whether there is more to see of a cell than what was timed."""
    if cell.goes_until is not Until.MEMORY_IO:
        return _samples_only(cell)
    features = feature_store(cell)
    return features is not None and features.traced
