"""State that the steps of one trial share: its pair, journal and settings, and how a cell fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness.failures import Failure
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.timing_anomalies import TimingAnomaly
from gnnbench.measure import machine
from gnnbench.schema.samples import EpochSample
from gnnbench.statistics.work_class import drawn_class

T = TypeVar("T")
ShowProgress = Callable[[Cell, str, float], None]


class CellFailed(Exception):
    """A cell of the pair failed; the journal has the failure."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell.id)
        self.cell = cell


@dataclass
class TrialContext:
    """The ``number``-th trial of ``pair``.

    ``checks_s`` has the seconds that checks took, by check. ``anomalies`` are timing anomalies of
    this trial, by cell id. ``thorough``: phases are run one by one, and fresh seeds are rechecked
    in full. This holds for the first trial of a pair, and for one after an anomaly.
    """

    pair: CellPair
    number: int
    journal: RunJournal
    measure: MeasureLimits
    shared_cache: SharedMemoryCache
    show_progress: ShowProgress
    checks_s: dict[str, float] = field(default_factory=dict)
    anomalies: dict[str, TimingAnomaly] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.previous = self.journal.last_trial(self.pair)
        repeats_anomaly = bool(self.previous and self.previous.get("suspects"))
        is_first = not self.journal.trials(self.pair)
        self.thorough = is_first or repeats_anomaly

    @property
    def cells(self) -> list[Cell]:
        """The reference, if there is one, and the system."""
        return [c for c in (self.pair.reference, self.pair.system) if c is not None]

    @property
    def work_class(self) -> str:
        """How the gate's results of both sides compare (``work_class.drawn_class``)."""
        return drawn_class(*(self.journal.reports[c.id]["check"] for c in self.cells))

    def samples(self, warmup: bool = False) -> list[EpochSample]:
        """Return measured epochs, or the warm-ups, of both sides of this trial."""
        return [
            s
            for s in self.journal.samples
            if s.pair == self.pair.id and s.life == self.number and s.warmup == warmup
        ]

    def samples_of(self, cell: Cell) -> list[EpochSample]:
        """Return the measured epochs of one side."""
        return [s for s in self.samples() if s.id == cell.id]

    def free_cores(self, *cells: Cell) -> int:
        """Return the number of cores that no thread of these cells' workers needs."""
        threads = max(machine.resolve_threads(c.threads) for c in cells or self.cells)
        return max(machine.usable_cores() - threads, 0)

    @contextmanager
    def timing(self, check: str) -> Iterator[None]:
        """Add the duration of a check to ``checks_s``."""
        began = time.monotonic()
        yield
        self.checks_s[check] = self.checks_s.get(check, 0.0) + time.monotonic() - began

    def report_once(self, cell: Cell, report: Mapping[str, object]) -> None:
        """EpochSample what the first trial reports about a cell; later ones add new keys only."""
        if not report.keys() <= self.journal.reports.get(cell.id, {}).keys():
            self.journal.record("report", cell=cell.id, report=dict(report))

    def attempt(self, cell: Cell, action: Callable[[], T]) -> T:
        """Return the result of ``action``; if the worker fails, the cell fails."""
        try:
            return action()
        except WorkerFailed as failed:
            self.fail(cell, failed.failure)
            raise AssertionError from failed

    def fail(self, cell: Cell, failure: Failure) -> None:
        """EpochSample a failure and raise ``CellFailed``."""
        self.journal.fail(cell, failure)
        raise CellFailed(cell)

    def fail_if(self, cell: Cell, fault: str) -> None:
        """Fail a cell as ``incorrect`` if ``fault`` is not empty."""
        if fault:
            self.fail(cell, Failure("incorrect", fault))
