"""A paired trial: two fresh processes, gated, warmed up, timed alternately, checked again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from gnnbench.config.experiment import MeasureLimits
from gnnbench.harness import timing_anomalies
from gnnbench.harness.alternating_epochs import AlternatingEpochs
from gnnbench.harness.doubt import pair_doubt
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.training_check import Excess
from gnnbench.harness.trial_checks import check_after_timing, training_excess, verify_every_batch
from gnnbench.harness.trial_context import ShowProgress, TrialContext
from gnnbench.harness.trial_gate import check_first_batches, run_gate
from gnnbench.harness.trial_workers import TrialWorkers
from gnnbench.measure import machine
from gnnbench.measure.throttle import GpuWatch
from gnnbench.schema.samples import EpochSample

CHECKED_AT_ONCE = 8.0  # batches
CountRounds = Callable[[float, float], int]  # from the seconds of a trial's start and of a round


class Trial:
    """The ``number``-th pair of fresh processes of ``pair``; a system alone has one process.

    Odd trials start and measure the two sides in reverse order.
    """

    def __init__(
        self,
        pair: CellPair,
        number: int,
        journal: RunJournal,
        measure: MeasureLimits,
        shared_cache: SharedMemoryCache,
        gpu: GpuWatch,
        show_progress: ShowProgress,
    ) -> None:
        self._context = TrialContext(pair, number, journal, measure, shared_cache, show_progress)
        self._gpu = gpu

    def run(self, count_rounds: CountRounds) -> None:
        """Measure, and append samples and the finished trial to the journal.

        ``count_rounds(trial_s, round_s)`` returns the number of rounds, once both costs are known.
        Raises ``CellFailed``; no process is left then.
        """
        context, cells = self._context, self._context.cells
        for cell in cells:  # copies arrays into memory before the first trial
            context.attempt(cell, lambda c=cell: context.shared_cache.graph(c))  # type: ignore[misc]
        began = time.monotonic()
        workers = TrialWorkers(context)
        epochs = AlternatingEpochs(context, workers, self._gpu)
        try:
            self._start(workers)
            start_s = time.monotonic() - began
            warm_up_s = [
                epochs.run_round(nth, warmup=True) for nth in range(context.measure.warmup_epochs)
            ]
            trial_s = time.monotonic() - began - context.checks_s["gate"]  # later trials have none
            rounds = count_rounds(trial_s, warm_up_s[-1] if warm_up_s else start_s)
            self._measure(workers, epochs, rounds)
            check_after_timing(context, workers)
            late_stops = workers.close()
        finally:
            workers.kill()
        excess = training_excess(context)
        doubt = self._doubt(late_stops, excess)
        context.journal.record(
            "life", pair=context.pair.id, life=context.number, forked=workers.are_forked,
            start_s=start_s, seconds=time.monotonic() - began, looks_s=context.checks_s,
            rounds=rounds, doubt=doubt, void=excess is not None or self._is_void(doubt),
            excess=excess.quantity if excess else "",
            suspects={cell_id: anomaly.kind for cell_id, anomaly in context.anomalies.items()},
            busy=epochs.busy_programs.record(),
            load=machine.load(), gpus=machine.gpus(),
        )  # fmt: skip

    def _start(self, workers: TrialWorkers) -> None:
        """Start both workers and check them."""
        context = self._context
        workers.start(context.cells[:: -1 if context.number % 2 else 1])
        with context.timing("gate"):
            run_gate(context, workers)
        check_first_batches(context, workers)
        for cell, worker in workers:
            workers.check_left_behind(cell, worker)

    def _measure(self, workers: TrialWorkers, epochs: AlternatingEpochs, rounds: int) -> None:
        """Run the timed rounds; a thorough trial may verify an epoch before a random one.

        Where epochs are too short to check batches of each, a round that is not measured checks
        ``CHECKED_AT_ONCE`` of them, also at a random place.
        """
        context = self._context
        verified_before, checked_before = secrets.randbelow(rounds), secrets.randbelow(rounds)
        is_checked = any(cell.composed and not cell.evaluate for cell in context.cells)
        is_checked_apart = is_checked and epochs.are_short
        for nth in range(rounds):
            if nth == verified_before and context.thorough:
                verify_every_batch(context, workers)
            if nth == checked_before and is_checked_apart:
                epochs.run_round(nth, warmup=True, copies=CHECKED_AT_ONCE)
            progress = f"pair {context.number + 1}, round {nth + 1}"
            context.show_progress(context.pair.system, progress, nth / rounds)
            epochs.run_round(nth, warmup=False)

    def _doubt(self, late_stops: list[EpochSample], excess: Excess | None) -> str:
        """Return why this trial should not count: disturbances and timing anomalies, or ""."""
        if excess is not None:
            return f"{excess.text}; correct systems rarely differ as much"
        context = self._context
        untimed = [*context.samples(warmup=True), *late_stops]
        reasons = [pair_doubt(context.samples(), context.free_cores(), untimed)]
        reasons += [
            f"'{c.who}': {context.anomalies[c.id].text}"
            for c in context.cells
            if c.id in context.anomalies
        ]
        return "; ".join(filter(None, reasons))

    def _is_void(self, doubt: str) -> bool:
        """Whether the trial is to be repeated; a comparison has a limited number of repeats."""
        context = self._context
        rule = context.measure.rule
        limit = timing_anomalies.max_void_trials(rule.analyses, bool(context.pair.system.replica))
        if context.journal.void_trials(context.pair) >= limit:
            return False
        is_repeat = context.previous is not None and context.previous["void"]
        return bool(context.anomalies) or (bool(doubt) and rule.gives_verdicts and not is_repeat)
