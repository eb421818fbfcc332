"""Compare the worker's clock with the harness's own.

A worker reports how long its epoch was. Code that runs in the worker may change the clock that it
reads, or work on after the report. The harness records when it sent the command, when the end was
reported and when the worker was idle: these times enclose the epoch and two wake-ups, nothing else.

A wake-up takes long where other programs use the cores. So run-queue delay is subtracted, and a
``_fault`` counts only when it repeats on an idle machine (``gnnbench.harness.timing_anomalies``).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnbench.schema.samples import EpochSample


def report_delay_s(sample: EpochSample) -> float:
    """Return how long the harness and the worker waited for a core around an epoch (s).

    The worker's delay includes that of its own threads among each other, within the epoch. It
    counts as far as other programs used the cores, so that a system cannot hide work behind it.
    """
    return sample.runner_wait_s + _due_to_others(sample, sample.worker_wait_s)


def threads_delay_s(sample: EpochSample) -> float:
    """Return how long threads of the worker waited for a core because of other programs (s)."""
    return _due_to_others(sample, sample.threads_wait_s)


def _due_to_others(sample: EpochSample, wait_s: float) -> float:
    return min(wait_s, max(sample.foreign_cpu_s or 0.0, 0.0))


@dataclass(frozen=True)
class EnclosingTime:
    """A time that encloses an epoch: ``value`` of a sample (s), None where it is unknown.

    An excess over the worker's own time is a fault above ``share`` of it and ``slack_s``, a doubt
    above ``doubt_share`` and ``doubt_slack_s`` (s). ``delay`` of a sample (s) is subtracted.
    """

    value: Callable[[EpochSample], float | None]
    share: float
    slack_s: float
    doubt_share: float
    doubt_slack_s: float
    delay: Callable[[EpochSample], float]

    def gaps(self, samples: Sequence[EpochSample]) -> tuple[list[float], float]:
        """Return its excesses over the worker's time, ascending, and its own median; seconds.

        Waiting for a core makes no excess negative. Samples without this time are left out.
        """
        known = [(s, seconds) for s in samples if (seconds := self.value(s))]
        median = statistics.median(seconds for _, seconds in known) if known else 0.0
        return sorted(self._gap(s, seconds) for s, seconds in known), median

    def _gap(self, sample: EpochSample, seconds: float) -> float:
        gap = seconds - sample.wall_s
        return max(gap - self.delay(sample), min(gap, 0.0))

    def exceeds(self, gaps: Sequence[float], median: float) -> bool:
        """Return whether three quarters of the epochs exceed the limit; on a busy machine single
        ones may.
        """
        return bool(gaps) and gaps[len(gaps) // 4] > max(self.share * median, self.slack_s)

    def doubt(self, samples: Sequence[EpochSample]) -> tuple[float, float] | None:
        """Return the median excess and the median time where the excess may be random."""
        gaps, median = self.gaps(samples)
        gap = statistics.median(gaps) if gaps else 0.0
        return (gap, median) if gap > max(self.doubt_share * median, self.doubt_slack_s) else None


# A thread of Python may delay the report of the end.
REPORTED_END = EnclosingTime(lambda s: s.parent_s, 0.02, 0.018, 0.02, 0.004, report_delay_s)
# Threads may spin after their last work.
QUIESCENCE = EnclosingTime(lambda s: s.outer_s, 0.1, 0.05, 0.05, 0.03, threads_delay_s)


def parent_fault(samples: Sequence[EpochSample]) -> str:
    """Return how the worker's reported times differ from the harness's clock, or ""."""
    gaps, median = REPORTED_END.gaps(samples)
    shorter = bool(gaps) and gaps[-1 - len(gaps) // 4] < -REPORTED_END.share * median
    if not shorter and not REPORTED_END.exceeds(gaps, median):
        return ""
    reported = statistics.median(s.wall_s for s in samples)
    return (
        f"its epochs took {median:.3g} s by the harness's clock where it reports {reported:.3g} s:"
        " its clock is wrong"
    )


def parent_doubt(samples: Sequence[EpochSample]) -> str:
    """Return a difference as of ``parent_fault`` that may be random, or ""."""
    if (excess := REPORTED_END.doubt(samples)) is None:
        return ""
    return f"its epochs were {excess[0]:.3g} s of {excess[1]:.3g} s longer by the harness's clock"


def quiescence_fault(samples: Sequence[EpochSample]) -> str:
    """Return how long work went on after the measured epochs had ended, or ""."""
    gaps, outer = QUIESCENCE.gaps(samples)
    if not QUIESCENCE.exceeds(gaps, outer):
        return ""
    return (
        f"its epochs took {outer:.3g} s until all threads were idle, {statistics.median(gaps):.3g}"
        " s more than they lasted: work goes on after they have ended"
    )


def quiescence_doubt(samples: Sequence[EpochSample]) -> str:
    """Return a difference as of ``quiescence_fault`` that may be random, or ""."""
    if (excess := QUIESCENCE.doubt(samples)) is None:
        return ""
    return f"its epochs were idle {excess[0]:.3g} s of {excess[1]:.3g} s after they had ended"
