"""Prior of the variance between pairs, for moderated t intervals.

Two or three pairs estimate their own variance badly. Comparisons on one kind of device resemble
each other, so each borrows from the others: its variance is assumed to be a scaled inverse
chi-square around a center that follows the noise of its own rounds (Smyth, *Linear models and
empirical Bayes methods*, Stat. Appl. Genet. Mol. Biol. 3 (2004), sections 3 and 6.2; Law et al.,
*voom*, Genome Biol. 15 (2014), for a center that follows a covariate).
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import digamma, fdtrc, polygamma

Floats = npt.NDArray[np.float64]
COMMITTED = Path(__file__).with_name("variance_priors.json")
MIN_VARIANCES = 10  # fewer do not determine a prior
SMALLEST = 1e-10  # of a variance: a clock's resolution, so that logarithms are finite
MOST_DEGREES = 30.0
# A new comparison may be unlike those of the fit. These two values are the weakest that keep the
# coverage of the noisiest tenth of simulated comparisons at 94 % (``simulation``).
SHARE_OF_DEGREES = 0.5  # of the fitted degrees
NOISY_TAIL = 0.4  # comparisons whose variance is among this share of the largest trust it less
# Variance of the median of n normal values / variance of their mean; pi / 2 for large n.
MEDIAN_VARIANCE = {1: 1.0, 2: 1.0, 4: 1.193, 6: 1.288, 8: 1.346, 10: 1.383, 12: 1.410}


def median_variance(n: int) -> float:
    """Return the variance of the median of ``n`` normal values of variance 1."""
    return MEDIAN_VARIANCE.get(n, math.pi / 2) / n


@dataclass(frozen=True)
class PairVariance:
    """The variances of one comparison.

    ``between``: variance of the log ratio between pairs, with ``degrees`` degrees of freedom.
    ``rounds``: the part of it that the noise of the rounds explains: the variance of the median of
    a pair's rounds. ``group``: the run; comparisons of a run may share disturbances.
    """

    between: float
    degrees: int
    rounds: float
    group: str = ""


@dataclass(frozen=True)
class VariancePrior:
    """Scaled inverse chi-square with ``degrees`` around exp(``intercept``) * rounds ** ``slope``.

    ``variances``: how many comparisons it was fitted to. ``source``: where they are from.
    """

    degrees: float
    intercept: float
    slope: float
    variances: int
    source: str = ""

    def center(self, rounds: Floats) -> Floats:
        """Return the prior's variance between pairs, given the variance that rounds explain."""
        logs = np.log(np.maximum(rounds, SMALLEST))
        return np.asarray(np.exp(self.intercept + self.slope * logs), dtype=np.float64)

    def moderate(self, between: Floats, degrees: int, rounds: Floats) -> tuple[Floats, Floats]:
        """Return posterior variances and their degrees of freedom (Smyth 2004, section 3).

        The prior counts less for a comparison that is noisier than it expects (after Phipson et
        al., *Robust hyperparameter estimation*, Ann. Appl. Stat. 10 (2016)): its degrees shrink
        with the probability of a variance as large as ``between``.
        """
        center = self.center(rounds)
        tail = fdtrc(degrees, self.degrees, between / center)
        own = self.degrees * np.minimum(tail / NOISY_TAIL, 1.0)
        total = own + degrees
        return (own * center + degrees * between) / total, total


def fit(variances: Sequence[PairVariance], source: str = "") -> VariancePrior:
    """Fit a prior by weighted least squares of log variances and by their excess spread.

    Its degrees of freedom are the least of the fits that leave one group out, so that no single run
    makes the prior stronger than the others allow. Raises ``ValueError`` for fewer than
    ``MIN_VARIANCES`` variances.
    """
    if len(variances) < MIN_VARIANCES:
        raise ValueError(f"{len(variances)} variances do not determine a prior")
    groups = {v.group for v in variances}
    kept = [[v for v in variances if v.group != group] for group in groups]
    fits = [_degrees_and_line(part)[0] for part in kept if len(part) >= MIN_VARIANCES]
    degrees, intercept, slope = _degrees_and_line(variances)
    degrees = min([degrees, *fits])
    # The line goes through the mean of log variances, which lies above the log of the center.
    intercept += float(digamma(degrees / 2)) - math.log(degrees / 2)
    return VariancePrior(SHARE_OF_DEGREES * degrees, intercept, slope, len(variances), source)


def _degrees_and_line(variances: Sequence[PairVariance]) -> tuple[float, float, float]:
    """Return the degrees of freedom, and intercept and slope of the mean log variance."""
    between = np.array([max(v.between, SMALLEST) for v in variances])
    half = np.array([v.degrees / 2 for v in variances])
    rounds = np.array([max(v.rounds, SMALLEST) for v in variances])
    logs = np.log(between) - digamma(half) + np.log(half)  # unbiased for the log of the variance
    chance = polygamma(1, half)
    weights = 1 / (chance + 0.5)
    design = np.column_stack([np.ones_like(logs), np.log(rounds)])
    root = np.sqrt(weights)
    (intercept, slope), *_ = np.linalg.lstsq(design * root[:, None], logs * root, rcond=None)
    residuals = logs - design @ [intercept, slope]
    spread = np.average(residuals**2, weights=weights) * len(logs) / (len(logs) - 2)
    excess = float(spread - np.average(chance, weights=weights))
    return _degrees(excess), float(intercept), float(slope)


def _degrees(excess: float) -> float:
    """Return d0 with trigamma(d0 / 2) = ``excess`` (Smyth 2004, section 6.2), at most 30."""
    if excess <= polygamma(1, MOST_DEGREES / 2):
        return MOST_DEGREES
    return float(2 * brentq(lambda half: polygamma(1, half) - excess, 1e-3, MOST_DEGREES / 2))


def committed_variances(cells: pd.DataFrame, group: str) -> list[PairVariance]:
    """Return the variances of the comparisons in a ``cells.csv``."""
    rows = cells.query("pairs >= 2 and rounds >= 2 * pairs and sd_pair > 0 and sd_round >= 0")
    pairs = rows["pairs"].astype(int)
    per_pair = (rows["rounds"] / pairs).round().astype(int)
    explained = rows["sd_round"] ** 2 * per_pair.map(median_variance)
    return [
        PairVariance(between, degrees, own, group)
        for between, degrees, own in zip(
            (rows["sd_pair"] ** 2).tolist(), (pairs - 1).tolist(), explained.tolist(), strict=True
        )
    ]


@functools.cache
def committed() -> dict[str, VariancePrior]:
    """Return the priors of gnnbench's reference runs, by type of device."""
    return {k: VariancePrior(**v) for k, v in json.loads(COMMITTED.read_text()).items()}


def fit_runs(folders: Iterable[Path], source: str) -> dict[str, VariancePrior]:
    """Fit a prior for each type of device to the ``cells.csv`` of runs."""
    by_device: dict[str, list[PairVariance]] = {}
    for folder in folders:
        cells = pd.read_csv(folder / "cells.csv", low_memory=False)
        if {"sd_pair", "sd_round", "device"} <= set(cells.columns):
            for device, rows in cells.groupby("device"):
                by_device.setdefault(str(device), []).extend(committed_variances(rows, str(folder)))
    return {d: fit(v, source) for d, v in sorted(by_device.items()) if len(v) >= MIN_VARIANCES}


if __name__ == "__main__":  # python -m gnnbench.statistics.variance_prior results/reference
    runs = sorted(path.parent for path in Path(sys.argv[1]).rglob("cells.csv"))
    fitted = fit_runs(runs, f"{len(runs)} runs in {sys.argv[1]}")
    print(json.dumps({device: asdict(prior) for device, prior in fitted.items()}, indent=1))
