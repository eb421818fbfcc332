"""Progress on standard error while a run goes on; silent where that is not a terminal."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Display:
    """An observer of runs (``gnnbench.runner.pairing.Observer``); use as a context manager."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._quiet = quiet
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._pairs = 0
        if not quiet and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
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
        """Set the length of the bar."""
        self._update(total=max(pairs, 1))

    def step(self, text: str, fraction: float) -> None:
        """Move the bar within the current pair."""
        self._update(description=text, completed=self._pairs + fraction)

    def pair_done(self) -> None:
        """Move the bar to the next pair."""
        self._pairs += 1
        self._update(completed=self._pairs)

    def _update(self, **changes: object) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **changes)  # type: ignore[arg-type]
