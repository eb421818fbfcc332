"""Exact tests of repeated draws: counts with known probabilities, and independence of two draws.

``log_evidence`` is the logarithm of a mixture of Dirichlet-multinomial likelihoods divided by the
likelihood under the stated probabilities. Its mean under these is 1, so it exceeds 1 / a with a
probability of at most a, for any number of draws (Markov). It is a convex function of the counts.
Counts of k of d elements drawn without replacement are therefore covered as well (Hoeffding,
J. Amer. Statist. Assoc. 58, 1963, theorem 4).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import chndtr, gammaln, logsumexp
from scipy.stats import chi2, random_table

from gnnbench.schema.arrays import Array

Floats = npt.NDArray[np.float64]
# Concentrations of the Dirichlet alternatives, as multiples of the number of draws: the first are
# sharp for few categories, the last for many.
CONCENTRATIONS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)
TABLES = 20_000  # random tables with the observed margins; the smallest p-value is 1 / 20,001
POWER = 0.9


def log_evidence(counts: Array, law: Floats) -> float:
    """Return the logarithm of the evidence against ``law``; infinite if the law forbids a count.

    ``counts``: integers ``[k]``, draws in each category. ``law``: float64 ``[k]``, probabilities
    with a sum of 1. Raises ``ValueError`` for other shapes.
    """
    if counts.shape != law.shape or counts.ndim != 1:
        raise ValueError(f"{counts.shape} counts do not match {law.shape} probabilities")
    possible = law > 0
    if counts[~possible].any():
        return math.inf
    n, p = counts[possible].astype(np.float64), law[possible]
    total = n.sum()
    if total == 0 or p.size < 2:
        return 0.0
    terms = []
    for multiple in CONCENTRATIONS:
        alpha = multiple * total * p
        term = gammaln(alpha.sum()) - gammaln(alpha.sum() + total)
        terms.append(term + (gammaln(alpha + n) - gammaln(alpha)).sum())
    mixture = float(logsumexp(terms)) - math.log(len(terms))
    return mixture - float((n * np.log(p)).sum())


def mean_evidence(logs: list[float]) -> float:
    """Return the logarithm of the mean of several evidences, which is evidence of equal validity.

    ``logs``: logarithms of evidences, in any number; 0 if there are none.
    """
    if not logs:
        return 0.0
    return float(logsumexp(logs)) - math.log(len(logs))


def critical_g(categories: int, level: float) -> float:
    """Return the G statistic at which ``log_evidence`` reaches the logarithm of 1 / ``level``.

    Laplace's approximation, which neglects counts below about 5 a category.
    """
    needed = math.log(len(CONCENTRATIONS) / level)
    return min(
        2 * (1 + c) * (needed + (categories - 1) / 2 * math.log1p(1 / c)) for c in CONCENTRATIONS
    )


def detectable_divergence(categories: int, draws: int, level: float, power: float = POWER) -> float:
    """Return the Kullback-Leibler divergence that ``draws`` draws reveal with a probability of
    ``power``.

    G is then a noncentral chi-square variable with 2 x draws x divergence as its noncentrality.
    """
    freedom, critical = categories - 1, critical_g(categories, level)
    return _noncentrality(freedom, critical, power) / (2 * draws)


def _noncentrality(freedom: int, critical: float, power: float) -> float:
    """The noncentrality at which chi-square exceeds ``critical`` with this power; by bisection."""
    low, high = 0.0, 4 * critical + 100
    for _ in range(60):
        middle = (low + high) / 2
        if float(chndtr(critical, freedom, middle)) > 1 - power:
            low = middle
        else:
            high = middle
    return high


def divergence(other: Floats, law: Floats) -> float:
    """Return the Kullback-Leibler divergence of ``other`` from ``law``, float64 ``[k]`` each."""
    there = other > 0
    return float((other[there] * np.log(other[there] / law[there])).sum())


def independence_p(table: Array, seed: int = 0, tables: int = TABLES) -> float:
    """Return the p-value of independence of rows and columns, at least 1 / (``tables`` + 1).

    ``table``: integers ``[r, c]``, pairs of draws. Under independence, all tables with its margins
    have known probabilities whatever the distributions of both draws are. The statistic G is
    compared with that of random tables (Patefield, Appl. Statist. 30, 1981), so the p-value is
    valid for any number of pairs.
    """
    observed = table[table.sum(1) > 0][:, table.sum(0) > 0].astype(np.int64)
    if min(observed.shape) < 2:
        return 1.0
    random = random_table(observed.sum(1), observed.sum(0)).rvs(
        size=tables, random_state=np.random.default_rng(seed), method="patefield"
    )
    least = _x_log_x(observed)
    at_least = int((_x_log_x(random) >= least - 1e-9).sum())
    return (1 + at_least) / (1 + tables)


def _x_log_x(tables: Array) -> Floats:
    """Sum of n log n of the cells of each table, which orders tables of equal margins as G does."""
    n = tables.astype(np.float64)
    return (n * np.log(np.maximum(n, 1.0))).sum((-2, -1))


def detectable_copies(categories: int, pairs: int, level: float, power: float = POWER) -> float:
    """Return the share of copied draws that ``independence_p`` reveals with this power.

    A share q of the second draws equals the first ones; all ``categories`` are equally likely.
    """
    freedom = (categories - 1) ** 2
    wanted = _noncentrality(freedom, float(chi2.isf(level, freedom)), power) / (2 * pairs)
    low, high = 0.0, 1.0
    for _ in range(50):
        q = (low + high) / 2
        same, other = 1 + q * (categories - 1), 1 - q
        divergence = same / categories * math.log(same)
        divergence += (categories - 1) / categories * other * math.log(max(other, 1e-300))
        low, high = (q, high) if divergence < wanted else (low, q)
    return high
