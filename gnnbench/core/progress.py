"""Show progress on standard error: a bar on a terminal, lines elsewhere.

A run writes a line when a new step of the current pair begins, and at least once a minute. Other
work writes a line every ten seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gnnbench.core.terminal import console

LINE_EVERY_S, LINE_OF_OTHERS_S = 60.0, 10.0


class Display:
    """An observer of runs (``gnnbench.harness.pairing.Observer``); use as a context manager."""

    def __init__(self, quiet: bool, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._last_line_at = clock, clock()
        self._shown: set[str] = set()  # steps of the current pair that have a line
        self._total, self._run = 0, False
        self._console = console(stderr=True)
        self._quiet = quiet
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._pairs = 0
        if not quiet and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeRemainingColumn(),
            )
            self._progress = Progress(*columns, console=self._console, transient=True)

    def __enter__(self) -> Display:
        if self._progress is not None:
            self._progress.start()
            self._task = self._progress.add_task("starting", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def note(self, text: str) -> None:
        """Print a line unless quiet."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def plan(self, pairs: int, budget_s: float) -> None:
        """Set the length of the bar; only a run has a budget."""
        self._total, self._run = pairs, budget_s > 0
        self._shown.clear()
        self._update(total=max(pairs, 1))

    def step(self, text: str, fraction: float) -> None:
        """Move the bar within the current pair."""
        if self._progress is None:
            self._line(text, fraction)
        self._update(description=text, completed=self._pairs + fraction)

    def pair_done(self) -> None:
        """Move the bar to the next pair."""
        self._pairs += 1
        self._shown.clear()
        self._update(completed=self._pairs)

    def _line(self, text: str, fraction: float) -> None:
        begun, now = text.partition(":")[0], self._clock()
        every = LINE_EVERY_S if self._run else LINE_OF_OTHERS_S
        if (begun in self._shown or not self._run) and now - self._last_line_at < every:
            return
        part = f" ({fraction:.0%})" if fraction and begun in self._shown else ""
        self._shown.add(begun)
        self._last_line_at = now
        of = f"{self._pairs + 1} of {self._total}: " if self._total > self._pairs else ""
        self.note(f"{of if self._total > 1 else ''}{text}{part}")

    def _update(self, **changes: object) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **changes)  # type: ignore[arg-type]
