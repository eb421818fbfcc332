"""Verdicts on ratios: Student's t over pairs of fresh processes, with few interim analyses.

The unit is a pair: two fresh processes that alternate rounds. A pair gives one number, d, the
median over its rounds of log(reference / system). Rounds of a pair share two processes, with their
memory layouts and threads, and are correlated; only pairs are independent samples. A test after
every pair would often find a difference between equal systems. Therefore the interim analyses are
few and fixed beforehand, and share the error probability (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gnnbench.statistics.estimates import Estimate, exponential, mean_interval, t_quantile

MIN_PAIRS = 5  # for a verdict; intervals of fewer pairs are too wide
POWER = 0.8
MOST_NEEDED = 1000
MOST_ROUNDS = 12
VERDICTS = {
    "faster": "the whole interval is above 1 by more than the margin",
    "slower": "the whole interval is below 1 by more than the margin",
    "same": "the interval is within the equivalence bound of 1 (`same`, 3 % by default)",
    "unclear": "none of these; `pairs_needed` is the number of pairs that a verdict needs",
}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """A ratio (reference / system, above 1 the system is faster) and its verdict.

    ``ratio``        geometric mean over pairs, its interval at the level of one analysis
    ``sd_pair``      standard deviation of d between pairs; NaN for a single one
    ``verdict``      of ``VERDICTS``; empty with too few pairs
    ``pairs_needed`` for an unclear ratio: pairs of this spread that a verdict needs, else None
    ``noise_floor``  95 % bound of |ratio - 1| for equal systems with this spread and these pairs
    ``detectable``   smallest difference that gets a verdict in 80 % of comparisons
    """

    ratio: Estimate
    sd_pair: float
    verdict: str
    pairs_needed: int | None
    noise_floor: float
    detectable: float


@dataclass(frozen=True)
class Rule:
    """Stopping rule and verdicts.

    ``looks``: numbers of pairs after which the ratio is analysed. ``margin``: minimum effect; for
    ``faster`` or ``slower`` the interval is outside 1 +- margin. ``same``: equivalence bound; for
    ``same`` the interval is within 1 +- same. ``target_half_width``: measuring stops when the
    interval is this narrow. All are relative but ``looks`` and ``alpha``, the error probability of
    all analyses together.
    """

    looks: tuple[int, ...] = (5, 10)
    margin: float = 0.01
    same: float = 0.03
    target_half_width: float = 0.03
    alpha: float = 0.05

    @property
    def level(self) -> float:
        """Confidence level of the interval of one analysis."""
        return 1 - self.alpha / len(self.looks)

    @property
    def gives_verdicts(self) -> bool:
        """Whether it has enough pairs for a verdict."""
        return self.looks[-1] >= MIN_PAIRS

    def judge(self, d: Sequence[float], sd_pair: float | None = None) -> Judgement:
        """Judge pairs by their ``d``. ``sd_pair``: a better estimate of their spread, if known."""
        n = len(d)
        estimate = mean_interval(d, self.level)
        if n < 2:
            nan = math.nan
            return Judgement(exponential(estimate) if n else estimate, nan, "", None, nan, nan)
        own = float(np.std(d, ddof=1))
        spread = own if sd_pair is None else sd_pair
        error = spread / math.sqrt(n)
        power = t_quantile(2 * POWER - 1, n - 1)  # one-sided
        reach = math.log1p(self.margin) + (t_quantile(self.level, n - 1) + power) * error
        verdict = self.classify(estimate) if n >= max(MIN_PAIRS, self.looks[0]) else ""
        return Judgement(
            exponential(estimate), own, verdict,
            self._needed(estimate.value, own, n) if verdict == "unclear" else None,
            math.expm1(t_quantile(0.95, n - 1) * error), math.expm1(reach),
        )  # fmt: skip

    def classify(self, estimate: Estimate) -> str:
        """Return the verdict for an interval of a ratio's logarithm."""
        margin, same = math.log1p(self.margin), math.log1p(self.same)
        if estimate.low > margin:
            return "faster"
        if estimate.high < -margin:
            return "slower"
        return "same" if -same <= estimate.low and estimate.high <= same else "unclear"

    def _needed(self, middle: float, spread: float, n: int) -> int | None:
        """Return the number of pairs after which the interval allows a verdict."""
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
        """Return why measuring stops: ``called``, ``precise``, ``pairs`` (all), ``budget`` or "".

        ``pair_s`` is the duration of another pair. ``compares``: ``d`` are ratios, not times.
        """
        n = len(d)
        if n in self.looks:
            judgement = self.judge(d)
            if compares and judgement.verdict in ("faster", "slower"):
                return "called"
            ratio = judgement.ratio
            half = math.log(ratio.high / ratio.low) / 2 if n > 1 else math.inf
            if half <= math.log1p(self.target_half_width):
                return "precise"
        if n >= self.looks[-1]:
            return "pairs"
        return "budget" if n > 1 and elapsed_s + pair_s > budget_s else ""

    def rejects_equality(self, d: Floats) -> npt.NDArray[np.bool_]:
        """Return which comparisons end as ``faster`` or ``slower``; ``d`` [comparisons, pairs].

        Vectorised form of :meth:`stop` and :meth:`classify`: change them together.
        """
        rejected = np.zeros(len(d), dtype=bool)
        active = np.ones(len(d), dtype=bool)
        for look in self.looks:
            first = d[:, :look]
            half = t_quantile(self.level, look - 1) * first.std(axis=1, ddof=1) / math.sqrt(look)
            clear = np.abs(first.mean(axis=1)) - half > math.log1p(self.margin)
            clear &= look >= MIN_PAIRS
            rejected |= active & clear
            active &= ~clear & (half > math.log1p(self.target_half_width))
        return rejected


def even_rounds(process_s: float, round_s: float, s_life: float, s_round: float) -> int:
    """Return the rounds per pair (even, 2 to 12) that minimise a ratio's variance per time.

    sqrt(cost of a process / cost of a round * s_round^2 / s_life^2) (Kalibera and Jones, *Rigorous
    benchmarking in reasonable time*, ISMM'13). Costs in seconds, spreads relative.
    """
    best = math.sqrt(process_s / max(round_s, 1e-9)) * s_round / max(s_life, 1e-9)
    return 2 * min(max(round(best / 2), 1), MOST_ROUNDS // 2)


def fitting_rounds(pairs: int, budget_s: float, process_s: float, round_s: float) -> int:
    """Return the most rounds per pair (even, at least 2) with which ``pairs`` fit into a budget.

    ``process_s``: duration of a pair up to its first measured round. Its verification epoch costs
    one round more. Fewer rounds are noisier, but too few pairs give no verdict.
    """
    left = (budget_s / pairs - process_s) / max(round_s, 1e-9) - 1
    return 2 * int(min(max(left / 2, 1), MOST_ROUNDS // 2))
