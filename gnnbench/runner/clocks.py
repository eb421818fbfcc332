"""The worker's clock held against the runner's own.

A worker tells how long its epoch was, and what runs in it may bend the clock that it tells this by,
or go on when it has told. The runner notes when it gave the command, when the word of its end came
and when all was quiet: between these lies the epoch and some waking up, nothing else. Every time
that is judged is one of the epoch's parts.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Around:
    """A time of the runner's around an epoch: ``key`` of a sample.

    What it exceeds the worker's own by is a fault above ``share`` of it and ``slack_s``, a doubt
    above ``doubt_share`` and ``doubt_slack_s``; seconds.
    """

    key: str
    share: float
    slack_s: float
    doubt_share: float
    doubt_slack_s: float

    def gaps(self, samples: Sequence[Record]) -> tuple[list[float], float]:
        """By how much it exceeds the worker's time, ascending, and its own median; seconds.

        Samples of runs that did not note it are left out.
        """
        known = [s for s in samples if s.get(self.key)]
        usual = statistics.median(s[self.key] for s in known) if known else 0.0
        return sorted(s[self.key] - s["wall_s"] for s in known), usual

    def exceeds(self, gaps: Sequence[float], usual: float) -> bool:
        """Whether three quarters of the epochs do: on a busy machine single ones do by chance."""
        return bool(gaps) and gaps[len(gaps) // 4] > max(self.share * usual, self.slack_s)

    def doubt(self, samples: Sequence[Record]) -> tuple[float, float] | None:
        """The median gap and the median time where that may be chance or not."""
        gaps, usual = self.gaps(samples)
        gap = statistics.median(gaps) if gaps else 0.0
        return (gap, usual) if gap > max(self.doubt_share * usual, self.doubt_slack_s) else None


# A busy machine, or a thread of Python that keeps the word of the end waiting.
WORD = Around("parent_s", 0.02, 0.018, 0.02, 0.004)
# Waking up, and spinning threads that wait for a core.
QUIET = Around("outer_s", 0.1, 0.05, 0.05, 0.03)


def parent_fault(samples: Sequence[Record]) -> str:
    """Whether the worker tells other times than have passed, over the measured epochs."""
    gaps, usual = WORD.gaps(samples)
    less = bool(gaps) and gaps[-1 - len(gaps) // 4] < -WORD.share * usual
    if not less and not WORD.exceeds(gaps, usual):
        return ""
    told = usual - statistics.median(gaps)
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
