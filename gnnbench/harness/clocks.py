"""Compare the worker's clock with the runner's own.

A worker reports how long its epoch was. What runs in the worker may change the clock that it reads,
or work on after the report. The runner records when it sent the command, when the end was reported
and when the worker was quiet: these enclose the epoch and two wake-ups, nothing else. Every time
that is judged is a part of the epoch.

A wake-up takes long where other programs use the cores. So run-queue delay is subtracted, and a
``_fault`` counts only when it repeats on a quiet machine (``gnnbench.harness.suspects``).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


def word_wait(sample: Record) -> float:
    """How long the runner and the worker waited for a core around an epoch (s).

    The worker's delay is also that of its own threads among each other, within the epoch. It counts
    as far as other programs used the cores, so that a system cannot hide work behind it.
    """
    return float(sample.get("runner_wait_s", 0.0)) + _by_others(sample, "worker_wait_s")


def quiet_wait(sample: Record) -> float:
    """How long threads of the worker waited for a core because of other programs (s)."""
    return _by_others(sample, "threads_wait_s")


def _by_others(sample: Record, key: str) -> float:
    return min(float(sample.get(key, 0.0)), max(float(sample.get("foreign_cpu_s", 0.0)), 0.0))


@dataclass(frozen=True)
class Around:
    """A time that encloses an epoch: ``key`` of a sample.

    An excess over the worker's own time is a fault above ``share`` of it and ``slack_s``, a doubt
    above ``doubt_share`` and ``doubt_slack_s`` (s). ``wait`` of a sample is not an excess (s).
    """

    key: str
    share: float
    slack_s: float
    doubt_share: float
    doubt_slack_s: float
    wait: Callable[[Record], float]

    def gaps(self, samples: Sequence[Record]) -> tuple[list[float], float]:
        """By how much it exceeds the worker's time, ascending, and its own median; seconds.

        Waiting for a core makes no excess negative. Samples without this time are left out.
        """
        known = [s for s in samples if s.get(self.key)]
        usual = statistics.median(s[self.key] for s in known) if known else 0.0
        return sorted(self._gap(s) for s in known), usual

    def _gap(self, sample: Record) -> float:
        gap = float(sample[self.key] - sample["wall_s"])
        return max(gap - self.wait(sample), min(gap, 0.0))

    def exceeds(self, gaps: Sequence[float], usual: float) -> bool:
        """Whether three quarters of the epochs do: on a busy machine single ones do by chance."""
        return bool(gaps) and gaps[len(gaps) // 4] > max(self.share * usual, self.slack_s)

    def doubt(self, samples: Sequence[Record]) -> tuple[float, float] | None:
        """The median gap and the median time where that may be chance or not."""
        gaps, usual = self.gaps(samples)
        gap = statistics.median(gaps) if gaps else 0.0
        return (gap, usual) if gap > max(self.doubt_share * usual, self.doubt_slack_s) else None


# A thread of Python may delay the report of the end.
WORD = Around("parent_s", 0.02, 0.018, 0.02, 0.004, word_wait)
# Threads that spin after their last work.
QUIET = Around("outer_s", 0.1, 0.05, 0.05, 0.03, quiet_wait)


def parent_fault(samples: Sequence[Record]) -> str:
    """Whether the worker reports other times than have passed, over the measured epochs."""
    gaps, usual = WORD.gaps(samples)
    less = bool(gaps) and gaps[-1 - len(gaps) // 4] < -WORD.share * usual
    if not less and not WORD.exceeds(gaps, usual):
        return ""
    told = statistics.median(s["wall_s"] for s in samples)
    return (
        f"its epochs took {usual:.3g} s by the runner's clock where it tells {told:.3g} s: its"
        " clock is not right"
    )


def parent_doubt(samples: Sequence[Record]) -> str:
    """Like ``parent_fault``, of a difference that may be chance."""
    if (found := WORD.doubt(samples)) is None:
        return ""
    return f"its epochs were {found[0]:.3g} s of {found[1]:.3g} s longer by the runner's clock"


def quiet_fault(samples: Sequence[Record]) -> str:
    """Whether work went on when the epoch had ended, over the measured epochs."""
    gaps, outer = QUIET.gaps(samples)
    if not QUIET.exceeds(gaps, outer):
        return ""
    return (
        f"its epochs took {outer:.3g} s until all was quiet, {statistics.median(gaps):.3g} s more"
        " than they lasted: work goes on after they have ended"
    )


def quiet_doubt(samples: Sequence[Record]) -> str:
    """Like ``quiet_fault``, of a difference that may be chance."""
    if (found := QUIET.doubt(samples)) is None:
        return ""
    return f"its epochs were quiet {found[0]:.3g} s of {found[1]:.3g} s after they had ended"
