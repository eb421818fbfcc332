"""Verdicts on ratios: a moderated t over pairs of fresh processes, with few interim analyses.

The unit is a pair: two fresh processes that alternate rounds. A pair gives one number, d, the
median over its rounds of log(reference / system). Rounds of a pair share two processes, with their
memory layouts and threads, and are correlated; only pairs are independent samples. Few pairs say
little of their own variance, so it is moderated by a prior (``variance_prior``). A test after every
pair would often find a difference between equal systems. Therefore the interim analyses are few and
fixed beforehand, and share the error probability (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from gnnbench.statistics.estimates import NOTHING, Estimate, exponential, t_quantile
from gnnbench.statistics.variance_prior import VariancePrior, median_variance

MIN_PAIRS = 3  # for a verdict; fewer cannot show that a difference is repeated
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
    ``p_value``      probability of a ratio this far beyond the margin if the true one is within it,
                     for all interim analyses together; NaN without an interval
    """

    ratio: Estimate
    sd_pair: float
    verdict: str
    pairs_needed: int | None
    noise_floor: float
    detectable: float
    p_value: float


@dataclass(frozen=True)
class Spread:
    """Mean of d over ``n`` pairs, and its standard error with ``degrees`` degrees of freedom."""

    mean: float
    error: float
    degrees: float
    n: int

    def interval(self, level: float) -> Estimate:
        """Return the interval of the mean at a confidence level."""
        half = t_quantile(level, self.degrees) * self.error
        return Estimate(self.mean, self.mean - half, self.mean + half, self.n)


def spread_of(trials: Sequence[Sequence[float]], prior: VariancePrior | None = None) -> Spread:
    """Return the spread of at least two pairs; ``trials`` are the log ratios of their rounds.

    The prior needs the noise of the rounds. Without it, or without two rounds in a pair, the
    variance of d alone counts (Student's t).
    """
    d = [float(np.median(trial)) for trial in trials]
    variance, degrees = float(np.var(d, ddof=1)), float(len(d) - 1)
    if prior is not None and (rounds := round_variance(trials)) is not None:
        moderated = prior.moderate(np.asarray(variance), len(d) - 1, np.asarray(rounds))
        variance, degrees = float(moderated[0]), float(moderated[1])
    return Spread(float(np.mean(d)), math.sqrt(variance / len(d)), degrees, len(d))


def round_variance(trials: Sequence[Sequence[float]]) -> float | None:
    """Return the variance of d that the noise of the rounds explains; None without two rounds."""
    each = [np.var(t, ddof=1) * median_variance(len(t)) for t in trials if len(t) > 1]
    return float(np.mean(each)) if each else None


@dataclass(frozen=True)
class Rule:
    """Stopping rule and verdicts.

    ``analyses``: after how many pairs the ratio is analysed. ``margin``: minimum effect; for
    ``faster`` or ``slower`` the interval is outside 1 +- margin. ``same``: equivalence bound; for
    ``same`` the interval is within 1 +- same. ``target_half_width``: measuring stops when the
    interval is this narrow. All are relative but ``analyses`` and ``alpha``, the error probability
    of all analyses together.
    """

    analyses: tuple[int, ...] = (3, 5, 10)
    margin: float = 0.01
    same: float = 0.03
    target_half_width: float = 0.03
    alpha: float = 0.05

    @property
    def level(self) -> float:
        """Confidence level of the interval of one analysis."""
        return 1 - self.alpha / len(self.analyses)

    @property
    def gives_verdicts(self) -> bool:
        """Whether it has enough pairs for a verdict."""
        return self.analyses[-1] >= MIN_PAIRS

    def judge(
        self, trials: Sequence[Sequence[float]], prior: VariancePrior | None = None,
        sd_pair: float | None = None,
    ) -> Judgement:  # fmt: skip
        """Judge pairs by the log ratios of their rounds.

        ``prior`` moderates their variance. ``sd_pair``: their standard deviation as the machine's
        calibration has it, for ``noise_floor`` and ``detectable``.
        """
        n, nan = len(trials), math.nan
        if n < 2:
            only = Estimate(float(np.median(trials[0])), nan, nan, 1) if n else NOTHING
            return Judgement(exponential(only) if n else only, nan, "", None, nan, nan, nan)
        spread = spread_of(trials, prior)
        estimate = spread.interval(self.level)
        error = spread.error if sd_pair is None else sd_pair / math.sqrt(n)
        power = t_quantile(2 * POWER - 1, spread.degrees)  # one-sided
        reach = math.log1p(self.margin) + (t_quantile(self.level, spread.degrees) + power) * error
        verdict = self.classify(estimate) if n >= max(MIN_PAIRS, self.analyses[0]) else ""
        return Judgement(
            exponential(estimate), float(np.std([np.median(t) for t in trials], ddof=1)), verdict,
            self._needed(spread) if verdict == "unclear" else None,
            math.expm1(t_quantile(0.95, spread.degrees) * error), math.expm1(reach),
            self.p_value(spread),
        )  # fmt: skip

    def p_value(self, spread: Spread) -> float:
        """Return the two-sided p-value of a ratio within the margin, over all analyses."""
        beyond = abs(spread.mean) - math.log1p(self.margin)
        if beyond <= 0:
            return 1.0
        if spread.error == 0:
            return 0.0
        tail = float(stdtr(spread.degrees, -beyond / spread.error))
        return min(2 * tail * len(self.analyses), 1.0)

    def classify(self, estimate: Estimate) -> str:
        """Return the verdict for an interval of a ratio's logarithm."""
        margin, same = math.log1p(self.margin), math.log1p(self.same)
        if estimate.low > margin:
            return "faster"
        if estimate.high < -margin:
            return "slower"
        return "same" if -same <= estimate.low and estimate.high <= same else "unclear"

    def _needed(self, spread: Spread) -> int | None:
        """Return the number of pairs after which the interval allows a verdict."""
        off = abs(spread.mean)
        room = max(off - math.log1p(self.margin), math.log1p(self.same) - off)
        sd = spread.error * math.sqrt(spread.n)
        for more in range(spread.n + 1, MOST_NEEDED + 1):
            degrees = spread.degrees + more - spread.n
            if t_quantile(self.level, degrees) * sd / math.sqrt(more) <= room:
                return more
        return None

    def stop(
        self, trials: Sequence[Sequence[float]], prior: VariancePrior | None = None,
        elapsed_s: float = 0.0, pair_s: float = 0.0, budget_s: float = math.inf,
        compares: bool = True,
    ) -> str:  # fmt: skip
        """Return why measuring stops: ``called``, ``precise``, ``pairs`` (all), ``budget`` or "".

        ``pair_s`` is the duration of another pair. ``compares``: ``trials`` are log ratios, not
        logarithms of times.
        """
        n = len(trials)
        if n in self.analyses and n > 1:
            estimate = spread_of(trials, prior).interval(self.level)
            decided = self.classify(estimate) in ("faster", "slower")
            if compares and n >= MIN_PAIRS and decided:
                return "called"
            if (estimate.high - estimate.low) / 2 <= math.log1p(self.target_half_width):
                return "precise"
        if n >= self.analyses[-1]:
            return "pairs"
        return "budget" if n > 1 and elapsed_s + pair_s > budget_s else ""

    def rejects_equality(
        self, d: Floats, rounds: Floats | None = None, prior: VariancePrior | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return which comparisons end as ``faster`` or ``slower``; arguments as of `ends`."""
        return self.ends(d, rounds, prior).rejected

    def ends(
        self, d: Floats, rounds: Floats | None = None, prior: VariancePrior | None = None
    ) -> Ends:
        """Return how comparisons end.

        ``d`` and ``rounds`` [comparisons, pairs]: values of pairs, and the variance of each that
        the noise of its rounds explains (:func:`round_variance`). Vectorised form of :meth:`stop`
        and :meth:`classify`: change them together.
        """
        size = len(d)
        ends = Ends(np.zeros(size, bool), np.zeros(size), np.zeros(size), np.zeros(size, int))
        active = np.ones(size, dtype=bool)
        for n in self.analyses:
            middle, error, degrees = spreads(d[:, :n], rounds, prior)
            half = stdtrit(degrees, (1 + self.level) / 2) * error
            clear = np.abs(middle) - half > math.log1p(self.margin)
            clear &= n >= MIN_PAIRS
            ends.rejected[active & clear] = True
            ends.middle[active], ends.half[active], ends.pairs[active] = (
                middle[active], half[active], n,
            )  # fmt: skip
            active &= ~clear & (half > math.log1p(self.target_half_width))
        return ends


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for as many tests (Holm, Scand. J. Stat. 6 (1979)).

    The probability that any of the adjusted ones is below a level by chance is at most that level.
    """
    order = sorted(range(len(p_values)), key=lambda nth: p_values[nth])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, nth in enumerate(order):
        largest = max(largest, min(p_values[nth] * (len(p_values) - rank), 1.0))
        adjusted[nth] = largest
    return adjusted


@dataclass(frozen=True)
class Ends:
    """How comparisons end: each field has one element per comparison.

    ``rejected``: faster or slower. ``middle``, ``half``: mean of d and half of its interval at the
    last analysis, which had ``pairs`` pairs.
    """

    rejected: npt.NDArray[np.bool_]
    middle: Floats
    half: Floats
    pairs: npt.NDArray[np.int_]


def spreads(
    d: Floats, rounds: Floats | None, prior: VariancePrior | None
) -> tuple[Floats, Floats, Floats]:
    """Return means, standard errors and degrees of freedom of comparisons: ``spread_of`` by row."""
    n = d.shape[1]
    variance, degrees = d.var(axis=1, ddof=1), np.full(len(d), n - 1.0)
    if prior is not None and rounds is not None:
        variance, degrees = prior.moderate(variance, n - 1, rounds[:, :n].mean(axis=1))
    return d.mean(axis=1), np.sqrt(variance / n), degrees


def even_rounds(process_s: float, round_s: float, s_life: float, s_round: float) -> int:
    """Return the rounds per pair (even, 2 to 12) that minimise a ratio's variance per time.

    sqrt(cost of a process / cost of a round * s_round^2 / s_life^2) (Kalibera and Jones, *Rigorous
    benchmarking in reasonable time*, ISMM'13). Costs in seconds, spreads relative.
    """
    best = math.sqrt(process_s / max(round_s, 1e-9)) * s_round / max(s_life, 1e-9)
    return 2 * min(max(round(best / 2), 1), MOST_ROUNDS // 2)


def fitting_rounds(pairs: int, budget_s: float, process_s: float, round_s: float) -> int:
    """Return the most rounds per pair (even, at least 2) with which ``pairs`` fit into a budget.

    ``process_s``: duration of a pair up to its first measured round. Fewer rounds are noisier, but
    too few pairs give no verdict.
    """
    left = (budget_s / pairs - process_s) / max(round_s, 1e-9)
    return 2 * int(min(max(left / 2, 1), MOST_ROUNDS // 2))
