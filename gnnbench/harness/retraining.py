"""Check the training of a comparison's last trial, with retrainings of the reference if needed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness.environment import cell_facts
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.protocol import (
    AUDIT,
    EPOCH,
    EPOCH_NUMBERS,
    FORESEE,
    SETUP,
)
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.training_check import (
    RETRAININGS,
    Excess,
    Training,
    Trial,
    find_excess,
    structural_fault,
)
from gnnbench.schema.reports import CheckAnswer
from gnnbench.schema.samples import EpochSample
from gnnbench.statistics.work_class import drawn_class, same_updates

TIME_LIMIT_S = 120.0  # of one estimate of the spread; the retrainings finished by then are used


@dataclass
class TrainingCheck:
    """Compares the training of both sides of ``pair`` after a trial.

    The reference is trained again only where a difference is beyond the fixed tolerances: for
    equivalent work from the same weights over other epochs, once a run; for identical work over
    the trial's own epochs, from weights that differ by rounding.
    """

    pair: CellPair
    journal: RunJournal
    measure: MeasureLimits
    shared_cache: SharedMemoryCache
    step: Callable[[Cell, str, float], None]

    def fault(self, number: int) -> str:
        """Return what is wrong with the trial ``number`` beyond any random difference, or ""."""
        reference, system = self._trial(number)
        return structural_fault(reference, system, self._work) if self._trains_alike else ""

    def excess(self, number: int) -> Excess | None:
        """Return what differs in the trial ``number``, or over the trials since the last excess,
        by more than correct systems do.
        """
        since = max(self.journal.excesses(self.pair), default=-1)
        counted = [r["life"] for r in self.journal.trials(self.pair) if r["life"] > since]
        trials = [self._trial(n) for n in (*counted, number)]
        if self._find(trials, []) is None:
            return None
        return self._find(trials, self._spread(trials[-1]))

    def _find(self, trials: Sequence[Trial], spread: Sequence[Training]) -> Excess | None:
        return find_excess(trials, spread, self._work, self._reordered, self._trains_alike)

    @property
    def _checks(self) -> list[CheckAnswer]:
        assert self.pair.reference is not None
        cells = (self.pair.reference, self.pair.system)
        return [self.journal.reports[c.id]["check"] for c in cells]

    @property
    def _work(self) -> str:
        return drawn_class(*self._checks)

    @property
    def _trains_alike(self) -> bool:
        """Whether both sides make the same updates; others lead to other weights."""
        return same_updates(*self._checks)

    @property
    def _reordered(self) -> bool:
        details = [check.get("details", {}) for check in self._checks]
        return any(one.get("order_window", 1) > 1 for one in details)

    def _trial(self, number: int) -> Trial:
        assert self.pair.reference is not None
        return (
            self.journal.trial_samples(self.pair, self.pair.reference, number),
            self.journal.trial_samples(self.pair, self.pair.system, number),
        )

    def _spread(self, trial: Trial) -> list[list[EpochSample]]:
        """Trainings of the reference that differ from it as a correct system may."""
        cell = self.pair.reference
        assert cell is not None
        reference, length = trial[0], len(trial[0])
        epochs = [sample.epoch for sample in reference]
        if self._work == "identical" and not self._reordered:
            return self._retrain(cell, [(epochs, nth) for nth in range(1, RETRAININGS + 1)])
        known = self.journal.trainings(cell, length)
        known = [t for t in known if [s.epoch for s in t] != epochs]
        missing = max(RETRAININGS - len(known), 0)
        fresh = [[secrets.randbelow(EPOCH_NUMBERS) for _ in epochs] for _ in range(missing)]
        added = self._retrain(cell, [(numbers, 0) for numbers in fresh])
        if added:
            lines = [[sample.training_json() for sample in training] for training in added]
            self.journal.record("retrained", cell=cell.id, trainings=lines)
        return [*known, *added]

    def _retrain(
        self, cell: Cell, plan: Sequence[tuple[list[int], int]]
    ) -> list[list[EpochSample]]:
        """Train ``cell`` again over each list of epochs, from weights of each jitter, untimed.

        Returns the finished trainings if a worker fails or the time is over.
        """
        if not plan:
            return []
        began, retrained = time.monotonic(), []
        worker = self.shared_cache.worker(cell, self.measure.memory_limit_gib)
        foresees = cell_facts(cell).foresees
        try:
            for nth, (epochs, jitter) in enumerate(plan):
                self.step(cell, f"training {nth + 1} of {len(plan)} for its spread", 0.99)
                worker.cell = replace(cell, jitter=jitter)
                worker.open(self.shared_cache.graph(cell))
                worker.call(SETUP)
                samples = []
                for number, epoch in enumerate(epochs):
                    if foresees and number % foresees == 0:
                        worker.call(FORESEE, epochs=epochs[number : number + foresees])
                    worker.timed(EPOCH, epoch=epoch)
                    report = worker.call(AUDIT, epoch=epoch)
                    samples.append(EpochSample.parse(report))
                retrained.append(samples)
                if time.monotonic() - began > TIME_LIMIT_S:
                    break
            worker.close()
        except WorkerFailed:
            pass  # the tolerances and what was trained so far decide
        finally:
            worker.kill()
        return retrained
