"""When a measurement has enough rounds.

The idea of an explicit criterion object is NVBench's; the rule is the interval of the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnnbench.measure.stats import median_interval


@dataclass(frozen=True)
class Decision:
    """``stop`` and why: ``precise``, ``budget``, ``max_rounds`` or, when going on, ``""``.

    ``half_width`` is the widest relative half-width of the 95 % interval among the series.
    """

    stop: bool
    why: str
    half_width: float


@dataclass(frozen=True)
class StoppingRule:
    """Stop when the medians are precise enough, the time is spent or the rounds are used up.

    Never before ``min_rounds``; never after ``max_rounds``. ``time_budget_s`` ends a pair before
    the round that would overrun it. ``target_half_width`` is relative (0.02: +-2 %).
    """

    min_rounds: int = 3
    max_rounds: int = 30
    target_half_width: float = 0.02
    time_budget_s: float = 60.0

    def __post_init__(self) -> None:
        if not 1 <= self.min_rounds <= self.max_rounds:
            raise ValueError("stopping needs 1 <= min_rounds <= max_rounds")

    def decide(
        self, series: Sequence[Sequence[float]], elapsed_s: float, round_s: float | None = None
    ) -> Decision:
        """Judge after a full round.

        ``series`` holds the judged times of each worker so far (s), one value per round;
        ``elapsed_s`` is the time spent on the pair, warm-up included; ``round_s`` what a round
        takes where that is more than its judged times.
        """
        rounds = min((len(s) for s in series), default=0)
        half_width = max((median_interval(s).relative_half_width for s in series), default=0.0)
        if rounds < self.min_rounds:
            return Decision(False, "", half_width)
        if half_width <= self.target_half_width:
            return Decision(True, "precise", half_width)
        if rounds >= self.max_rounds:
            return Decision(True, "max_rounds", half_width)
        if round_s is None:
            round_s = sum(sum(s) / len(s) for s in series)
        if elapsed_s + round_s > self.time_budget_s:
            return Decision(True, "budget", half_width)
        return Decision(False, "", half_width)
