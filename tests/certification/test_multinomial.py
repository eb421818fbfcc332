"""Validity and power of the exact tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gnnbench.validation.multinomial import (
    critical_g,
    detectable_copies,
    detectable_divergence,
    divergence,
    independence_p,
    log_evidence,
    mean_evidence,
)


def compositions(total: int, parts: int):
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.2, 0.3, 0.5), (0.25, 0.25, 0.25, 0.25)])
def test_mean_of_the_evidence_is_one_under_the_law(law: tuple[float, ...]):
    p, total, mean = np.array(law), 7, 0.0
    for counts in compositions(total, p.size):
        n = np.array(counts)
        ways = math.factorial(total) / math.prod(map(math.factorial, counts))
        mean += ways * float(np.prod(p**n)) * math.exp(log_evidence(n, p))
    assert mean == pytest.approx(1.0)


def test_mean_of_the_evidence_is_at_most_one_without_replacement():
    """Hoeffding's theorem: two draws of 3 of 5 elements, all 100 results."""
    from itertools import combinations, product

    sets, p, values = list(combinations(range(5), 3)), np.full(5, 0.2), []
    for chosen in product(sets, repeat=2):
        n = np.bincount([i for s in chosen for i in s], minlength=5)
        values.append(math.exp(log_evidence(n, p)))
    assert np.mean(values) <= 1


def test_impossible_outcome_is_infinite_evidence():
    assert log_evidence(np.array([5, 5, 1]), np.array([0.5, 0.5, 0.0])) == math.inf
    assert log_evidence(np.array([5, 5, 0]), np.array([0.5, 0.5, 0.0])) < math.log(2)
    assert mean_evidence([math.inf, 0.0]) == math.inf and mean_evidence([]) == 0


def test_evidence_refuses_other_shapes():
    with pytest.raises(ValueError, match="do not match"):
        log_evidence(np.array([1, 2]), np.array([1.0]))


@pytest.mark.parametrize("categories", [2, 20, 495])
def test_detectable_divergence_has_the_stated_power(categories: int):
    level, draws = 2.5e-5, 10_000
    rng, law = np.random.default_rng(1), np.full(categories, 1 / categories)
    needed = detectable_divergence(categories, draws, level)
    low, high = 1.0, 100.0
    for _ in range(60):
        odds = math.sqrt(low * high)
        other = law * np.where(np.arange(categories) < max(categories // 6, 1), odds, 1.0)
        other /= other.sum()
        low, high = (odds, high) if divergence(other, law) < needed else (low, odds)
    detected = [
        log_evidence(rng.multinomial(draws, other), law) >= -math.log(level) for _ in range(200)
    ]
    assert 0.83 <= np.mean(detected) <= 0.98
    assert critical_g(categories, level) > categories - 1


def test_independence_ignores_uneven_margins():
    rng = np.random.default_rng(2)
    p = np.array([0.5, 0.3, 0.15, 0.05, 0.0, 0.0])
    table = rng.multinomial(4000, np.outer(p, p[::-1]).ravel()).reshape(6, 6)
    assert independence_p(table, tables=2000) > 0.001
    assert independence_p(np.diag([10, 10, 10]), tables=2000) == pytest.approx(1 / 2001)
    assert independence_p(np.array([[5, 3], [0, 0]])) == 1.0


def test_detectable_copies_have_the_stated_power():
    rng, pairs, level = np.random.default_rng(3), 3000, 0.01
    q = detectable_copies(6, pairs, level)
    detected = 0
    for run in range(60):
        x = rng.integers(0, 6, pairs)
        y = np.where(rng.random(pairs) < q, x, rng.integers(0, 6, pairs))
        table = np.zeros((6, 6), dtype=np.int64)
        np.add.at(table, (x, y), 1)
        detected += independence_p(table, seed=run, tables=1000) <= level
    assert detected >= 45
