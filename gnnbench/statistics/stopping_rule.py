"""When two systems differ: Student's t over pairs of fresh processes, looked at a few times.

The unit is a pair: two fresh processes, some rounds in turn. It gives one number, d, the median
over its rounds of log(reference / system). Rounds of one pair share two lives, with their layouts
of memory and their threads, and say nothing of other lives: only pairs are independent. Looking
after every pair and stopping once it seems clear would call equals different; so there are few
looks, fixed beforehand, that share the error between them (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gnnbench.statistics.estimates import Estimate, exponential, mean_interval, t_quantile

MIN_PAIRS = 5  # fewer give no verdict: t is too wide to say more than the noise allows
POWER = 0.8
MOST_NEEDED = 1000
MOST_ROUNDS = 12
VERDICTS = {
    "faster": "the interval lies wholly above 1 by more than the margin",
    "slower": "the interval lies wholly below 1 by more than the margin",
    "same": "the interval lies within +-3 % of 1",
    "unclear": "none of these; `pairs_needed` says how many pairs would tell",
}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """What pairs say of a ratio, reference over system: above 1 the system is faster.

    ``ratio``        geometric mean over pairs, its interval at the level of one look
    ``sd_pair``      standard deviation of d between pairs; NaN for a single one
    ``verdict``      of ``VERDICTS``; empty with too few pairs
    ``pairs_needed`` of an unclear ratio: how many pairs of this spread would tell, else None
    ``noise_floor``  largest difference that equals of this spread show, in 95 % of comparisons
    ``detectable``   smallest difference that would be called in 80 % of comparisons
    """

    ratio: Estimate
    sd_pair: float
    verdict: str
    pairs_needed: int | None
    noise_floor: float
    detectable: float


@dataclass(frozen=True)
class Rule:
    """``looks``: after how many pairs the ratio is looked at; ``alpha`` is shared among them.

    ``margin``: a difference up to it is called by nobody. ``same``: how near to 1 equals must be
    shown. ``target_half_width``: a ratio known so well is known well enough. All but ``alpha`` are
    relative.
    """

    looks: tuple[int, ...] = (5, 10)
    margin: float = 0.01
    same: float = 0.03
    target_half_width: float = 0.03
    alpha: float = 0.05

    @property
    def level(self) -> float:
        """Of the interval of one look."""
        return 1 - self.alpha / len(self.looks)

    @property
    def gives_verdicts(self) -> bool:
        """Whether it ever has enough pairs for one."""
        return self.looks[-1] >= MIN_PAIRS

    def judge(self, d: Sequence[float], sd_pair: float | None = None) -> Judgement:
        """Judge pairs by their ``d``; ``sd_pair``: a spread known better than from these."""
        n = len(d)
        found = mean_interval(d, self.level)
        if n < 2:
            nan = math.nan
            return Judgement(exponential(found) if n else found, nan, "", None, nan, nan)
        own = float(np.std(d, ddof=1))
        spread = own if sd_pair is None else sd_pair
        error = spread / math.sqrt(n)
        power = t_quantile(2 * POWER - 1, n - 1)  # one side alone
        reach = math.log1p(self.margin) + (t_quantile(self.level, n - 1) + power) * error
        verdict = self.called_by(found) if n >= max(MIN_PAIRS, self.looks[0]) else ""
        return Judgement(
            exponential(found), own, verdict,
            self._needed(found.value, own, n) if verdict == "unclear" else None,
            math.expm1(t_quantile(0.95, n - 1) * error), math.expm1(reach),
        )  # fmt: skip

    def called_by(self, found: Estimate) -> str:
        """The verdict of an interval of a ratio's logarithm."""
        margin, same = math.log1p(self.margin), math.log1p(self.same)
        if found.low > margin:
            return "faster"
        if found.high < -margin:
            return "slower"
        return "same" if -same <= found.low and found.high <= same else "unclear"

    def _needed(self, middle: float, spread: float, n: int) -> int | None:
        """Pairs after which the interval leaves the margin behind or lies near 1."""
        off = abs(middle)
        room = max(off - math.log1p(self.margin), math.log1p(self.same) - off)
        for more in range(n + 1, MOST_NEEDED + 1):
            if t_quantile(self.level, more - 1) * spread / math.sqrt(more) <= room:
                return more
        return None

    def stop(
        self, d: Sequence[float], elapsed_s: float = 0.0, pair_s: float = 0.0,
        budget_s: float = math.inf, compares: bool = True,
    ) -> str:  # fmt: skip
        """Why measuring is over, or "": ``called``, ``precise``, ``pairs`` (all) or ``budget``.

        ``pair_s`` is what one more pair takes; ``compares``: ``d`` are ratios, not times.
        """
        n = len(d)
        if n in self.looks:
            found = self.judge(d)
            if compares and found.verdict in ("faster", "slower"):
                return "called"
            half = (
                (math.log(found.ratio.high) - math.log(found.ratio.low)) / 2 if n > 1 else math.inf
            )
            if half <= math.log1p(self.target_half_width):
                return "precise"
        if n >= self.looks[-1]:
            return "pairs"
        return "budget" if n > 1 and elapsed_s + pair_s > budget_s else ""

    def called(self, d: Floats) -> npt.NDArray[np.bool_]:
        """Which of many comparisons end as ``faster`` or ``slower``; ``d`` [comparisons, pairs].

        The rule itself for all rows at once: looks in turn, each row up to where it stops.
        """
        called = np.zeros(len(d), dtype=bool)
        going = np.ones(len(d), dtype=bool)
        for look in self.looks:
            here = d[:, :look]
            half = t_quantile(self.level, look - 1) * here.std(axis=1, ddof=1) / math.sqrt(look)
            clear = np.abs(here.mean(axis=1)) - half > math.log1p(self.margin)
            clear &= look >= MIN_PAIRS
            called |= going & clear
            going &= ~clear & (half > math.log1p(self.target_half_width))
        return called


def even_rounds(life_s: float, round_s: float, s_life: float, s_round: float) -> int:
    """Rounds a pair, even, 2 to 12: what makes the variance of a ratio least for a given time.

    sqrt(cost of a life / cost of a round * s_round^2 / s_life^2) (Kalibera and Jones, *Rigorous
    benchmarking in reasonable time*, ISMM'13). Costs in seconds, spreads relative.
    """
    best = math.sqrt(life_s / max(round_s, 1e-9)) * s_round / max(s_life, 1e-9)
    return 2 * min(max(round(best / 2), 1), MOST_ROUNDS // 2)


def fitting_rounds(pairs: int, budget_s: float, life_s: float, round_s: float) -> int:
    """Most rounds a pair, even and at least 2, with which ``pairs`` pairs fit into a budget.

    ``life_s``: a pair up to its first measured round; the epoch that a pair has for its
    verification costs a round more. Fewer rounds are noisier, but too few pairs say nothing at all.
    """
    left = (budget_s / pairs - life_s) / max(round_s, 1e-9) - 1
    return 2 * int(min(max(left / 2, 1), MOST_ROUNDS // 2))
