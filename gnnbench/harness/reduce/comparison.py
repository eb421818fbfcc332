"""Statistics of a comparison: logarithms of ratios, times, and the columns of a ratio."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gnnbench.measure import machine
from gnnbench.schema import RatioColumns
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.estimates import Estimate, exponential, geometric_interval, mean_interval
from gnnbench.statistics.stopping_rule import holm

if TYPE_CHECKING:
    from gnnbench.config.experiment import MeasureLimits
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair
    from gnnbench.schema.samples import EpochSample
    from gnnbench.statistics.noise import Calibration

Value = Callable[["EpochSample"], float | None]  # of a sample
THESE_PAIRS = "these pairs"


def logs(journal: JournalState, pair: CellPair, value: Value | None = None) -> list[float]:
    """Per trial that counts: the median over its rounds of log(reference / system).

    For a system without a reference: the median logarithm of its time. ``value`` of a sample, by
    default its primary metric; rounds in which it is not above 0 on both sides are left out.
    """
    return [statistics.median(trial) for trial in round_logs(journal, pair, value)]


def round_logs(
    journal: JournalState, pair: CellPair, value: Value | None = None
) -> list[list[float]]:
    """The logarithms of ``logs`` for each round, by trial, for trials that have any."""
    value = value or primary_metric.of(pair.system.until).value
    rounds: list[list[tuple[EpochSample, ...]]]
    if pair.reference is None:
        rounds = [[(s,) for s in trial] for trial in journal.by_trial(pair.system, pair)]
    else:
        rounds = [[*trial] for trial in journal.rounds(pair)]
    trials = []
    for trial in rounds:
        times = [[value(s) or 0.0 for s in sides] for sides in trial]
        trials.append([_log(t) for t in times if min(t) > 0])
    return [trial for trial in trials if trial]


def _log(sides: Sequence[float]) -> float:
    return math.log(sides[0]) if len(sides) == 1 else math.log(sides[0] / sides[1])


def level(trials: Sequence[Sequence[EpochSample]], value: Value) -> Estimate:
    """Geometric mean over trials of each trial's median of ``value``, with its interval."""
    values = [[v for s in trial if (v := value(s)) is not None] for trial in trials]
    return geometric_interval([statistics.median(v) for v in values if v])


def ratio(journal: JournalState, pair: CellPair, value: Value) -> Estimate:
    """Ratio reference / system of ``value`` of a sample, with a 95 % interval over pairs."""
    mean = mean_interval(logs(journal, pair, value))
    return exponential(mean) if mean.n else mean


def unsteady(time: Estimate, measure: MeasureLimits) -> bool:
    """Whether a time's interval is wider than the definition allows; without interval it is not."""
    return 0 < measure.unstable_half_width < time.relative_half_width < math.inf


def steady(journal: JournalState, pair: CellPair, measure: MeasureLimits) -> bool:
    """Whether the primary metrics of both sides of a pair have intervals as narrow as required."""
    metric = primary_metric.of(pair.system.until)
    sides = [journal.by_trial(c, pair) for c in (pair.reference, pair.system) if c is not None]
    return not any(unsteady(level(trials, metric.value), measure) for trials in sides)


def compared(
    journal: JournalState,
    pair: CellPair,
    measure: MeasureLimits,
    calibrations: Sequence[Calibration],
    value: Value | None = None,
    doubtful: bool = False,
) -> RatioColumns:
    """The columns of a comparison by ``value``, by default the primary metric.

    The prior of variances was fitted to primary metrics and applies to these alone.
    There is no verdict if the comparison is not finished, a side is not steady, or a trial that
    counts is unreliable, or the comparison ``doubtful`` for another reason.
    """
    rounds = round_logs(journal, pair, value)
    system = pair.system
    calibration = noise.exact(calibrations, system, machine.resolve_threads(system.threads))
    spread = None
    if calibration is not None and len(rounds) > 1:
        spread = calibration.spreads.get(primary_metric.of(system.until).key)
    per_trial = statistics.mean(len(trial) for trial in rounds) if rounds else 0
    sd_pair = None if spread is None else spread.of_pair(max(round(per_trial), 1))
    prior = noise.prior(calibrations, system.device) if value is None else None
    judgement = measure.rule.judge(rounds, prior, sd_pair)
    within = [statistics.variance(trial) for trial in rounds if len(trial) > 1]
    doubtful = doubtful or bool(journal.pair_doubts(pair.id)) or not steady(journal, pair, measure)
    columns = RatioColumns(
        ratio=number(judgement.ratio.value),
        ratio_ci_low=number(judgement.ratio.low),
        ratio_ci_high=number(judgement.ratio.high),
        pairs=len(rounds),
        rounds=sum(map(len, rounds)),
        sd_pair=number(judgement.sd_pair),
        sd_round=math.sqrt(statistics.mean(within)) if within else None,
        noise_floor=number(judgement.noise_floor),
        floor_from=_floor_source(calibration if spread else None, len(rounds)),
        detectable=number(judgement.detectable),
        pairs_needed=judgement.pairs_needed,
        verdict=judgement.verdict,
        p_value=number(judgement.p_value) if judgement.verdict else None,
    )
    return without_verdict(columns) if doubtful or pair.id not in journal.done else columns


def _floor_source(calibration: Calibration | None, pairs: int) -> str:
    """Whose spread the noise floor rests on; "" without a floor."""
    if pairs < 2:
        return ""
    return calibration.name if calibration else THESE_PAIRS


def without_verdict(columns: RatioColumns) -> RatioColumns:
    """The columns of a comparison without a verdict."""
    return dataclasses.replace(columns, pairs_needed=None, verdict="", p_value=None)


def adjust_p_values(rows: Sequence[RatioColumns], ids: Sequence[str]) -> None:
    """Set ``p_adjusted`` of a table's rows; rows of one id are one comparison."""
    p_values = {i: r.p_value for i, r in zip(ids, rows, strict=True) if r.p_value is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    for i, row in zip(ids, rows, strict=True):
        row.p_adjusted = adjusted.get(i)


def number(value: float) -> float | None:
    """The value, or None where it is NaN or infinite."""
    return None if math.isnan(value) or math.isinf(value) else value
