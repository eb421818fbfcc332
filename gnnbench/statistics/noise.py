"""The noise of a machine, measured by A/A pairs, and the file that stores it.

Both processes of an A/A pair run the same cell, measured like two systems, so that every ratio
should be 1. ``s_round`` is the spread between rounds, ``s_life`` that between processes; more
rounds reduce the first only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, TypeAdapter, ValidationError

from gnnbench.core.cell import Cell
from gnnbench.core.errors import DataError
from gnnbench.datasets.paths import data_root
from gnnbench.statistics import primary_metric
from gnnbench.statistics.estimates import exponential, mean_interval, median_interval
from gnnbench.statistics.stopping_rule import MIN_PAIRS, POWER, Rule, round_variance
from gnnbench.statistics.variance_prior import (
    MIN_VARIANCES,
    PairVariance,
    VariancePrior,
    committed,
    fit,
    median_variance,
)

Indices = npt.NDArray[np.int_]
RESAMPLES = 200
DRAWS = 2000


@dataclass(frozen=True)
class Spread:
    """Standard deviations of a time's logarithm: between epochs, and between processes.

    ``sd_pair``: standard deviation of d between the measured pairs. ``s_life`` is at least 0, so
    that it does not give it back. None where it was not stored.
    """

    s_round: float
    s_life: float
    sd_pair: float | None = None

    def of_pair(self, rounds: int) -> float:
        """Return the standard deviation of d for a pair with ``rounds`` rounds."""
        return math.sqrt(2 * (self.s_life**2 + median_variance(rounds) * self.s_round**2))


# For cells without a calibration, by type of device: more rounds reduce the noise of a CPU, more
# pairs that of a GPU. Middle of the ranges measured on two CPUs, and on an H100 and an H200.
USUAL = {"cpu": Spread(s_round=0.13, s_life=0.01), "cuda": Spread(s_round=0.055, s_life=0.03)}


def spread(pairs: Sequence[Sequence[float]]) -> Spread:
    """Estimate the spread from the log ratios of A/A pairs: at least two pairs of two rounds."""
    within = float(np.mean([np.var(p, ddof=1) for p in pairs]))
    rounds = round(float(np.mean([len(p) for p in pairs])))
    between = float(np.var([np.median(p) for p in pairs], ddof=1))
    life = max(between - median_variance(rounds) * within, 0.0)
    return Spread(math.sqrt(within / 2), math.sqrt(life / 2), math.sqrt(between))


@dataclass(frozen=True)
class RuleValidation:
    """How often a rule finds a difference between equal systems: A/A pairs, regrouped.

    ``lives``          processes of the A/A pairs
    ``comparisons``    comparisons drawn at random from the pairs, with random signs
    ``rate``           share of them with the verdict faster or slower (false positives)
    ``bound``          upper 95 % confidence limit of the rate, by bootstrap over pairs
    ``detectable``     smallest difference that gets a verdict in 80 % of comparisons
    ``one_pair_rate``  false positives of a percentile bootstrap over the rounds of one pair
    ``bias``           mean A/A ratio without random signs, which would hide a systematic difference
                       between the two sides; with its 95 % interval
    ``in_order``       false positives among ``groups`` blocks of consecutive pairs
    """

    lives: int
    comparisons: int
    rate: float
    bound: float
    detectable: float
    one_pair_rate: float
    bias: float
    bias_ci_low: float
    bias_ci_high: float
    groups: int
    in_order: int


def verify(
    pairs: Sequence[Sequence[float]], rule: Rule, prior: VariancePrior | None = None,
    comparisons: int = DRAWS, seed: int = 0,
) -> RuleValidation:  # fmt: skip
    """Regroup A/A pairs into comparisons; ``pairs`` are the log ratios of each pair's rounds.

    Raises ``ValueError`` for fewer pairs than two comparisons need.
    """
    most = rule.analyses[-1]
    if len(pairs) < 2 * most or most < MIN_PAIRS:
        raise ValueError(f"{len(pairs)} pairs are too few to verify comparisons of {most}")
    generator = np.random.default_rng(seed)
    d = np.array([np.median(p) for p in pairs])
    own_variances = [round_variance([p]) for p in pairs]
    known = [v for v in own_variances if v is not None]
    if len(known) < len(pairs):  # pairs of one round: no prior, as in `spread_of`
        prior = None
    rounds = np.array(known) if prior else np.zeros(len(pairs))

    def rejected(order: Indices, effect: float = 0.0) -> float:
        signs = generator.choice([-1.0, 1.0], order.shape)  # which process is the reference
        shifted = d[order] * signs + math.log1p(effect)
        return float(rule.rejects_equality(shifted, rounds[order], prior).mean())

    def regrouped(draws: int, among: Indices | None = None) -> Indices:
        """Draw comparisons [draws, pairs]: pairs without replacement."""
        order = np.argsort(generator.random((draws, d.size)), axis=1)[:, :most]
        return order if among is None else among[order]

    resampled = [
        rejected(regrouped(500, generator.integers(0, d.size, d.size))) for _ in range(RESAMPLES)
    ]
    effects = (percent / 100 for percent in [*range(1, 21), *range(25, 105, 5)])
    detectable = next((e for e in effects if rejected(regrouped(500), e) >= POWER), math.inf)
    bias = exponential(mean_interval(d.tolist()))
    groups = np.arange(d.size // most * most).reshape(-1, most)
    in_order = rule.rejects_equality(d[groups], rounds[groups], prior)
    one = [median_interval(np.exp(p).tolist(), nth) for nth, p in enumerate(pairs)]
    return RuleValidation(
        2 * len(pairs), comparisons, rejected(regrouped(comparisons)),
        float(np.quantile(resampled, 0.95)), detectable,
        float(np.mean([e.low > 1 or e.high < 1 for e in one])),
        bias.value, bias.low, bias.high, len(groups), int(in_order.sum()),
    )  # fmt: skip


@dataclass(frozen=True)
class Calibration:
    """A/A pairs of one cell on one machine; ``spreads`` by the times of a sample (``wall_s`` ...).

    ``start_s``: from starting a pair to its first measured round; ``epoch_s``: a measured epoch,
    median. ``version``: gnnbench's.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    machine_id: str
    device: str
    threads: int
    system: str
    dataset: str
    until: str
    version: str
    lives: int
    rounds: int
    start_s: float
    epoch_s: float
    at: str
    spreads: dict[str, Spread]

    @property
    def name(self) -> str:
        """The calibrated cell, in words."""
        return f"{self.system} on {self.dataset} until {self.until}, {self.device}"

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Calibration:
        """Return the inverse of ``dataclasses.asdict``. Raises ``ValueError`` for wrong fields."""
        try:
            return TypeAdapter(cls).validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def prior(known: Sequence[Calibration], device: str) -> VariancePrior | None:
    """Return the prior of a device type: of this machine's calibrations if they suffice.

    Otherwise that of gnnbench's reference runs; None for a device type without any.
    """
    own = [
        PairVariance(
            spread.sd_pair**2, c.lives // 2 - 1,
            2 * median_variance(c.rounds) * spread.s_round**2, c.name,
        )
        for c in known if c.device == device
        for key, spread in c.spreads.items()
        if key == primary_metric.of(c.until).key and spread.sd_pair is not None
    ]  # fmt: skip
    if len(own) >= MIN_VARIANCES:
        return fit(own, "calibrations of this machine")
    return committed().get(device)


def best(known: Sequence[Calibration], cell: Cell, threads: int) -> Calibration | None:
    """Return the calibration that shares most settings with a cell, or None.

    Only calibrations of the cell's device and number of threads apply to it.
    """
    fit = [c for c in known if (c.device, c.threads) == (cell.device, threads)]
    alike = ("until", "dataset", "system")
    return max(fit, key=lambda c: [getattr(c, k) == getattr(cell, k) for k in alike], default=None)


def exact(known: Sequence[Calibration], cell: Cell, threads: int) -> Calibration | None:
    """Return the calibration of a cell's system, dataset, ``until``, device and threads."""
    keys = ("device", "until", "dataset", "system")
    fit = [c for c in known if all(getattr(c, k) == getattr(cell, k) for k in keys)]
    return next((c for c in fit if c.threads == threads), None)


def store_path() -> Path:
    """Return the path of the calibration file, in the folder of prepared graphs."""
    return data_root() / "calibration.json"


def load(machine_id: str) -> list[Calibration]:
    """Return the calibrations of a machine. Raises ``DataError`` for a damaged file."""
    path = store_path()
    try:
        text = path.read_text()
    except OSError:  # other uses of the folder report that it cannot be read
        return []
    try:
        stored = json.loads(text).get(machine_id, [])
        if isinstance(stored, dict):  # of version 1: floors of another rule
            return []
        return [Calibration.from_json(v) for v in stored]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"'{path}' is damaged ({error}); remove it and calibrate again") from None


def store(new: Calibration) -> Path:
    """Save a calibration; it replaces the one of the same machine and cell. Returns the path."""
    from gnnbench.core.files import ensure_folder, write_json

    path = store_path()
    ensure_folder(path.parent)
    everything = json.loads(path.read_text()) if path.exists() else {}
    kept = [c for c in load(new.machine_id) if (c.name, c.threads) != (new.name, new.threads)]
    everything[new.machine_id] = [asdict(c) for c in [*kept, new]]
    write_json(path, everything)
    return path
