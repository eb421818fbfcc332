"""Measure one comparison: pairs of fresh processes, until it is known or the time is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gnnbench.config.experiment import Measure
from gnnbench.core.cell import Cell, Until
from gnnbench.harness.environment import feature_store
from gnnbench.harness.idle_wait import IdleWait
from gnnbench.harness.journal import Record, RunJournal
from gnnbench.harness.plan import Pair
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.profile_means import mean_over_processes
from gnnbench.harness.protocol import EPOCH_NUMBERS, SETUP
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
        """Stages and kernels of samplers, curves of caches, overlap of batches, memory: by
        processes that nothing is timed in, once each, but samplers as often as is asked for.

        What was measured stands without.
        """
        cells = [c for c in (pair.reference, pair.system) if c is not None and self._unseen(c)]
        again: dict[str, list[dict[str, Any]]] = {c.id: [] for c in cells}
        for _ in range(self.measure.looks - 1):
            for cell in filter(_samples_only, cells):
                self._step(cell, "looking inside", 0.99)
                again[cell.id].append(self._look(cell, "profile"))
        for cell in cells:
            self._step(cell, "looking inside", 0.99)
            found: dict[str, Any] = {}
            for look in self._looks(cell):
                seen = self._look(cell, look)
                facts = [*found.get("facts", []), *seen.get("facts", [])]
                found |= seen | ({"facts": facts} if facts else {})
            if "stages" in found and again[cell.id]:
                told = [seen.get("stages", []) for seen in again[cell.id]]
                found["stages"] = mean_over_processes([*told, found["stages"]])
            self.journal.record("profile", cell=cell.id, profile=found)

    def _unseen(self, cell: Cell) -> bool:
        seen = cell.id in self.journal.profiles or cell.id in self.journal.failures
        return not seen and bool(self._looks(cell))

    def _look(self, cell: Cell, look: str) -> dict[str, Any]:
        """What a fresh process answers, or the error that it ends with."""
        worker = self.shared_cache.worker(cell, self.measure.memory_limit_gib)
        try:
            graph = self.shared_cache.graph(cell)
            worker.open(graph)
            if look != "memory":  # which looks at how all is built
                worker.call(SETUP)
            found: dict[str, Any] = worker.call(look, epoch=EPOCH_NUMBERS, graph=graph)
            worker.close()
        except WorkerFailed as failed:
            found = {"error": failed.failure.reason}
            self.observer.note(f"{cell.who}: nothing was seen inside: {failed.failure.reason}")
        finally:
            worker.kill()
        return found

    def _looks(self, cell: Cell) -> list[str]:
        """What to ask workers that look inside, none where there is nothing more to see."""
        asked = {
            "counters": self.measure.roofline and cell.trains and cell.composed,
            "memory": self.measure.memory and cell.composed,
            "kernels": self.measure.kernels and runs_kernels(cell),
            "profile": _has_inside(cell),
        }
        return [look for look, wanted in asked.items() if wanted]

    def _step(self, cell: Cell, text: str, fraction: float) -> None:
        what = cell.model or f"until {cell.until}"
        self.observer.step(f"{cell.dataset} {what} {cell.who}: {text}", fraction)


def runs_kernels(cell: Cell) -> bool:
    """Whether a GPU runs any that are not told with the samples."""
    beyond = cell.goes_until is not Until.SAMPLE
    return cell.composed and cell.device == "cuda" and beyond


def _samples_only(cell: Cell) -> bool:
    return cell.goes_until is Until.SAMPLE


def _has_inside(cell: Cell) -> bool:
    """Whether there is more to see of a cell than what was timed."""
    if cell.goes_until is not Until.MEMORY_IO:
        return _samples_only(cell)
    features = feature_store(cell)
    return features is not None and features.traced
