"""A/A pairs regrouped into comparisons: false verdicts, power and coverage of a rule by pairs.

``python -m gnnbench.statistics.validation calibrate.json...`` prints a CSV table for the files of
``gnnbench calibrate``. The true ratio of A/A pairs is 1, so that every ``faster`` or ``slower`` is
false. The priors are those of gnnbench's reference runs, which contain no A/A pairs.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.statistics import primary_metric
from gnnbench.statistics.simulation import PAIRS, characteristics, rules
from gnnbench.statistics.stopping_rule import Floats, Rule, round_variance
from gnnbench.statistics.variance_prior import VariancePrior, committed

COMPARISONS = 4000
RESAMPLES = 400
RESAMPLED = 500  # comparisons of a resample


def regrouped(
    d: Floats, rounds: Floats, comparisons: int, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return d and explained variances [comparisons, 10] of pairs drawn without replacement.

    ``d`` and ``rounds`` [pairs]: value of each pair, and the variance of it that the noise of its
    rounds explains. The sign of d is random, because either process can be the reference. Raises
    ``ValueError`` for fewer than 20 pairs, whose comparisons would be too alike.
    """
    if len(d) < 2 * PAIRS:
        raise ValueError(f"{len(d)} pairs are too few; measure {2 * PAIRS} or more")
    order = np.argsort(generator.random((comparisons, len(d))), axis=1)[:, :PAIRS]
    return d[order] * generator.choice([-1.0, 1.0], order.shape), rounds[order]


def validate(
    pairs: Sequence[Sequence[float]], rule: Rule, prior: VariancePrior | None, seed: int = 0
) -> dict[str, float]:
    """Return the rates of a rule for A/A pairs: log ratios of the rounds of each pair.

    As of ``simulation.characteristics``, and ``false_bound``, ``coverage_bound`` and
    ``noisiest_bound``: 95 % confidence limits by a bootstrap over pairs. Raises ``ValueError`` for
    pairs of one round, and for values that are not finite.
    """
    generator = np.random.default_rng(seed)
    variances = [round_variance([pair]) for pair in pairs]
    known = [v for v in variances if v is not None and math.isfinite(v)]
    if len(known) < len(pairs):
        raise ValueError("a pair has fewer than two rounds, or a value that is not a number")
    d, rounds = np.array([np.median(pair) for pair in pairs]), np.array(known)
    rates = characteristics(rule, prior, *regrouped(d, rounds, COMPARISONS, generator))
    resampled = []
    for _ in range(RESAMPLES):
        chosen = generator.integers(0, len(d), len(d))
        sample = regrouped(d[chosen], rounds[chosen], RESAMPLED, generator)
        resampled.append(characteristics(rule, prior, *sample))
    return rates | {
        "false_bound": float(np.quantile([r["false"] for r in resampled], 0.95)),
        "coverage_bound": float(np.quantile([r["coverage"] for r in resampled], 0.05)),
        "noisiest_bound": float(np.quantile([r["noisiest"] for r in resampled], 0.05)),
    }


def rows_of(path: str) -> Iterator[dict[str, str | float]]:
    """Return a row for each rule. Raises ``DataError`` for a file of another kind."""
    try:
        document = json.loads(Path(path).read_text())
        calibration = document["calibration"]
        pairs = document["log_ratios"][primary_metric.of(calibration["until"]).key]
        for name, rule, prior in rules(committed()[calibration["device"]]):
            yield {
                "file": path, "device": calibration["device"], "measured_pairs": len(pairs),
                "rule": name, **validate(pairs, rule, prior),
            }  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"'{path}' is no calibrate.json of 'gnnbench calibrate' that can be validated ({error})"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of some ``calibrate.json``; the exit code is 6 for a file of another kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="calibrate.json")
    writer = None
    try:
        for row in chain.from_iterable(map(rows_of, parser.parse_args(arguments).files)):
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})
    except DataError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
