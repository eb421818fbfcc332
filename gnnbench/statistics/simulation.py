"""Simulated comparisons: false verdicts, power and coverage of a rule under kinds of noise.

``python -m gnnbench.statistics.simulation`` prints a CSV table. The noise between trials has one of
``KINDS``; that between rounds is normal, and with ``correlated`` each round resembles the one
before. Comparisons differ in both scales, as real ones do. With ``dependent``, pairs are not
independent, which all rules assume; no rule holds then.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gnnbench.statistics.stopping_rule import Floats, Rule
from gnnbench.statistics.variance_prior import VariancePrior, committed, median_variance

PAIRS = 10
STUDENT = Rule(analyses=(5, 10))  # without a prior: the rule of gnnbench 0.1
HETEROGENEITY = 0.6  # standard deviation of the logarithm of a comparison's scales


@dataclass(frozen=True)
class Noise:
    """Standard deviations of log times between trials and between rounds, on a type of device."""

    s_trial: float
    s_round: float
    rounds: int


DEVICES = {"cpu": Noise(0.01, 0.13, 8), "cuda": Noise(0.03, 0.05, 4)}


def _autoregressive(size: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Normal values of variance 1; each has correlation 0.8 with the one before (last axis)."""
    values = generator.standard_normal(size)
    for nth in range(1, size[-1]):
        values[..., nth] = 0.8 * values[..., nth - 1] + 0.6 * values[..., nth]
    return values


def _spikes(size: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """One trial in ten is disturbed by another program."""
    return np.where(generator.random(size) < 0.1, 8.0, 0.2 * generator.standard_normal(size))


def _regimes(size: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """At a random moment of half of the comparisons, the noise becomes five times as large."""
    change = generator.integers(0, 2 * size[1], size=(size[0], 1))
    late = np.arange(size[1]) >= change
    return generator.standard_normal(size) * np.where(late, 5.0, 1.0)


def _drift(size: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """The machine slows down; both sides of a pair alike, up to a tenth."""
    slope = generator.standard_normal((size[0], 1)) * 0.1
    return generator.standard_normal(size) + slope * np.arange(size[1])


KINDS: dict[str, Callable[[tuple[int, ...], np.random.Generator], Floats]] = {
    "normal": lambda size, generator: generator.standard_normal(size),
    "t3": lambda size, generator: generator.standard_t(3, size) / math.sqrt(3),
    "correlated": lambda size, generator: generator.standard_normal(size),
    "dependent": _autoregressive,
    "spikes": _spikes,
    "regimes": _regimes,
    "drift": _drift,
    "bimodal": lambda size, generator: generator.choice([-1.0, 1.0], size),
    "unequal": lambda size, generator: (
        generator.standard_normal(size) * np.exp(generator.standard_normal(size))
    ),
}


def draw(
    kind: str, noise: Noise, comparisons: int, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return d and explained variances [comparisons, pairs] of equal systems."""
    size = (comparisons, PAIRS)
    scales = np.exp(HETEROGENEITY * generator.standard_normal((2, comparisons, 1)))
    levels = KINDS[kind](size, generator) - KINDS[kind](size, generator)
    normal = _autoregressive if kind == "correlated" else KINDS["normal"]
    rounds = normal((*size, noise.rounds), generator) * math.sqrt(2) * noise.s_round
    rounds = rounds * scales[1][..., None]
    d = noise.s_trial * scales[0] * levels + np.median(rounds, axis=2)
    return d, rounds.var(axis=2, ddof=1) * median_variance(noise.rounds)


def characteristics(
    rule: Rule, prior: VariancePrior | None, d: Floats, rounds: Floats
) -> dict[str, float]:
    """Return rates of a rule for comparisons of equal systems.

    ``false``: verdicts faster or slower. ``power_5``, ``power_10``: the same for systems that are 5
    and 10 % faster. ``coverage``: intervals that contain the true ratio; ``noisiest``: the same in
    the tenth of comparisons with the largest variance between pairs. ``pairs``: mean number used.
    """
    ends = rule.ends(d, rounds, prior)
    covered = np.abs(ends.middle) <= ends.half
    variance = d.var(axis=1)
    noisiest = variance >= np.quantile(variance, 0.9)
    return {
        "false": float(ends.rejected.mean()),
        "power_5": float(rule.rejects_equality(d + math.log(1.05), rounds, prior).mean()),
        "power_10": float(rule.rejects_equality(d + math.log(1.10), rounds, prior).mean()),
        "coverage": float(covered.mean()),
        "noisiest": float(covered[noisiest].mean()),
        "pairs": float(ends.pairs.mean()),
    }


def rules(prior: VariancePrior) -> Iterator[tuple[str, Rule, VariancePrior | None]]:
    """The rules that are compared: by name, with the prior of each."""
    yield "student 5/10", STUDENT, None
    yield "moderated 3/5/10", Rule(), prior
    for pairs in (2, 3, 5, 10):
        yield f"student {pairs}", Rule(analyses=(pairs,)), None
        yield f"moderated {pairs}", Rule(analyses=(pairs,)), prior


def main(comparisons: int = 20000, seed: int = 0) -> None:
    """Print the table."""
    generator = np.random.default_rng(seed)
    writer = None
    for device, noise in DEVICES.items():
        prior = committed()[device]
        for kind in KINDS:
            d, rounds = draw(kind, noise, comparisons, generator)
            for name, rule, own in rules(prior):
                rates = characteristics(rule, own, d, rounds)
                row: dict[str, float | str] = {
                    "device": device,
                    "noise": kind,
                    "rule": name,
                    **rates,
                }
                if writer is None:
                    writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
                    writer.writeheader()
                writer.writerow(
                    {k: v if isinstance(v, str) else f"{v:.4f}" for k, v in row.items()}
                )


if __name__ == "__main__":
    main()
